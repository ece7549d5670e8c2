//! A shard: its part of every database, and the clients that wait for or watch its keys.

use super::Entry;
use super::churn::KeyChurn;
use super::committing::CounterTotals;
use super::database::Database;
use super::databases::ALL_DATABASES;
use super::tally::{PoolTotals, Tally};
use crate::blocking::wait_queue::Waiting;
use crate::blocking::waiter::Waiter;
use crate::execute::noted::Noted;
use crate::execute::watched_keys::{KeyWatch, Presence, Watch};
use crate::value::links::LinkUse;
use crate::watch::interest::Interest;
use crate::watch::touched::Touched;
use crate::watch::{Index, SharedQuery};
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_log::Lsn;

/// A key with the number of its database.
pub type KeyId = (u8, Box<[u8]>);

/// One shard of the keyspace. The holder of its lock runs one command at a time on it.
pub struct Shard {
    databases: Vec<Database>,
    /// Clients blocked on keys.
    waiting: Waiting,
    /// Transactions to abort when a key changes.
    watching: HashMap<KeyId, Vec<KeyWatch>>,
    /// Subscribers to changes of keys; `None` if there are none.
    interest: Option<Box<Interest>>,
    tally: Tally,
    /// LSN of the last change of the shard's keys, or of a later snapshot cut.
    last: Lsn,
}

impl Shard {
    pub(super) fn new() -> Self {
        let databases = (0..ALL_DATABASES).map(|_| Database::default()).collect();
        Self {
            databases,
            waiting: Waiting::default(),
            watching: HashMap::new(),
            interest: None,
            tally: Tally::default(),
            last: Lsn::ZERO,
        }
    }

    /// The shard's part of a database. `number` must be that of a database.
    #[inline]
    pub fn database(&self, number: usize) -> &Database {
        &self.databases[number]
    }

    /// As [`Shard::database`], mutable.
    #[inline]
    pub fn database_mut(&mut self, number: usize) -> &mut Database {
        &mut self.databases[number]
    }

    /// Records the LSN of a change of the shard's keys. The lock must have been held since before
    /// the change.
    ///
    /// # Panics
    /// The LSN does not follow that of the previous change, or of a snapshot's cut without this
    /// change.
    #[inline]
    pub(crate) fn note_logged(&mut self, lsn: Lsn) {
        if lsn <= self.last {
            out_of_order(lsn, self.last);
        }
        self.last = lsn;
    }

    /// LSN of the last change of the shard's keys, or of a later snapshot cut.
    pub(crate) fn last(&self) -> Lsn {
        self.last
    }

    /// Records a snapshot's cut at an LSN: the snapshot contains every earlier change of the
    /// shard's keys and no later one.
    ///
    /// # Panics
    /// An earlier change has a greater LSN.
    pub(crate) fn note_cut(&mut self, cut: Lsn) {
        let last = self.last;
        assert!(last <= cut, "a snapshot is cut behind record {cut}, and has the change of record {last}");
        self.last = cut;
    }

