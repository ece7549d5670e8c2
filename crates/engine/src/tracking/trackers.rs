//! All clients that keep what they read.

use super::broadcast::Prefixes;
use super::totals::{Totals, TrackingLimits};
use super::tracker::Tracker;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

/// All trackers, and what is counted of what the shards remember for them.
pub(crate) struct Tracking {
    /// Held by whoever changes who is tracked, so that shards compare keys with prefixes exactly while there are any.
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
