//! All shards: which one a key is in, and their locks.

use super::committing::Committing;
use super::shard::Shard;
use super::slot::{SLOTS, slot};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Default number of shards: enough that a few threads seldom meet, few enough that commands over all keys lock quickly.
pub const SHARDS: usize = 64;

/// Each shard on cache lines of its own, so that two threads that lock neighbours do not fight over one line.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// All keys of the server.
pub struct Keyspace {
    shards: Box<[Padded]>,
    /// How many answers of watched reads were known to be the same behind a change of their key.
    spared: AtomicU64,
    committing: Committing,
}

impl Keyspace {
    /// An empty keyspace of `shards` shards, between 1 and [`SLOTS`].
    pub fn new(shards: usize) -> Self {
        assert!((1..=SLOTS).contains(&shards), "between 1 and {SLOTS} shards, not {shards}");
        let shards = (0..shards).map(|_| Padded(Mutex::new(Shard::new()))).collect();
        Self { shards, spared: AtomicU64::new(0), committing: Committing::default() }
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
