//! One shard's part of one database: its entries, their deadlines, and the hook by which a snapshot sees an entry before
//! it changes.

use super::copying::{Copying, Numbers, Slice, is_captured};
use super::due::DueKeys;
use super::uncommitted::{Exposure, Uncommitted};
use super::{Entry, Payload, Table};
use tidemark_fault::{Fault, is_planted};

use crate::value::{Counter, Object, Pool, Terms};
use std::collections::BTreeSet;
use tidemark_counter::Kind;

/// What a write does to the key's deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// Leaves it.
    Keep,
    /// Removes it.
    Clear,
    /// Sets it, in milliseconds since 1970.
    At(u64),
}

/// Entries and deadlines. Knows nothing of time: callers decide what has expired.
#[derive(Default)]
pub struct Database {
    table: Table<Entry>,
    /// Every deadline with the hash of its key: the order in which active expiry works.
    deadlines: BTreeSet<(u64, u64)>,
    /// Counters that have moved since they were committed.
    uncommitted: Uncommitted,
    /// Pools with reservations, each where it says itself.
    reserving: DueKeys,
    /// How many keys are counters.
    counters: usize,
    /// How many of them leave when they are idle.
    idle_counters: usize,
    /// How many keys are pools.
    pools: usize,
    /// Number of the latest snapshot. An entry whose own number is older has not been seen by it.
    epoch: u16,
    copying: Option<Box<Copying>>,
}

impl Database {
    /// How many keys there are, expired but not yet removed ones included.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// How many keys have a deadline.
    pub fn deadline_count(&self) -> usize {
        self.deadlines.len()
    }

    /// How many keys are counters, expired but not yet removed ones included.
    pub fn counter_count(&self) -> usize {
        self.counters
    }

    /// How many keys are counters that leave when they are idle, expired but not yet removed ones included.
    pub fn idle_counter_count(&self) -> usize {
        self.idle_counters
    }

    /// How many keys are pools, expired but not yet removed ones included.
    pub fn pool_count(&self) -> usize {
        self.pools
    }

    /// How many reservations of pools are open. O(pools that have any).
    pub fn reservation_count(&self) -> usize {
        let listed = self.reserving.iter().filter_map(|(due_ms, hash)| {
            let is_listed = |entry: &Entry| pool(entry).is_some_and(|pool| pool.listed_ms() == due_ms);
            pool(self.table.find(hash, is_listed)?)
        });
        listed.map(|pool| pool.inner().reservations().len()).sum()
    }

    /// The earliest deadline, in milliseconds since 1970.
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// A key whose deadline is `now` or earlier.
    pub fn first_due(&self, now: u64) -> Option<&[u8]> {
        let &(at, hash) = self.deadlines.first().filter(|&&(at, _)| at <= now)?;
        self.table.find(hash, |entry| entry.deadline() == Some(at)).map(Entry::key)
    }

    /// All entries.
    pub fn table(&self) -> &Table<Entry> {
        &self.table
    }

