//! State of `CLIENT TRACKING`, and pending invalidations.

use crate::events::invalidation_source::Source;
use crate::net::outbox::Outbox;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use tidemark_engine::Terms;
use tidemark_engine::tracking::Tracker;

/// Which reads a client caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// All reads.
    #[default]
    All,
    /// Reads after `CLIENT CACHING YES`.
    OptIn,
    /// Reads except those after `CLIENT CACHING NO`.
    OptOut,
    /// Any: the client is notified of all keys with certain prefixes.
    Broadcast,
}

/// A client's `CLIENT TRACKING`.
#[derive(Debug)]
pub(crate) struct Tracking {
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) mode: Mode,
    /// `NOLOOP`: the client is not notified of its own changes.
    pub(crate) is_without_loop: bool,
    /// `CLIENT CACHING` was called for the next command or transaction.
    pub(crate) is_exception: bool,
    /// Key prefixes that the client is notified of.
    pub(crate) prefixes: BTreeSet<Box<[u8]>>,
    /// Client that receives the invalidations, if not this one.
    pub(crate) redirect: Option<u64>,
    /// That client is gone.
    pub(crate) is_broken: bool,
}

impl Tracking {
    pub(crate) fn new(tracker: Arc<Tracker>) -> Tracking {
        Tracking {
            tracker,
            mode: Mode::default(),
            is_without_loop: false,
            is_exception: false,
            prefixes: BTreeSet::new(),
            redirect: None,
            is_broken: false,
        }
    }

    /// Whether the present read is tracked. `opts_in` is set if the transaction itself contains
    /// `CLIENT CACHING YES`.
    fn keeps(&self, opts_in: bool) -> bool {
        match self.mode {
            Mode::All => true,
            Mode::OptIn => self.is_exception || opts_in,
            Mode::OptOut => !self.is_exception,
            Mode::Broadcast => false,
        }
    }

    #[cold]
    fn terms(&self, durable: bool, opts_in: bool) -> Terms {
        let id = self.tracker.id();
        let reader = self.keeps(opts_in).then_some(id);
        Terms { durable, reader, spared: self.is_without_loop.then_some(id) }
    }
}

/// Returns the terms on which a client's command or transaction runs. `opts_in` is set if a
/// transaction contains `CLIENT CACHING YES`: then all its reads are tracked. `CLIENT CACHING NO`
/// inside a transaction is ignored, because its commands on keys run first. Both track too much
/// rather than too little.
#[inline]
pub(crate) fn terms(tracking: Option<&Tracking>, durable: bool, opts_in: bool) -> Terms {
    match tracking {
        None => Terms { durable, ..Terms::default() },
        Some(tracking) => tracking.terms(durable, opts_in),
    }
}

/// Trackers with invalidations that a connection has not taken yet.
#[derive(Default)]
pub(crate) struct Untaken(VecDeque<Source>);

impl Untaken {
    /// Whether there may be invalidations, and the outbox has room for them.
    pub(crate) fn may_catch_up(&self, outbox: &Outbox) -> bool {
        !self.0.is_empty() && outbox.has_room()
    }

    /// Adds a tracker, unless it is present.
    pub(crate) fn add(&mut self, source: Source) {
        if !self.0.iter().any(|other| Arc::ptr_eq(&other.tracker, &source.tracker)) {
            self.0.push_back(source);
        }
    }

    /// The next tracker.
    pub(crate) fn first(&self) -> Option<&Source> {
        self.0.front()
    }

    /// Removes the next tracker.
    pub(crate) fn pass(&mut self) {
        self.0.pop_front();
    }

    /// Takes all trackers.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Source> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}
