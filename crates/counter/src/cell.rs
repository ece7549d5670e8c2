//! A thread's own piece of a striped counter's window: moved within by two stores and no locked instruction, and yet taken back
//! by others without waiting for its owner.
//!
//! # The protocol
//! Only the owner writes `at` and `intent`; only who holds the counter's lock writes the size. The owner says where it is about to go
//! (`intent`), looks at the size again, and goes there (`at`). Who takes the piece back sets the size to 0 first and reads `intent`
//! then. Between the first and the second of both lies a barrier ([`tidemark_barrier`]; the owner's costs nothing), so at least one
//! of the two sees what the other has written:
//!
//! * The owner sees that the piece is withdrawn. It leaves its intent as it is and comes for the lock.
//! * The other sees the intent. Whether the owner has seen the old size or the new one cannot be known, so the move is *accepted* in
//!   the owner's stead, if the old size allowed it: it counts from here on. An owner that saw the old size finishes the very same
//!   move; one that comes for the lock is told that its move is done ([`Cell::resolve`]).
//!
//! So nobody waits for a thread that the system has put aside in the middle of a move, no move counts twice or not at all, and what
//! was refused because of a move that was under way was refused behind it.

use crate::piece::Piece;
use crate::sync::{AtomicU64, Ordering};
use tidemark_barrier::{heavy, light};

/// See the module. Its own size keeps neighbours off its cache line and the one that the processor fetches with it.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Cell {
    /// Where the owner stands in the piece: units that may be refunded. Below `size` while the piece is open.
    at: AtomicU64,
    /// `at`, or where the owner is about to go.
    intent: AtomicU64,
    /// In how many places the owner may stand: one more than the units of the piece, or 0 if it is closed.
    size: AtomicU64,
    /// The intent that was accepted when the piece was closed, or [`NONE`]. Written under the lock.
    ///
    /// The owner may have finished that move and have begun another, of which it finds only under way that the piece is closed. So
    /// it is the place that was accepted which is noted, and not that one was.
    accepted: AtomicU64,
}

/// No place in any piece.
const NONE: u64 = u64::MAX;

impl Cell {
    pub(crate) fn new() -> Self {
        Self {
            at: AtomicU64::new(0),
            intent: AtomicU64::new(0),
            size: AtomicU64::new(0),
            accepted: AtomicU64::new(NONE),
        }
    }

    /// Moves by `delta`, or does nothing: because the piece is closed, or too small, or was closed in the middle of the move, which
    /// is [under way](Self::is_under_way) then. For the owner, with no move under way.
    #[inline]
    pub(crate) fn try_move(&self, delta: i64) -> bool {
        // Nothing that lies outside the piece wraps around into it: its size is far below 2^63.
        let target = self.at.load(Ordering::Relaxed).wrapping_add(delta.cast_unsigned());
        if target >= self.size.load(Ordering::Relaxed) {
            return false;
        }
        self.intent.store(target, Ordering::Relaxed);
        light();
        if target >= self.size.load(Ordering::Relaxed) {
            return false;
        }
        self.at.store(target, Ordering::Release);
        true
    }

    /// Whether the piece was closed in the middle of a move: the owner must take the lock and [`resolve`](Self::resolve) it. For the
    /// owner.
    pub(crate) fn is_under_way(&self) -> bool {
        self.intent.load(Ordering::Relaxed) != self.at.load(Ordering::Relaxed)
    }

    /// Whether a move that is under way has been accepted nevertheless; if not, it has never been. For the owner, under the lock.
    pub(crate) fn resolve(&self) -> bool {
        let intent = self.intent.load(Ordering::Relaxed);
        let is_accepted = self.accepted.load(Ordering::Relaxed) == intent;
        if is_accepted {
            self.at.store(intent, Ordering::Relaxed);
        } else {
            self.intent.store(self.at.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.accepted.store(NONE, Ordering::Relaxed);
        is_accepted
    }

    /// Opens the cell with a piece. For the owner, under the lock, with no move under way.
    pub(crate) fn open(&self, piece: Piece) {
        assert!(piece.down <= piece.span, "{piece:?} is opened below its own end");
        self.at.store(u64::from(piece.down), Ordering::Relaxed);
        self.intent.store(u64::from(piece.down), Ordering::Relaxed);
        self.accepted.store(NONE, Ordering::Relaxed);
        self.size.store(u64::from(piece.span) + 1, Ordering::Release);
    }

    /// Closes it. For the owner, under the lock, with no move under way.
    pub(crate) fn close(&self) -> Piece {
        piece(self.at.load(Ordering::Relaxed), self.withdraw())
    }

    /// Withdraws the piece, of whose size it tells: the first half of closing another thread's. Under the lock; behind it, once
    /// for any number of cells, comes [`between`], and then [`settle`](Self::settle).
    pub(crate) fn withdraw(&self) -> u64 {
        let size = self.size.load(Ordering::Relaxed);
        assert!(size > 0, "a piece is withdrawn that is not open");
        self.size.store(0, Ordering::Relaxed);
        size
    }

    /// The second half of closing another thread's piece.
    pub(crate) fn settle(&self, size: u64) -> Piece {
        let intent = self.intent.load(Ordering::Acquire);
        let at = self.at.load(Ordering::Acquire);
        self.accepted.store(if intent == at { NONE } else { intent }, Ordering::Relaxed);
        piece(intent, size)
    }

    /// Where the owner stands, its move that goes on done or not. Of an open piece.
    pub(crate) fn at(&self) -> u64 {
        self.at.load(Ordering::Acquire)
    }
}

/// What comes back from a cell.
fn piece(at: u64, size: u64) -> Piece {
    assert!(at < size, "the owner of a piece of {size} places stands at {at}");
    Piece { down: at as u32, span: (size - 1) as u32 }
}

/// The barrier between [`Cell::withdraw`] and [`Cell::settle`].
pub(crate) fn between() {
    heavy();
}
