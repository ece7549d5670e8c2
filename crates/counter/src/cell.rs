//! A thread's own piece of a striped counter's window: moved within by two stores and no locked instruction, and yet taken back
//! by others without waiting for its owner.
//!
//! # The protocol
//! Only the owner writes `taken` and `intent`; only who holds the counter's lock writes the bounds. The owner says where it is
//! about to go (`intent`), looks at the bounds again, and goes there (`taken`). Who takes the piece back withdraws the bounds first
//! and reads `intent` then. Between the first and the second of both lies a barrier ([`tidemark_barrier`]; the owner's
//! costs nothing), so at least one of the two sees what the other has written:
//!
//! * The owner sees that the bounds are withdrawn. It leaves its intent as it is and comes for the lock.
//! * The other sees the intent. Whether the owner has seen the old bounds or the new ones cannot be known, so the move is
//!   *accepted* in the owner's stead, if the old bounds allowed it: it counts from here on. An owner that saw the old bounds
//!   finishes the very same move; one that comes for the lock is told that its move is done ([`Cell::resolve`]).
//!
//! So nobody waits for a thread that the system has put aside in the middle of a move, no move counts twice or not at all, and what
//! was refused because of a move that was under way was refused behind it.

use crate::sync::{AtomicI64, Ordering};
use tidemark_barrier::{heavy, light};

/// See the module. The piece is open between `low` and `high`, and closed if these are the other way around. Its size keeps
/// neighbours off its cache line and the one that the processor fetches with it.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Cell {
    /// The net of the owner's moves since the piece was opened.
    taken: AtomicI64,
    /// `taken`, or where the owner is about to go.
    intent: AtomicI64,
    low: AtomicI64,
    high: AtomicI64,
    /// The intent that was accepted when the piece was closed, or [`NONE`]. Written under the lock.
    ///
    /// The owner may have finished that move and have begun another, of which it finds only under way that the piece is closed. So
    /// it is the place that was accepted which is noted, and not that one was.
    accepted: AtomicI64,
}

/// Nowhere that a piece reaches.
const NONE: i64 = i64::MIN;

/// What came of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    Done,
    /// The piece is closed, or too small. Nothing has happened.
    Short,
    /// The piece was closed in the middle of it: the owner must take the lock and [`Cell::resolve`] it.
    Withdrawn,
}

/// A piece that was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Returned {
    /// The lower bound, which is at most 0.
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// The net of all moves within it.
    pub(crate) taken: i64,
}

impl Cell {
    pub(crate) fn new() -> Self {
        Self {
            taken: AtomicI64::new(0),
            intent: AtomicI64::new(0),
            low: AtomicI64::new(i64::MAX),
            high: AtomicI64::new(i64::MIN),
            accepted: AtomicI64::new(NONE),
        }
    }

    /// Moves by `delta`. For the owner.
    #[inline]
    pub(crate) fn try_move(&self, delta: i64) -> Attempt {
        let target = self.taken.load(Ordering::Relaxed).saturating_add(delta);
        if !self.allows(delta, target) {
            return Attempt::Short;
        }
        self.intent.store(target, Ordering::Relaxed);
        light();
        if !self.allows(delta, target) {
            return Attempt::Withdrawn;
        }
        self.taken.store(target, Ordering::Release);
        Attempt::Done
    }

    #[inline]
    fn allows(&self, delta: i64, target: i64) -> bool {
        if delta >= 0 {
            target <= self.high.load(Ordering::Relaxed)
        } else {
            target >= self.low.load(Ordering::Relaxed)
        }
    }

    /// Whether a move that was [`Attempt::Withdrawn`] has been accepted nevertheless; if not, it has never been. For the owner,
    /// under the lock.
    pub(crate) fn resolve(&self) -> bool {
        let intent = self.intent.load(Ordering::Relaxed);
        let is_accepted = self.accepted.load(Ordering::Relaxed) == intent;
        if is_accepted {
            self.taken.store(intent, Ordering::Relaxed);
        } else {
            self.intent.store(self.taken.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.accepted.store(NONE, Ordering::Relaxed);
        is_accepted
    }

    /// Opens the piece. For the owner, under the lock, with no move under way.
    pub(crate) fn open(&self, low: i64, high: i64) {
        debug_assert!(low <= 0 && high >= 0);
        self.taken.store(0, Ordering::Relaxed);
        self.intent.store(0, Ordering::Relaxed);
        self.accepted.store(NONE, Ordering::Relaxed);
        self.low.store(low, Ordering::Relaxed);
        self.high.store(high, Ordering::Release);
    }

    /// Closes the piece. For the owner, under the lock, with no move under way.
    pub(crate) fn close(&self) -> Returned {
        let (low, high) = self.withdraw();
        Returned { low, high, taken: self.taken.load(Ordering::Relaxed) }
    }

    /// Withdraws the bounds, which it returns: the first half of closing another thread's piece. Under the lock; behind it, once
    /// for any number of cells, comes a [`heavy`] barrier, and then [`settle`](Self::settle).
    pub(crate) fn withdraw(&self) -> (i64, i64) {
        let bounds = (self.low.load(Ordering::Relaxed), self.high.load(Ordering::Relaxed));
        debug_assert!(bounds.0 <= 0 && bounds.1 >= 0, "the piece is open");
        self.low.store(i64::MAX, Ordering::Relaxed);
        self.high.store(i64::MIN, Ordering::Relaxed);
        bounds
    }

    /// The second half of closing another thread's piece.
    pub(crate) fn settle(&self, (low, high): (i64, i64)) -> Returned {
        let intent = self.intent.load(Ordering::Acquire);
        let taken = self.taken.load(Ordering::Acquire);
        // An intent that the old bounds did not allow has been given up by the time that the lock is free again.
        let at = if (low..=high).contains(&intent) { intent } else { taken };
        self.accepted.store(if at == taken { NONE } else { at }, Ordering::Relaxed);
        Returned { low, high, taken: at }
    }

    /// The net of the owner's moves, those that have just begun or ended in or out. Under the lock, of an open piece.
    pub(crate) fn taken(&self) -> i64 {
        self.taken.load(Ordering::Acquire)
    }
}

/// The barrier between [`Cell::withdraw`] and [`Cell::settle`].
pub(crate) fn between() {
    heavy();
}
