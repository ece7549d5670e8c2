//! Total size of the tracking tables of all shards, and its limits.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Limits of the tracking tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackingLimits {
    /// Maximum number of different keys; `None` is unlimited.
    pub keys: Option<usize>,
    /// Maximum bytes, including the keys' names.
    pub bytes: usize,
}

impl Default for TrackingLimits {
    /// A million keys, 256 MiB.
    fn default() -> Self {
        Self { keys: Some(1_000_000), bytes: 256 << 20 }
    }
}

/// Total size of the tracking tables of all shards, and its limits.
pub(crate) struct Totals {
    keys: AtomicUsize,
    readers: AtomicUsize,
    bytes: AtomicUsize,
    max_keys: AtomicUsize,
    max_bytes: AtomicUsize,
}

impl Totals {
    pub(super) fn new(limits: TrackingLimits) -> Self {
        let totals = Self {
            keys: AtomicUsize::new(0),
            readers: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            max_keys: AtomicUsize::new(0),
            max_bytes: AtomicUsize::new(0),
        };
        totals.set_limits(limits);
        totals
    }

    pub(super) fn set_limits(&self, limits: TrackingLimits) {
        self.max_keys.store(limits.keys.unwrap_or(usize::MAX), Ordering::Relaxed);
        self.max_bytes.store(limits.bytes, Ordering::Relaxed);
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    pub(super) fn readers(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn exceed_limits(&self) -> bool {
        self.keys() > self.max_keys.load(Ordering::Relaxed)
            || self.bytes() > self.max_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, keys: usize, readers: usize, bytes: usize) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.readers.fetch_add(readers, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts what was added before.
    pub(super) fn remove(&self, keys: usize, readers: usize, bytes: usize) {
        let all = [
            self.keys.fetch_sub(keys, Ordering::Relaxed),
            self.readers.fetch_sub(readers, Ordering::Relaxed),
            self.bytes.fetch_sub(bytes, Ordering::Relaxed),
        ];
        assert!(
            keys <= all[0] && readers <= all[1] && bytes <= all[2],
            "{keys} keys, {readers} readers and {bytes} bytes go, and all tables together had {all:?}"
        );
    }
}
