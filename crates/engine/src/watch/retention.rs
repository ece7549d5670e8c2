//! Retention of emissions over all queries: the oldest are dropped first.

use crate::watch::watched_read::SharedQuery;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Limits on what is retained for subscribers that resume or are slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Bytes of emissions over all queries.
    pub bytes: usize,
    /// Age of an emission, in microseconds; also how long a query without listeners is kept.
    pub age_us: u64,
}

impl Default for RetentionLimits {
    /// 256 MiB, one hour.
    fn default() -> Self {
        Self { bytes: 256 << 20, age_us: 3_600_000_000 }
    }
}

/// Retained emissions of all queries, in the order of emission.
pub(super) struct Retention {
    max_bytes: AtomicUsize,
    max_age_us: AtomicU64,
    bytes: AtomicUsize,
    order: Mutex<VecDeque<Retained>>,
}

/// Entry for one emission of a query. A query's entries are in the order of its emissions.
struct Retained {
    query: SharedQuery,
    time_us: u64,
}

impl Default for Retention {
    fn default() -> Self {
        let limits = RetentionLimits::default();
        Self {
            max_bytes: AtomicUsize::new(limits.bytes),
            max_age_us: AtomicU64::new(limits.age_us),
            bytes: AtomicUsize::new(0),
            order: Mutex::default(),
        }
    }
}

impl Retention {
    pub(super) fn set_limits(&self, limits: RetentionLimits) {
        self.max_bytes.store(limits.bytes, Ordering::Relaxed);
        self.max_age_us.store(limits.age_us, Ordering::Relaxed);
    }

    pub(super) fn max_age_us(&self) -> u64 {
        self.max_age_us.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds an emission made at `time_us`, then drops the oldest beyond the limits. The caller
    /// holds the locks of what the query reads, so entries are in order, but not the query's own
    /// lock.
    pub(super) fn add(&self, query: &SharedQuery, time_us: u64, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut order = self.lock();
        order.push_back(Retained { query: query.clone(), time_us });
        self.trim(order, time_us);
    }

    /// Subtracts the bytes of emissions that a query has dropped out of order.
    pub(super) fn give_back(&self, bytes: usize) {
        let retained = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= retained, "emissions of {bytes} bytes go, and all together had {retained}");
    }

    pub(super) fn drop_old(&self, now_us: u64) {
        self.trim(self.lock(), now_us);
    }

    /// Returns when the oldest emission will be too old, in microseconds since 1970.
    pub(super) fn next_due_us(&self) -> Option<u64> {
        Some(self.lock().front()?.time_us.saturating_add(self.max_age_us()))
    }

    fn trim(&self, mut order: MutexGuard<'_, VecDeque<Retained>>, now_us: u64) {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let oldest_us = now_us.saturating_sub(self.max_age_us());
        // The latest of all stays, whatever its size: its subscribers have not been notified yet.
        while let Some(oldest) = order.front()
            && (oldest.time_us < oldest_us || (self.bytes() > max_bytes && order.len() > 1))
        {
            let oldest = order.pop_front().expect("there is an oldest emission");
            // Keep the order's lock: two concurrent trims must drop a query's emissions in the
            // order of their entries.
            let query = &oldest.query;
            let dropped = query.lock().emissions.drop_oldest();
            let bytes =
                dropped.unwrap_or_else(|| panic!("the query of record {} retains no emission", query.id()));
            self.give_back(bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Retained>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
