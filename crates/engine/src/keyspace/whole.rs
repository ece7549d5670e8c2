//! All shards, their locks, and the assignment of keys to them.

use super::committing::Committing;
use super::sealing_queue::SealingQueue;
use super::shard::Shard;
use super::slot::{SLOTS, slot};
use crate::value::stream::NodeLimits;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Default number of shards: enough that a few threads rarely contend, few enough to lock all of
/// them quickly.
pub const SHARDS: usize = 64;

/// Default maximum number of leases of a limiter: 240 kB.
pub const LEASES: usize = 10_000;

/// Default maximum number of sessions of `ONCE`.
pub const SESSIONS_MAX: usize = 10_000;

/// A shard on cache lines of its own, to prevent false sharing between neighbours.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// All keys of the server.
pub struct Keyspace {
    shards: Box<[Padded]>,
    /// Number of evaluations of watched reads that were skipped because the change could not affect
    /// the answer.
    spared: AtomicU64,
    committing: Committing,
    sealing: SealingQueue,
    /// Maximum number of leases of a limiter.
    leases_max: AtomicUsize,
    /// Maximum number of sessions of `ONCE`.
    sessions_max: AtomicUsize,
    /// Entries and bytes at which a block of a stream is full.
    stream_entries: AtomicUsize,
    stream_bytes: AtomicUsize,
    /// Number of changes of the libraries of functions.
    library_changes: AtomicU64,
}

impl Keyspace {
    /// Creates an empty keyspace of `shards` shards, between 1 and [`SLOTS`].
    pub fn new(shards: usize) -> Self {
        assert!((1..=SLOTS).contains(&shards), "between 1 and {SLOTS} shards, not {shards}");
        let shards = (0..shards).map(|_| Padded(Mutex::new(Shard::new()))).collect();
        let (spared, leases_max) = (AtomicU64::new(0), AtomicUsize::new(LEASES));
        let (committing, sealing) = (Committing::default(), SealingQueue::default());
        let sessions_max = AtomicUsize::new(SESSIONS_MAX);
        let stream_entries = AtomicUsize::new(NodeLimits::DEFAULT.entries);
        let stream_bytes = AtomicUsize::new(NodeLimits::DEFAULT.bytes);
        let library_changes = AtomicU64::new(0);
        Self {
            shards,
            spared,
            committing,
            sealing,
            leases_max,
            sessions_max,
            stream_entries,
            stream_bytes,
            library_changes,
        }
    }

    /// Number of shards.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Index of a key's shard.
    #[inline]
    pub fn shard_of(&self, key: &[u8]) -> usize {
        slot(key) % self.shards.len()
    }

    /// Locks one shard. A caller that needs several locks them in index order.
    #[inline]
    pub fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn committing(&self) -> &Committing {
        &self.committing
    }

    /// Series with blocks to compress.
    pub(crate) fn sealing(&self) -> &SealingQueue {
        &self.sealing
    }

    pub(crate) fn leases_max(&self) -> usize {
        self.leases_max.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of leases of a limiter, at least 1. Existing leases above it stay.
    pub fn limit_leases(&self, leases_max: usize) {
        self.leases_max.store(leases_max.max(1), Ordering::Relaxed);
    }

    pub(crate) fn sessions_max(&self) -> usize {
        self.sessions_max.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of sessions of `ONCE`. Existing sessions above it stay.
    pub fn limit_sessions(&self, sessions_max: usize) {
        self.sessions_max.store(sessions_max, Ordering::Relaxed);
    }

    /// When a block of a stream is full.
    #[inline]
    pub fn stream_limits(&self) -> NodeLimits {
        let (entries, bytes) = (&self.stream_entries, &self.stream_bytes);
        NodeLimits { entries: entries.load(Ordering::Relaxed), bytes: bytes.load(Ordering::Relaxed) }
    }

    /// Sets when a block of a stream is full. Full blocks stay as they are.
    pub fn limit_stream_blocks(&self, limits: NodeLimits) {
        self.stream_entries.store(limits.entries, Ordering::Relaxed);
        self.stream_bytes.store(limits.bytes, Ordering::Relaxed);
    }

    /// Notes that the libraries of functions have changed.
    pub(crate) fn note_libraries(&self) {
        self.library_changes.fetch_add(1, Ordering::Release);
    }

    /// Number of changes of the libraries of functions. It stays as long as all shards are locked.
    pub(crate) fn library_changes(&self) -> u64 {
        self.library_changes.load(Ordering::Acquire)
    }

    /// Counts watched reads that need no evaluation after a change of their key.
    pub(crate) fn count_spared(&self, count: usize) {
        if count > 0 {
            self.spared.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    /// Number of skipped evaluations.
    pub(crate) fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }

    /// Locks all shards, in order.
    pub fn lock_all(&self) -> Vec<MutexGuard<'_, Shard>> {
        (0..self.shards.len()).map(|index| self.lock(index)).collect()
    }
}
