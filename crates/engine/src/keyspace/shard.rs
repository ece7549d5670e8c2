//! A shard: its part of every database, and who waits for or watches its keys.

use super::churn::KeyChurn;
use super::committing::CounterTotals;
use super::database::Database;
use super::databases::DATABASES;
use super::tally::{PoolTotals, Tally};
use crate::blocking::wait_queue::Waiting;
use crate::execute::noted::Noted;
use crate::execute::watched_keys::{KeyWatch, Presence, Watch};
use crate::watch::interest::Interest;
use crate::watch::touched::Touched;
use crate::watch::{Index, SharedQuery};
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_log::Lsn;

/// A key with the number of its database.
pub type KeyId = (u8, Box<[u8]>);

/// One command at a time runs on a shard: whoever holds its lock.
pub struct Shard {
    databases: Vec<Database>,
    /// Clients that wait for keys.
    waiting: Waiting,
    /// Transactions to abort when a key changes.
    watching: HashMap<KeyId, Vec<KeyWatch>>,
    /// Who is to be told of changes of keys, if there is anybody.
    interest: Option<Box<Interest>>,
    tally: Tally,
    /// The last record of a change of the shard's keys, or a later one up to which a snapshot is
    /// cut.
    last: Lsn,
}

impl Shard {
    pub(super) fn new() -> Self {
        let databases = (0..DATABASES).map(|_| Database::default()).collect();
        Self {
            databases,
            waiting: Waiting::default(),
            watching: HashMap::new(),
            interest: None,
            tally: Tally::default(),
            last: Lsn::ZERO,
        }
    }

    /// The shard's part of a database. `number` is below [`DATABASES`].
    #[inline]
    pub fn database(&self, number: usize) -> &Database {
        &self.databases[number]
    }

    /// As [`Shard::database`], to change it.
    #[inline]
    pub fn database_mut(&mut self, number: usize) -> &mut Database {
        &mut self.databases[number]
    }

    /// Notes the record of a change of the shard's keys, which is locked since before the change.
    ///
    /// # Panics
    /// The record is not behind that of the change before, or not behind the cut of a snapshot
    /// without the change.
    #[inline]
    pub(crate) fn note_logged(&mut self, lsn: Lsn) {
        if lsn <= self.last {
            out_of_order(lsn, self.last);
        }
        self.last = lsn;
    }

    /// The last record of a change of the shard's keys, or a later one up to which a snapshot is cut.
    pub(crate) fn last(&self) -> Lsn {
        self.last
    }

    /// Notes that a snapshot is cut up to a record: it has every change of the shard's keys so far,
    /// and none to come.
    ///
    /// # Panics
    /// A change so far is behind that record.
    pub(crate) fn note_cut(&mut self, cut: Lsn) {
        let last = self.last;
        assert!(last <= cut, "a snapshot is cut behind record {cut}, and has the change of record {last}");
        self.last = cut;
    }

    /// All databases, in order.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    /// All databases, to change them.
    pub(crate) fn databases_mut(&mut self) -> &mut [Database] {
        &mut self.databases
    }

    /// Counts from here on what counters do.
    pub(crate) fn begin_counting(&mut self) {
        self.tally.begin();
    }

    /// Looks from here on at one of so many moves of counters, at none if that is 0.
    pub(crate) fn set_churn_sample(&mut self, sample: u32, seed: u64) {
        self.tally.set_sample(sample, seed);
    }

    /// What the shard's counters have done.
    pub fn counted(&self) -> &CounterTotals {
        self.tally.totals()
    }

    /// What the shard's pools have done.
    pub fn drawn(&self) -> PoolTotals {
        self.tally.pools()
    }

    /// How many of the shard's keys were removed because their time had come.
    pub fn expired(&self) -> u64 {
        self.tally.expired()
    }

    /// What is counted of its keys.
    pub(crate) fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// What those have done that have moved most of late.
    pub(crate) fn churn(&mut self, now_ms: u64) -> Vec<KeyChurn> {
        self.tally.churn(now_ms)
    }

