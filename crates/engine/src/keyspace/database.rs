//! One shard's part of one database: its entries, their deadlines, and the hook by which a snapshot
//! sees an entry before it changes.

use super::copying::{Copying, Cut, Slice, is_captured};
use super::due::DueKeys;
use super::label_index::LabelIndex;
use super::scheduled::Scheduled;
use super::sights::Sights;
use super::uncommitted::Exposure;
use super::{Entry, Payload, Table};
use tidemark_fault::{Fault, is_planted};

use crate::value::links::LinkUse;
use crate::value::{Counter, Hash, Labels, Object, Pool, Terms, TimeSeries, TypedValue};
use tidemark_counter::Kind;

/// Effect of a write on the key's deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// Keeps it.
    Keep,
    /// Removes it.
    Clear,
    /// Sets it, in milliseconds since 1970.
    At(u64),
}

/// Entries and deadlines. Independent of the clock: callers decide what has expired.
#[derive(Default)]
pub struct Database {
    table: Table<Entry>,
    /// Every deadline with the hash of its key, in the order of active expiry.
    deadlines: DueKeys,
    scheduled: Scheduled,
    labels: LabelIndex,
    /// Number of keys whose values link to others.
    links: usize,
    sights: Sights,
    /// Number of the latest snapshot. An entry with an older number has not been seen by it.
    epoch: u16,
    copying: Option<Box<Copying>>,
}

impl Database {
    /// Number of keys, including expired ones that are not yet removed.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Number of keys with a deadline.
    pub fn deadline_count(&self) -> usize {
        self.deadlines.len()
    }

    /// Number of counters, including expired ones that are not yet removed.
    pub fn counter_count(&self) -> usize {
        self.scheduled.counters()
    }

    /// Number of counters that expire when idle, including expired ones that are not yet removed.
    pub fn idle_counter_count(&self) -> usize {
        self.scheduled.idle_counters()
    }

    /// Number of pools, including expired ones that are not yet removed.
    pub fn pool_count(&self) -> usize {
        self.scheduled.pools()
    }

    /// Number of open reservations of pools. O(pools with reservations).
    pub fn reservation_count(&self) -> usize {
        self.scheduled.reservations(&self.table)
    }