    /// All databases, in order.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    pub(crate) fn databases_mut(&mut self) -> &mut [Database] {
        &mut self.databases
    }

    /// Resets the counts of counters, pools and expiry.
    pub(crate) fn begin_counting(&mut self) {
        self.tally.begin();
    }

    /// Samples one of `sample` moves of counters, none if that is 0.
    pub(crate) fn set_churn_sample(&mut self, sample: u32, seed: u64) {
        self.tally.set_sample(sample, seed);
    }

    /// Totals of the shard's counters.
    pub fn counted(&self) -> &CounterTotals {
        self.tally.totals()
    }

    /// Totals of the shard's pools.
    pub fn drawn(&self) -> PoolTotals {
        self.tally.pools()
    }

    /// Number of the shard's keys that were removed because they had expired.
    pub fn expired(&self) -> u64 {
        self.tally.expired()
    }

    pub(crate) fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// The counters that moved most in the last 30 to 60 seconds.
    pub(crate) fn churn(&mut self, now_ms: u64) -> Vec<KeyChurn> {
        self.tally.churn(now_ms)
    }

    /// Returns a database and the counts for its counters.
    #[inline]
    pub(crate) fn counting(&mut self, number: usize) -> (&mut Database, &mut Tally) {
        (&mut self.databases[number], &mut self.tally)
    }

    /// Swaps two databases.
    pub fn swap(&mut self, one: usize, other: usize) {
        self.databases.swap(one, other);
    }

    #[inline]
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    pub(crate) fn waiting_mut(&mut self) -> &mut Waiting {
        &mut self.waiting
    }

    /// Claims the client that has waited longest to take what is at a key. Keys with a deadline at or
    /// before `expired_until_ms` have expired.
    pub(crate) fn claim_waiting(&mut self, db: u8, key: &[u8], expired_until_ms: u64) -> Option<Arc<Waiter>> {
        let entry = self.databases[db as usize].get(super::hash(key), key);
        let entry = entry.filter(|entry| entry.deadline().is_none_or(|at| at > expired_until_ms));
        let held = entry.map(Entry::type_of);
        self.waiting.claim(db, key, |waiter| waiter.can_take(held))
    }

    /// Whether changes of the shard's keys have subscribers.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.interest.is_some()
    }

    /// The watched reads of the shard's keys.
    pub(crate) fn index(&self) -> &Index {
        static EMPTY: Index = Index::new();
        self.interest.as_deref().map_or(&EMPTY, |interest| &interest.queries)
    }

    pub(crate) fn index_mut(&mut self) -> &mut Index {
        &mut self.interest_mut().queries
    }

    /// Subscribers to changes of the shard's keys, created if absent. A caller that removes one
    /// calls [`Shard::drop_interest_if_empty`] afterwards.
    pub(crate) fn interest_mut(&mut self) -> &mut Interest {
        self.interest.get_or_insert_default()
    }

    /// Drops the set of subscribers if it is empty.
    pub(crate) fn drop_interest_if_empty(&mut self) {
        self.interest.take_if(|interest| interest.is_empty());
    }

    /// Collects the watched reads and caching clients that a change of this key concerns. Returns
    /// the number of watched reads of the key that the change cannot affect.
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

    /// Collects the clients that cache the key, for a change that affects no watched read.
    pub(crate) fn note_kept(&mut self, key: &[u8], noted: &mut Vec<Noted>) {
        if let Some(interest) = &mut self.interest {
            interest.tracked.note(key, noted);
            self.drop_interest_if_empty();
        }
    }

    /// As [`Shard::note`], for a change of everything in a database.
    pub(crate) fn note_database(&mut self, db: u8, noted: &mut Vec<Noted>) {
        if let Some(interest) = &mut self.interest {
            interest.note_database(db, noted);
            self.drop_interest_if_empty();
        }
    }

    /// Removes a watched read of a key from the index.
    pub(crate) fn forget_query(&mut self, db: u8, key: &[u8], query: &SharedQuery) {
        self.index_mut().remove(db, key, query);
        self.drop_interest_if_empty();
    }

    /// Removes a watched read of every key from the index.
    pub(crate) fn forget_everywhere(&mut self, query: &SharedQuery) {
        self.index_mut().remove_everywhere(query);
        self.drop_interest_if_empty();
    }

    /// Removes a watched read of the series with some labels from the index.
    pub(crate) fn forget_selecting(&mut self, query: &SharedQuery) {
        self.index_mut().remove_selecting(query);
        self.drop_interest_if_empty();
    }

    /// Whether a change of one of the shard's keys may need the locks of further shards, to serve a
    /// move or to evaluate a watched read.
    #[inline]
    pub(crate) fn reaches_further(&self) -> bool {
        self.waiting.has_moves()
            || self.interest.as_ref().is_some_and(|interest| interest.queries.reaches_further())
    }

    /// Whether a value of any database links to other keys. O(databases).
    pub(crate) fn has_links(&self) -> bool {
        self.databases.iter().any(Database::has_links)
    }

    /// Visits the links of a key's values, in all databases.
    pub(crate) fn for_each_link(&self, key: &[u8], mut visit: impl FnMut(&[u8], LinkUse)) {
        self.databases.iter().for_each(|database| database.for_each_link(key, &mut visit));
    }

    /// Registers a transaction's watch on a key. Keys with a deadline at or before
    /// `expired_until_ms` have expired.
    pub(crate) fn watch(&mut self, db: u8, key: &[u8], watch: &Arc<Watch>, expired_until_ms: u64) {
        let is_expired = presence(&self.databases[db as usize], key, expired_until_ms) == Presence::Expired;
        self.watching.entry((db, key.into())).or_default().push(KeyWatch::new(watch, is_expired));
    }

    /// Whether a watched key was expired when the watch began and has not been removed since.
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

    /// Notifies the transactions that watch a key of its change.
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

    /// Notifies the transactions that watch keys of a database that it is about to be emptied, or
    /// was swapped with `other`.
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

/// State of a key in a database; a deadline at or before `expired_until_ms` has passed.
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