    /// The entry of a key.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<&Entry> {
        self.table.get(hash, key)
    }

    /// The entry of a key, to change its value (never its deadline: see [`Database::set_deadline`]).
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        let entry = self.table.get_mut(hash, key)?;
        if let Some(copying) = &mut self.copying {
            copying.see(entry);
        }
        Some(entry)
    }

    /// Adds an entry whose key is absent.
    #[inline]
    pub fn insert(&mut self, hash: u64, mut entry: Entry) {
        entry.set_epoch(self.epoch);
        if let Some(at) = entry.deadline() {
            self.deadlines.insert((at, hash));
        }
        if let Some(counter) = counter_mut(&mut entry) {
            self.counters += 1;
            self.idle_counters += usize::from(counter.terms().idle_ms > 0);
            self.uncommitted.adopt(hash, counter);
        }
        if let Some(pool) = pool_mut(&mut entry) {
            self.pools += 1;
            list(&mut self.reserving, hash, pool);
        }
        self.table.insert(hash, entry);
    }

    /// When the next reservation of a pool is over. Milliseconds since 1970.
    pub(crate) fn next_reservation(&self) -> Option<u64> {
        self.reserving.next()
    }

    /// The key of a pool with a reservation that is over by now.
    pub(crate) fn first_reserving(&self, now_ms: u64) -> Option<&[u8]> {
        let (due_ms, hash) = self.reserving.first_due(now_ms)?;
        let is_listed = |entry: &Entry| pool(entry).is_some_and(|pool| pool.listed_ms() == due_ms);
        self.table.find(hash, is_listed).map(Entry::key)
    }

    /// Lists the pool at a key where it should be listed now, if it has changed: when its next reservation is over.
    pub(crate) fn list_pool(&mut self, hash: u64, key: &[u8]) -> Option<u64> {
        let pool = pool_mut(self.table.get_mut(hash, key)?)?;
        unlist(&mut self.reserving, hash, pool);
        list(&mut self.reserving, hash, pool)
    }

    /// Sets a key's value, whatever it was; `clock` is the time of this access, in seconds since 1970.
    #[inline]
    pub fn set(&mut self, hash: u64, key: &[u8], payload: Payload<'_>, deadline: Deadline, clock: u32) {
        let Some(entry) = self.table.get_mut(hash, key) else {
            let at = if let Deadline::At(at) = deadline { Some(at) } else { None };
            let entry = Entry::new(key, payload, at);
            entry.touch(clock);
            return self.insert(hash, entry);
        };
        entry.touch(clock);
        if let Some(copying) = &mut self.copying
            && !is_planted(Fault::SnapshotCut)
        {
            copying.see(entry);
            copying.hand_over(entry);
        }
        if !self.uncommitted.is_empty() {
            self.uncommitted.forget(hash, entry);
        }
        if self.pools > 0
            && let Some(pool) = pool(entry)
        {
            self.pools -= 1;
            unlist(&mut self.reserving, hash, pool);
        }
        if self.counters > 0
            && let Some(counter) = entry.object().and_then(counter)
        {
            self.counters -= 1;
            self.idle_counters -= usize::from(counter.terms().idle_ms > 0);
        }
        let is_pool = matches!(&payload, Payload::Object(object) if matches!(**object, Object::Pool(_)));
        entry.set(payload);
        if let Some(counter) = counter_mut(entry) {
            self.counters += 1;
            self.idle_counters += usize::from(counter.terms().idle_ms > 0);
            self.uncommitted.adopt(hash, counter);
        }
        if is_pool && let Some(pool) = pool_mut(entry) {
            self.pools += 1;
            list(&mut self.reserving, hash, pool);
        }
        let new = match deadline {
            Deadline::Keep => return,
            Deadline::Clear => None,
            Deadline::At(at) => Some(at),
        };
        move_deadline(&mut self.deadlines, hash, entry, new);
    }

    /// Removes a key; what it held, to be dropped, unless a running snapshot has yet to see it.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let mut entry = self.unlink(hash, key)?;
        if let Some(copying) = &mut self.copying {
            copying.see(&mut entry);
            copying.hand_over(&mut entry);
        }
        Some(entry)
    }

    /// Takes a key out, to [`Database::place`] it under another.
    pub fn take(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let mut entry = self.unlink(hash, key)?;
        if let Some(copying) = &mut self.copying {
            copying.see(&mut entry);
        }
        Some(entry)
    }

    /// Adds an entry that was taken elsewhere and whose key is absent here.
    pub fn place(&mut self, hash: u64, entry: Entry) {
        if is_captured(&entry) {
            let epoch = self.epoch;
            let copying = self.copying.get_or_insert_with(|| Box::new(Copying::reopened(epoch)));
            copying.adopt(entry.key());
        }
        self.insert(hash, entry);
    }

    /// When the next counter is due. Milliseconds since 1970.
    pub fn next_commit(&self) -> Option<u64> {
        self.uncommitted.next_due()
    }

    /// The key of a counter that is to be committed now.
    pub(crate) fn pop_uncommitted(&mut self, now_ms: u64) -> Option<Box<[u8]>> {
        self.uncommitted.pop_due(&mut self.table, now_ms)
    }

    /// The keys of all counters that have something to commit.
    pub(crate) fn uncommitted_keys(&self) -> Vec<Box<[u8]>> {
        self.uncommitted.keys(&self.table)
    }

    /// How much is uncommitted. O(counters that have moved).
    pub fn exposure(&self) -> Exposure {
        self.uncommitted.exposure(&self.table)
    }

    /// Lists a counter, whose place was `before` (0: none), where its own listing says.
    pub(crate) fn list_uncommitted(&mut self, hash: u64, before: u64, due_ms: u64) {
        self.uncommitted.list(hash, before, due_ms);
    }

    /// Takes a counter that has nothing to commit out of the list. O(log n) with n the listed ones.
    pub(crate) fn unlist_committed(&mut self, hash: u64, key: &[u8]) {
        if let Some(Object::Counter(counter)) = self.table.get_mut(hash, key).and_then(Entry::object_mut) {
            self.uncommitted.end(hash, counter);
        }
    }

    /// Changes a counter's limit, and its terms if some are given; the counter's idle time before. `None` if the key holds no counter.
    pub(crate) fn set_counter(
        &mut self,
        hash: u64,
        key: &[u8],
        kind: Kind,
        terms: Option<Terms>,
    ) -> Option<u64> {
        // A running snapshot sees it first.
        self.get_mut(hash, key)?;
        let counter = self.table.get_mut(hash, key).and_then(counter_mut)?;
        counter.set_kind(kind);
        let before_ms = counter.terms().idle_ms;
        if let Some(terms) = terms {
            let idle_ms = terms.idle_ms;
            counter.set_terms(terms);
            self.uncommitted.adopt(hash, counter);
            self.idle_counters -= usize::from(before_ms > 0);
            self.idle_counters += usize::from(idle_ms > 0);
        }
        Some(before_ms)
    }

    fn unlink(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let entry = self.table.remove(hash, key)?;
        if let Some(at) = entry.deadline() {
            self.deadlines.remove(&(at, hash));
        }
        if !self.uncommitted.is_empty() {
            self.uncommitted.forget(hash, &entry);
        }
        if self.pools > 0
            && let Some(pool) = pool(&entry)
        {
            self.pools -= 1;
            unlist(&mut self.reserving, hash, pool);
        }
        if self.counters > 0
            && let Some(counter) = entry.object().and_then(counter)
        {
            self.counters -= 1;
            self.idle_counters -= usize::from(counter.terms().idle_ms > 0);
        }
        Some(entry)
    }

    /// Sets or clears a key's deadline; `false` if the key is absent.
    pub fn set_deadline(&mut self, hash: u64, key: &[u8], deadline: Option<u64>) -> bool {
        let Some(entry) = self.table.get_mut(hash, key) else { return false };
        if let Some(copying) = &mut self.copying {
            copying.see(entry);
        }
        move_deadline(&mut self.deadlines, hash, entry, deadline);
        true
    }

    /// Removes every key and gives the old table to the caller, who may drop it elsewhere. A running snapshot keeps it
    /// until its walk has seen it.
    pub fn clear(&mut self) -> Option<Table<Entry>> {
        self.deadlines = BTreeSet::new();
        self.uncommitted.clear();
        self.reserving.clear();
        (self.counters, self.idle_counters, self.pools) = (0, 0, 0);
        let table = std::mem::take(&mut self.table);
        match &mut self.copying {
            Some(copying) if !copying.is_done() => {
                copying.hand_over_all(table);
                None
            }
            _ => Some(table),
        }
    }

    /// Opens the database to a snapshot whose cut is now.
    pub(crate) fn begin_copying(&mut self, number: u8, numbers: Numbers) {
        assert!(
            self.copying.is_none(),
            "a snapshot begins before the one before it is done with database {number}"
        );
        self.epoch = self.epoch.wrapping_add(1);
        self.copying = Some(Box::new(Copying::new(number, self.epoch, numbers)));
    }

    /// Closes the database to a snapshot that will not be completed.
    pub(crate) fn stop_copying(&mut self) {
        if let Some(copying) = self.copying.take() {
            copying.stop(&mut self.table);
        }
    }

    /// Whether a running snapshot has still to do with this database.
    pub(crate) fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Asserts that a running snapshot has seen a key's entry before it was changed, if the entry
    /// was there at the cut.
    ///
    /// # Panics
    /// It has not: what it writes of the entry later is not of its cut.
    #[cold]
    pub(crate) fn assert_seen(&self, hash: u64, key: &[u8]) {
        let Some(entry) = self.table.get(hash, key) else { return };
        let (seen, current) = (entry.epoch(), self.epoch);
        assert!(
            seen == current,
            "a key of {} bytes was changed before snapshot {current} has seen it: it was last seen by {seen}",
            key.len()
        );
    }

    /// Lets the snapshot walk on by about `budget` entries, or by fewer that are large; `None` if it has nothing to do
    /// with this database (any more).
    pub(crate) fn copy_slice(&mut self, budget: usize) -> Option<Slice> {
        let copying = self.copying.as_mut()?;
        let slice = copying.step(&mut self.table, budget);
        if copying.is_done() {
            self.copying = None;
        }
        Some(slice)
    }
}