    /// The earliest deadline, in milliseconds since 1970.
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.next()
    }

    /// Returns a key whose deadline is `now` or earlier.
    pub fn first_due(&self, now: u64) -> Option<&[u8]> {
        let (at, hash) = self.deadlines.first_due(now)?;
        self.table.find(hash, |entry| entry.deadline() == Some(at)).map(Entry::key)
    }

    /// All entries.
    pub fn table(&self) -> &Table<Entry> {
        &self.table
    }

    /// Returns the entry of a key.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<&Entry> {
        self.table.get(hash, key)
    }

    /// As [`Database::get`], mutable. The deadline changes only by [`Database::set_deadline`].
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        let entry = self.table.get_mut(hash, key)?;
        if let Some(copying) = &mut self.copying {
            copying.see(entry);
        }
        Some(entry)
    }

    /// Adds an entry; its key must be absent.
    #[inline]
    pub fn insert(&mut self, hash: u64, mut entry: Entry) {
        entry.set_epoch(self.epoch);
        if let Some(at) = entry.deadline() {
            self.deadlines.insert(at, hash);
        }
        self.scheduled.add(hash, &mut entry);
        self.labels.add(hash, &entry);
        self.links += usize::from(has_links(&entry));
        self.table.insert(hash, entry);
    }

    /// Time at which the next reservation of a pool ends, in milliseconds since 1970.
    pub(crate) fn next_reservation(&self) -> Option<u64> {
        self.scheduled.next_reservation()
    }

    /// Returns the key of a pool with a reservation that has ended.
    pub(crate) fn first_reserving(&self, now_ms: u64) -> Option<&[u8]> {
        self.scheduled.first_reserving(&self.table, now_ms)
    }

    /// Moves a pool to its current place in the list of reservations. Returns when its next
    /// reservation ends, in milliseconds since 1970.
    pub(crate) fn list_pool(&mut self, hash: u64, key: &[u8]) -> Option<u64> {
        let pool = self.table.get_mut(hash, key)?.object_mut().and_then(Pool::from_object_mut)?;
        self.scheduled.move_pool(hash, pool)
    }

    /// Time at which the next field of a hash expires, in milliseconds since 1970.
    #[inline]
    pub(crate) fn next_field_time(&self) -> Option<u64> {
        self.scheduled.next_field()
    }

    /// Returns the key of a hash with a field that expires by `now_ms`.
    pub(crate) fn first_timed(&self, now_ms: u64) -> Option<&[u8]> {
        self.scheduled.first_timed(&self.table, now_ms)
    }

    /// Number of hashes with fields that expire, including those whose time has come.
    #[inline]
    pub fn timed_hash_count(&self) -> usize {
        self.scheduled.timed_hashes()
    }

    /// Moves a hash to its current place in the list of those with fields that expire. Returns when its
    /// next field does, in milliseconds since 1970.
    #[cold]
    pub(crate) fn list_hash(&mut self, hash: u64, key: &[u8]) -> Option<u64> {
        let fields = self.table.get_mut(hash, key)?.object_mut().and_then(Hash::from_object_mut)?;
        self.scheduled.move_hash(hash, fields)
    }

    /// Sets a key's value, replacing any. `clock` is the time of this access, in seconds since
    /// 1970.
    #[inline]
    pub fn set(&mut self, hash: u64, key: &[u8], payload: Payload<'_>, deadline: Deadline, clock: u32) {
        let Some(entry) = self.table.get_mut(hash, key) else {
            let at = if let Deadline::At(at) = deadline { Some(at) } else { None };
            let entry = Entry::new(key, payload, at);
            entry.touch(clock);
            return self.insert(hash, entry);
        };
        entry.touch(clock);
        // Before a running snapshot may take the value.
        self.scheduled.remove(hash, entry);
        self.labels.remove(hash, entry);
        self.links -= usize::from(has_links(entry));
        if let Some(copying) = &mut self.copying
            && !is_planted(Fault::SnapshotCut)
        {
            copying.see(entry);
            copying.hand_over(entry);
        }
        entry.set(payload);
        self.scheduled.add(hash, entry);
        self.labels.add(hash, entry);
        self.links += usize::from(has_links(entry));
        let new = match deadline {
            Deadline::Keep => return,
            Deadline::Clear => None,
            Deadline::At(at) => Some(at),
        };
        move_deadline(&mut self.deadlines, hash, entry, new);
    }

    /// Removes a key. Returns its entry, without an object that a running snapshot still needs.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let mut entry = self.unlink(hash, key)?;
        if let Some(copying) = &mut self.copying {
            copying.see(&mut entry);
            copying.hand_over(&mut entry);
        }
        Some(entry)
    }

    /// Takes a key out, to [`Database::place`] it under another key.
    pub fn take(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let mut entry = self.unlink(hash, key)?;
        if let Some(copying) = &mut self.copying {
            copying.see(&mut entry);
        }
        Some(entry)
    }

    /// Adds an entry that was taken elsewhere; its key must be absent here.
    pub fn place(&mut self, hash: u64, entry: Entry) {
        if is_captured(&entry) {
            let epoch = self.epoch;
            let copying = self.copying.get_or_insert_with(|| Box::new(Copying::reopened(epoch)));
            copying.adopt(entry.key());
        }
        self.insert(hash, entry);
    }

    /// When the next counter is due for a commit, in milliseconds since 1970.
    pub fn next_commit(&self) -> Option<u64> {
        self.scheduled.uncommitted.next_due()
    }

    /// Returns the key of a counter that is due for a commit.
    pub(crate) fn pop_uncommitted(&mut self, now_ms: u64) -> Option<Box<[u8]>> {
        self.scheduled.uncommitted.pop_due(&mut self.table, now_ms)
    }

    /// Whether a counter has uncommitted changes.
    pub(crate) fn has_uncommitted(&self) -> bool {
        !self.uncommitted_keys().is_empty()
    }

    /// The keys of all counters with uncommitted changes.
    pub(crate) fn uncommitted_keys(&self) -> Vec<Box<[u8]>> {
        self.scheduled.uncommitted.keys(&self.table)
    }

    /// Sums up what is uncommitted. O(counters that have moved).
    pub fn exposure(&self) -> Exposure {
        self.scheduled.uncommitted.exposure(&self.table)
    }

    /// Moves a counter in the list from its place `before` (0: none) to `due_ms`.
    pub(crate) fn list_uncommitted(&mut self, hash: u64, before: u64, due_ms: u64) {
        self.scheduled.uncommitted.list(hash, before, due_ms);
    }

    /// Removes a counter with nothing to commit from the list. O(log n) for n listed counters.
    pub(crate) fn unlist_committed(&mut self, hash: u64, key: &[u8]) {
        if let Some(counter) = self.table.get_mut(hash, key).and_then(counter_mut) {
            self.scheduled.uncommitted.end(hash, counter);
        }
    }

    /// Changes a counter's limit and, if given, its terms. Returns the previous idle time, or
    /// `None` if the key holds no counter.
    pub(crate) fn set_counter(
        &mut self,
        hash: u64,
        key: &[u8],
        kind: Kind,
        terms: Option<Terms>,
    ) -> Option<u64> {
        // A running snapshot sees the entry first.
        self.get_mut(hash, key)?;
        let counter = self.table.get_mut(hash, key).and_then(counter_mut)?;
        counter.set_kind(kind);
        let before_ms = counter.terms().idle_ms;
        if let Some(terms) = terms {
            counter.set_terms(terms);
            self.scheduled.terms_changed(hash, counter, before_ms);
        }
        Some(before_ms)
    }

    /// The labels of the series and lenses.
    pub(crate) fn labels(&self) -> &LabelIndex {
        &self.labels
    }

    /// Replaces the labels of a series. Returns `false` if the key holds none.
    pub(crate) fn set_labels(&mut self, hash: u64, key: &[u8], labels: Labels) -> bool {
        // A running snapshot sees the entry first.
        if self.get_mut(hash, key).is_none() {
            return false;
        }
        let entry = self.table.get_mut(hash, key).and_then(Entry::object_mut);
        let Some(series) = entry.and_then(TimeSeries::from_object_mut) else { return false };
        self.labels.remove_labels(hash, series.labels());
        series.set_labels(labels);
        self.labels.add_labels(hash, series.labels());
        true
    }

    /// Whether a key's value links to other keys, or a lens sees a key.
    #[inline]
    pub(crate) fn has_links(&self) -> bool {
        self.links > 0 || !self.sights.is_empty()
    }

    /// Visits the links of a key's value, and the lenses that see the key.
    pub(crate) fn for_each_link(&self, key: &[u8], visit: &mut dyn FnMut(&[u8], LinkUse)) {
        if !self.has_links() {
            return;
        }
        self.sights.of(key).for_each(|lens| visit(lens, LinkUse::Shows));
        let object = self.table.get(super::hash(key), key).and_then(Entry::object);
        if let Some(linking) = object.and_then(Object::linking) {
            linking.for_each_link(visit);
        }
    }

    /// Notes whether a lens sees a key.
    pub(crate) fn note_sight(&mut self, key: &[u8], lens: &[u8], sees: bool) {
        if sees { self.sights.add(key, lens) } else { self.sights.remove(key, lens) }
    }

    /// Changes the links of a key's value. Returns `None` if the key has no object.
    pub(crate) fn change_links<R>(
        &mut self,
        hash: u64,
        key: &[u8],
        change: impl FnOnce(&mut Object) -> R,
    ) -> Option<R> {
        // A running snapshot sees the entry first.
        let object = self.get_mut(hash, key)?.object_mut()?;
        let had_links = object.has_links();
        let result = change(object);
        let has_links = object.has_links();
        self.links = self.links + usize::from(has_links) - usize::from(had_links);
        Some(result)
    }

    fn unlink(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let entry = self.table.remove(hash, key)?;
        if let Some(at) = entry.deadline() {
            self.deadlines.remove(at, hash);
        }
        self.scheduled.remove(hash, &entry);
        self.labels.remove(hash, &entry);
        self.links -= usize::from(has_links(&entry));
        Some(entry)
    }

    /// Sets or clears a key's deadline. Returns `false` if the key is absent.
    pub fn set_deadline(&mut self, hash: u64, key: &[u8], deadline: Option<u64>) -> bool {
        let Some(entry) = self.table.get_mut(hash, key) else { return false };
        if let Some(copying) = &mut self.copying {
            copying.see(entry);
        }
        move_deadline(&mut self.deadlines, hash, entry, deadline);
        true
    }

    /// Removes every key and returns the old table, which the caller may drop elsewhere. A running
    /// snapshot keeps the table until its walk has seen it.
    pub fn clear(&mut self) -> Option<Table<Entry>> {
        self.deadlines = DueKeys::default();
        self.scheduled.clear();
        self.labels = LabelIndex::default();
        self.links = 0;
        self.sights = Sights::default();
        let table = std::mem::take(&mut self.table);
        match &mut self.copying {
            Some(copying) if !copying.is_done() => {
                copying.hand_over_all(table);
                None
            }
            _ => Some(table),
        }
    }

    /// Starts a snapshot of this database, whose cut is now.
    pub(crate) fn begin_copying(&mut self, number: u8, cut: Cut) {
        assert!(
            self.copying.is_none(),
            "a snapshot begins before the one before it is done with database {number}"
        );
        self.epoch = self.epoch.wrapping_add(1);
        self.copying = Some(Box::new(Copying::new(number, self.epoch, cut)));
    }

    /// Visits about `budget` entries from a position of the hash order, in a way that changes no answer.
    /// Returns the next position; 0 at the end.
    pub(crate) fn scan_entries_mut(
        &mut self,
        position: u64,
        budget: usize,
        mut visit: impl FnMut(&mut Entry),
    ) -> u64 {
        self.table.scan_mut(position, budget, |entry| {
            visit(entry);
            1
        })
    }

    /// Stops a snapshot that will not be completed.
    pub(crate) fn stop_copying(&mut self) {
        if let Some(copying) = self.copying.take() {
            copying.stop(&mut self.table);
        }
    }

    /// Whether a running snapshot still needs this database.
    pub(crate) fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Asserts that a running snapshot saw a key's entry before it changed, if the entry existed at
    /// the cut.
    ///
    /// # Panics
    /// It did not see it: it would write a state of the entry later than its cut.
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

    /// Advances the snapshot's walk by about `budget` entries, fewer if they are large. `None` if
    /// the snapshot does not need this database.
    pub(crate) fn copy_slice(&mut self, budget: usize) -> Option<Slice> {
        let copying = self.copying.as_mut()?;
        let slice = copying.step(&mut self.table, budget);
        if copying.is_done() {
            self.copying = None;
        }
        Some(slice)
    }
}

fn has_links(entry: &Entry) -> bool {
    entry.object().is_some_and(Object::has_links)
}

fn counter_mut(entry: &mut Entry) -> Option<&mut Counter> {
    entry.object_mut().and_then(Counter::from_object_mut)
}

fn move_deadline(deadlines: &mut DueKeys, hash: u64, entry: &mut Entry, new: Option<u64>) {
    let old = entry.deadline();
    if old == new {
        return;
    }
    if let Some(at) = old {
        deadlines.remove(at, hash);
    }
    entry.set_deadline(new);
    if let Some(at) = new {
        deadlines.insert(at, hash);
    }
}