    /// A database, and what is counted of its counters.
    #[inline]
    pub(crate) fn counting(&mut self, number: usize) -> (&mut Database, &mut Tally) {
        (&mut self.databases[number], &mut self.tally)
    }

    /// Exchanges two databases.
    pub fn swap(&mut self, one: usize, other: usize) {
        self.databases.swap(one, other);
    }

    /// Who waits for the shard's keys.
    #[inline]
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// As [`Shard::waiting`], to change it.
    pub(crate) fn waiting_mut(&mut self) -> &mut Waiting {
        &mut self.waiting
    }

    /// Whether anybody is to be told of changes of the shard's keys.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.interest.is_some()
    }

    /// The watched reads of the shard's keys.
    pub(crate) fn index(&self) -> &Index {
        static EMPTY: Index = Index::new();
        self.interest.as_deref().map_or(&EMPTY, |interest| &interest.queries)
    }

    /// As [`Shard::index`], to add one.
    pub(crate) fn index_mut(&mut self) -> &mut Index {
        &mut self.interest_mut().queries
    }

    /// Who is to be told of changes of the shard's keys, to add somebody. Whoever takes somebody away looks afterwards
    /// whether anybody is left: [`Shard::drop_interest_if_empty`].
    pub(crate) fn interest_mut(&mut self) -> &mut Interest {
        self.interest.get_or_insert_default()
    }

    /// Forgets that anybody was to be told of changes, if nobody is any more.
    pub(crate) fn drop_interest_if_empty(&mut self) {
        self.interest.take_if(|interest| interest.is_empty());
    }

    /// Notes whom a change of this key concerns, as far as this is not known from waiting or watching; how many watched reads of
    /// the key it cannot.
    pub(crate) fn note(
        &mut self,
        db: u8,
        key: &[u8],
        touched: &Touched<'_>,
        noted: &mut Vec<Noted>,
    ) -> usize {
        let Some(interest) = &mut self.interest else { return 0 };
        let database = &self.databases[db as usize];
        let spared = interest.note(db, key, touched, || database.get(super::hash(key), key), noted);
        self.drop_interest_if_empty();
        spared
    }

    /// Notes the clients that keep what they read of a key. For what changes no answer of a watched read.
    pub(crate) fn note_kept(&mut self, key: &[u8], noted: &mut Vec<Noted>) {
        if let Some(interest) = &mut self.interest {
            interest.tracked.note(key, noted);
            self.drop_interest_if_empty();
        }
    }

    /// As [`Shard::note`], of a change of everything in a database.
    pub(crate) fn note_database(&mut self, db: u8, noted: &mut Vec<Noted>) {
        if let Some(interest) = &mut self.interest {
            interest.note_database(db, noted);
            self.drop_interest_if_empty();
        }
    }

    /// Takes a watched read of a key out of the index.
    pub(crate) fn forget_query(&mut self, db: u8, key: &[u8], query: &SharedQuery) {
        self.index_mut().remove(db, key, query);
        self.drop_interest_if_empty();
    }

    /// Takes a watched read of every key out of the index.
    pub(crate) fn forget_everywhere(&mut self, query: &SharedQuery) {
        self.index_mut().remove_everywhere(query);
        self.drop_interest_if_empty();
    }

    /// Whether a command that changes one of the shard's keys may need the locks of further shards: to serve a move, or to
    /// answer a watched read.
    #[inline]
    pub(crate) fn reaches_further(&self) -> bool {
        self.waiting.has_moves()
            || self.interest.as_ref().is_some_and(|interest| interest.queries.reaches_further())
    }

    /// Registers a transaction's watch on a key. Keys whose deadline is at `expired_until_ms` or earlier have expired.
    pub(crate) fn watch(&mut self, db: u8, key: &[u8], watch: &Arc<Watch>, expired_until_ms: u64) {
        let is_expired = presence(&self.databases[db as usize], key, expired_until_ms) == Presence::Expired;
        self.watching.entry((db, key.into())).or_default().push(KeyWatch::new(watch, is_expired));
    }

    /// Whether a watched key is there and is as expired as it was when the watch began.
    pub(crate) fn was_expired(&self, db: u8, key: &[u8], watch: &Arc<Watch>) -> bool {
        let watches = self.watching.get(&(db, Box::from(key)) as &KeyId);
        watches.is_some_and(|watches| watches.iter().any(|one| one.belongs_to(watch) && one.is_expired()))
    }

    /// Ends a transaction's watch on a key.
    pub(crate) fn unwatch(&mut self, db: u8, key: &[u8], watch: &Arc<Watch>) {
        let id: KeyId = (db, key.into());
        if let Some(watches) = self.watching.get_mut(&id) {
            watches.retain(|other| !other.belongs_to(watch));
            if watches.is_empty() {
                self.watching.remove(&id);
            }
        }
    }

    /// Tells the transactions that watch a key that it has changed.
    #[inline]
    pub(crate) fn touch(&mut self, db: u8, key: &[u8]) {
        if self.watching.is_empty() {
            return;
        }
        if let Some(watches) = self.watching.get_mut(&(db, Box::from(key)) as &KeyId) {
            let exists = self.databases[db as usize].get(super::hash(key), key).is_some();
            watches.iter_mut().for_each(|watch| watch.note_change(exists));
        }
    }

    /// Tells the transactions that watch keys of a database that it is about to be emptied, or that it has been swapped with
    /// `other`.
    pub(crate) fn touch_database(&mut self, db: u8, other: Option<u8>, expired_until_ms: u64) {
        let databases = &self.databases;
        for ((number, key), watches) in &mut self.watching {
            if *number == db {
                let presence = |db: u8| presence(&databases[db as usize], key, expired_until_ms);
                let (before, after) = match other {
                    None => (presence(db), Presence::Absent),
                    Some(other) => (presence(other), presence(db)),
                };
                watches.iter_mut().for_each(|watch| watch.note_replaced(before, after));
            }
        }
    }
}

