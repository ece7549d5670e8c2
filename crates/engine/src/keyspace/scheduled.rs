//! Values of a database that housekeeping must find again: counters to commit, pools whose
//! reservations end, and hashes whose fields expire.

use super::due::DueKeys;
use super::uncommitted::Uncommitted;
use super::{Entry, Table};
use crate::value::{Counter, Hash, Object, Pool, TypedValue};

/// Counts and due times of the values that housekeeping visits.
///
/// Every entry is added when it gets its value, and removed before the value leaves it.
#[derive(Default)]
pub(super) struct Scheduled {
    /// Counters that have moved since their last commit.
    pub(super) uncommitted: Uncommitted,
    /// Pools with reservations, by the due time that each pool stores.
    reserving: DueKeys,
    /// Hashes with fields that expire, by the time of the first that each hash stores.
    timed: DueKeys,
    counters: usize,
    /// Number of counters that expire when idle.
    idle_counters: usize,
    pools: usize,
}

impl Scheduled {
    /// Number of counters.
    pub(super) fn counters(&self) -> usize {
        self.counters
    }

    /// Number of counters that expire when idle.
    pub(super) fn idle_counters(&self) -> usize {
        self.idle_counters
    }

    /// Number of pools.
    pub(super) fn pools(&self) -> usize {
        self.pools
    }

    /// Adds an entry, if its value is of a type that housekeeping visits. O(log n).
    #[inline]
    pub(super) fn add(&mut self, hash: u64, entry: &mut Entry) {
        match entry.object_mut() {
            Some(Object::Counter(counter)) => {
                self.counters += 1;
                self.idle_counters += usize::from(counter.terms().idle_ms > 0);
                self.uncommitted.adopt(hash, counter);
            }
            Some(Object::Pool(pool)) => {
                self.pools += 1;
                self.list(hash, pool);
            }
            Some(Object::Hash(fields)) => {
                self.list_hash(hash, fields);
            }
            _ => {}
        }
    }

    /// Removes an entry that was added, before its value changes its type or leaves. O(log n).
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, entry: &Entry) {
        match entry.object() {
            Some(Object::Counter(counter)) => {
                self.counters -= 1;
                self.idle_counters -= usize::from(counter.terms().idle_ms > 0);
                self.uncommitted.forget(hash, counter);
            }
            Some(Object::Pool(pool)) => {
                self.pools -= 1;
                self.unlist(hash, pool);
            }
            Some(Object::Hash(fields)) => self.unlist_hash(hash, fields),
            _ => {}
        }
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Moves a counter to its new place after its terms have changed.
    pub(super) fn terms_changed(&mut self, hash: u64, counter: &mut Counter, idle_before_ms: u64) {
        self.uncommitted.adopt(hash, counter);
        self.idle_counters -= usize::from(idle_before_ms > 0);
        self.idle_counters += usize::from(counter.terms().idle_ms > 0);
    }

    /// Moves a pool to its current place. Returns when its next reservation ends, in milliseconds
    /// since 1970.
    pub(super) fn move_pool(&mut self, hash: u64, pool: &mut Pool) -> Option<u64> {
        self.unlist(hash, pool);
        self.list(hash, pool)
    }

    /// Returns when the next reservation of a pool ends, in milliseconds since 1970.
    pub(super) fn next_reservation(&self) -> Option<u64> {
        self.reserving.next()
    }

    /// Returns the key of a pool with a reservation that has ended.
    pub(super) fn first_reserving<'t>(&self, table: &'t Table<Entry>, now_ms: u64) -> Option<&'t [u8]> {
        let (due_ms, hash) = self.reserving.first_due(now_ms)?;
        table.find(hash, |entry| is_listed(entry, due_ms)).map(Entry::key)
    }

    /// Moves a hash to its current place. Returns when its next field expires, in milliseconds since 1970.
    pub(super) fn move_hash(&mut self, hash: u64, fields: &mut Hash) -> Option<u64> {
        self.unlist_hash(hash, fields);
        self.list_hash(hash, fields)
    }

    /// Returns when the next field of a hash expires, in milliseconds since 1970.
    #[inline]
    pub(super) fn next_field(&self) -> Option<u64> {
        self.timed.next()
    }

    /// Returns the key of a hash with a field that expires by now.
    pub(super) fn first_timed<'t>(&self, table: &'t Table<Entry>, now_ms: u64) -> Option<&'t [u8]> {
        let (due_ms, place) = self.timed.first_due(now_ms)?;
        let is_listed = |entry: &Entry| {
            entry.object().and_then(Hash::from_object).is_some_and(|hash| hash.listed_ms() == due_ms)
        };
        table.find(place, is_listed).map(Entry::key)
    }

    /// Number of hashes with fields that expire.
    #[inline]
    pub(super) fn timed_hashes(&self) -> usize {
        self.timed.len()
    }

    fn list_hash(&mut self, hash: u64, fields: &mut Hash) -> Option<u64> {
        let next_ms = fields.next_time();
        fields.set_listed_ms(next_ms.unwrap_or(0));
        if let Some(next_ms) = next_ms {
            self.timed.insert(next_ms, hash);
        }
        next_ms
    }

    fn unlist_hash(&mut self, hash: u64, fields: &Hash) {
        if fields.listed_ms() != 0 {
            self.timed.remove(fields.listed_ms(), hash);
        }
    }

    /// Number of open reservations of pools. O(pools with reservations).
    pub(super) fn reservations(&self, table: &Table<Entry>) -> usize {
        let pools = self
            .reserving
            .iter()
            .filter_map(|(due_ms, hash)| pool(table.find(hash, |entry| is_listed(entry, due_ms))?));
        pools.map(|pool| pool.inner().reservations().len()).sum()
    }

    fn list(&mut self, hash: u64, pool: &mut Pool) -> Option<u64> {
        let due_ms = pool.due_ms();
        pool.set_listed_ms(due_ms);
        if due_ms == 0 {
            return None;
        }
        self.reserving.insert(due_ms, hash);
        Some(due_ms)
    }

    fn unlist(&mut self, hash: u64, pool: &Pool) {
        if pool.listed_ms() != 0 {
            self.reserving.remove(pool.listed_ms(), hash);
        }
    }
}

fn pool(entry: &Entry) -> Option<&Pool> {
    entry.object().and_then(Pool::from_object)
}

/// Whether an entry is a pool that is listed at this time.
fn is_listed(entry: &Entry, due_ms: u64) -> bool {
    pool(entry).is_some_and(|pool| pool.listed_ms() == due_ms)
}
