//! All clients with tracking on.

use super::broadcast::Prefixes;
use super::totals::{Totals, TrackingLimits};
use super::tracker::Tracker;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

/// All trackers, and the totals of what the shards record for them.
pub(crate) struct Tracking {
    /// Registration lock: ensures that shards compare keys with prefixes exactly while there are
    /// any.
    pub(super) switching: Mutex<()>,
    pub(super) trackers: RwLock<BTreeMap<u64, Arc<Tracker>>>,
    pub(super) last_id: AtomicU64,
    pub(super) prefixes: Arc<Prefixes>,
    pub(super) totals: Arc<Totals>,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            switching: Mutex::default(),
            trackers: RwLock::default(),
            last_id: AtomicU64::new(0),
            prefixes: Arc::default(),
            totals: Arc::new(Totals::new(TrackingLimits::default())),
        }
    }
}
