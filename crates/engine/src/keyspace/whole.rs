//! All shards: which one a key is in, and their locks.

use super::committing::Committing;
use super::shard::Shard;
use super::slot::{SLOTS, slot};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Default number of shards: enough that a few threads seldom meet, few enough that commands over all keys lock quickly.
pub const SHARDS: usize = 64;

/// Default for how many leases a limiter may have at once: 240 kB.
pub const LEASES: usize = 10_000;

/// Each shard on cache lines of its own, so that two threads that lock neighbours do not fight over one line.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// All keys of the server.
pub struct Keyspace {
    shards: Box<[Padded]>,
    /// How many answers of watched reads were known to be the same behind a change of their key.
    spared: AtomicU64,
    committing: Committing,
    /// How many leases a limiter may have at once.
    leases_max: AtomicUsize,
}

impl Keyspace {
    /// An empty keyspace of `shards` shards, between 1 and [`SLOTS`].
    pub fn new(shards: usize) -> Self {
        assert!((1..=SLOTS).contains(&shards), "between 1 and {SLOTS} shards, not {shards}");
        let shards = (0..shards).map(|_| Padded(Mutex::new(Shard::new()))).collect();
        let (spared, leases_max) = (AtomicU64::new(0), AtomicUsize::new(LEASES));
        Self { shards, spared, committing: Committing::default(), leases_max }
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The shard of a key.
    #[inline]
    pub fn shard_of(&self, key: &[u8]) -> usize {
        slot(key) % self.shards.len()
    }

    /// Locks one shard. Callers that need several lock them in the order of their indices.
    #[inline]
    pub fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all counters have in common.
    #[inline]
    pub(crate) fn committing(&self) -> &Committing {
        &self.committing
    }

    /// How many leases a limiter may have at once.
    pub(crate) fn leases_max(&self) -> usize {
        self.leases_max.load(Ordering::Relaxed)
    }

    /// Says how many leases a limiter may have at once, at least 1. Those that have more keep them.
    pub fn limit_leases(&self, leases_max: usize) {
        self.leases_max.store(leases_max.max(1), Ordering::Relaxed);
    }

    /// Counts watched reads that need not be answered anew behind a change of their key.
    pub(crate) fn count_spared(&self, count: usize) {
        if count > 0 {
            self.spared.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// How many have been counted.
    pub(crate) fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }

    /// Locks all shards, in order.
    pub fn lock_all(&self) -> Vec<MutexGuard<'_, Shard>> {
        (0..self.shards.len()).map(|index| self.lock(index)).collect()
    }
}