#[inline]
fn counter(object: &Object) -> Option<&Counter> {
    match object {
        Object::Counter(counter) => Some(counter),
        _ => None,
    }
}

fn pool(entry: &Entry) -> Option<&Pool> {
    match entry.object() {
        Some(Object::Pool(pool)) => Some(pool),
        _ => None,
    }
}

fn counter_mut(entry: &mut Entry) -> Option<&mut Counter> {
    match entry.object_mut() {
        Some(Object::Counter(counter)) => Some(counter),
        _ => None,
    }
}

fn pool_mut(entry: &mut Entry) -> Option<&mut Pool> {
    match entry.object_mut() {
        Some(Object::Pool(pool)) => Some(pool),
        _ => None,
    }
}

/// Lists a pool that is not listed where it should be, and says where that is.
fn list(reserving: &mut DueKeys, hash: u64, pool: &mut Pool) -> Option<u64> {
    let due_ms = pool.due_ms();
    pool.set_listed_ms(due_ms);
    if due_ms == 0 {
        return None;
    }
    reserving.insert(due_ms, hash);
    Some(due_ms)
}

fn unlist(reserving: &mut DueKeys, hash: u64, pool: &Pool) {
    if pool.listed_ms() != 0 {
        reserving.remove(pool.listed_ms(), hash);
    }
}

fn move_deadline(deadlines: &mut BTreeSet<(u64, u64)>, hash: u64, entry: &mut Entry, new: Option<u64>) {
    let old = entry.deadline();
    if old == new {
        return;
    }
    if let Some(at) = old {
        deadlines.remove(&(at, hash));
    }
    entry.set_deadline(new);
    if let Some(at) = new {
        deadlines.insert((at, hash));
    }
}
