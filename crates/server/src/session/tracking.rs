//! What a client keeps of what it reads, and what it is still to be told of that.

use crate::events::invalidation_source::Source;
use crate::net::outbox::Outbox;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use tidemark_engine::Terms;
use tidemark_engine::tracking::Tracker;

/// Which reads a client keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// All.
    #[default]
    All,
    /// Those behind `CLIENT CACHING YES`.
    OptIn,
    /// All but those behind `CLIENT CACHING NO`.
    OptOut,
    /// Whatever it is: the client is told of all keys that begin in certain ways.
    Broadcast,
}

/// A client's `CLIENT TRACKING`.
#[derive(Debug)]
pub(crate) struct Tracking {
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) mode: Mode,
    /// The client is not told of its own changes.
    pub(crate) is_without_loop: bool,
    /// `CLIENT CACHING` was called for the next command or transaction.
    pub(crate) is_exception: bool,
    /// How keys begin that the client is told of.
    pub(crate) prefixes: BTreeSet<Box<[u8]>>,
    /// The client whose connection takes what this one is told, if it is another way than its own.
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

    /// Whether what is read now is kept; `opts_in` is what `CLIENT CACHING YES` says for the command itself.
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

/// On what terms a client's command or transaction runs, which may be asked to be durable. `opts_in` is of a transaction that
/// says `CLIENT CACHING YES` itself: it is kept as a whole, and what it says by `CLIENT CACHING NO` is passed over, since its
/// commands on keys run first. Either way too much is kept, if anything.
#[inline]
pub(crate) fn terms(tracking: Option<&Tracking>, durable: bool, opts_in: bool) -> Terms {
    match tracking {
        None => Terms { durable, ..Terms::default() },
        Some(tracking) => tracking.terms(durable, opts_in),
    }
}

/// Invalidations that a connection has been told of and has not taken yet.
#[derive(Default)]
pub(crate) struct Untaken(VecDeque<Source>);

impl Untaken {
    /// Whether there may be some for which there is room.
    pub(crate) fn may_catch_up(&self, outbox: &Outbox) -> bool {
        !self.0.is_empty() && outbox.has_room()
    }

    /// Adds what a connection has been told of, unless it is there.
    pub(crate) fn add(&mut self, source: Source) {
        if !self.0.iter().any(|other| Arc::ptr_eq(&other.tracker, &source.tracker)) {
            self.0.push_back(source);
        }
    }

    /// What comes next.
    pub(crate) fn first(&self) -> Option<&Source> {
        self.0.front()
    }

    /// Forgets what comes next: it has been taken.
    pub(crate) fn pass(&mut self) {
        self.0.pop_front();
    }

    /// Takes all.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Source> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}