/// What a database holds at a key, of which what has a deadline at `expired_until_ms` or earlier has expired.
fn presence(database: &Database, key: &[u8], expired_until_ms: u64) -> Presence {
    match database.get(super::hash(key), key) {
        None => Presence::Absent,
        Some(entry) if entry.deadline().is_some_and(|at| at <= expired_until_ms) => Presence::Expired,
        Some(_) => Presence::Live,
    }
}

#[cold]
fn out_of_order(lsn: Lsn, last: Lsn) -> ! {
    panic!(
        "a change has record {lsn}, and a change of the same shard before it or a snapshot without it has record {last}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_behind_the_one_before_and_behind_the_cut_of_a_snapshot() {
        let mut shard = Shard::new();
        shard.note_logged(Lsn(3));
        shard.note_logged(Lsn(7));
        shard.note_cut(Lsn(7));
        shard.note_logged(Lsn(8));
        shard.note_cut(Lsn(20));
        shard.note_logged(Lsn(21));
    }

    #[test]
    #[should_panic(expected = "a change has record 7")]
    fn records_of_a_shard_that_do_not_ascend_are_a_defect() {
        let mut shard = Shard::new();
        shard.note_logged(Lsn(7));
        shard.note_logged(Lsn(7));
    }

    #[test]
    #[should_panic(expected = "a snapshot is cut behind record 6, and has the change of record 7")]
    fn a_cut_before_the_last_change_is_a_defect() {
        let mut shard = Shard::new();
        shard.note_logged(Lsn(7));
        shard.note_cut(Lsn(6));
    }

    #[test]
    #[should_panic(
        expected = "a change has record 8, and a change of the same shard before it or a snapshot"
    )]
    fn a_cut_behind_the_last_change_is_a_defect_at_the_next_change() {
        let mut shard = Shard::new();
        shard.note_logged(Lsn(7));
        shard.note_cut(Lsn(8));
        shard.note_logged(Lsn(8));
    }
}
