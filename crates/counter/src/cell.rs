//! A thread's own piece of a striped counter's window. Its owner moves within it by two stores and
//! no locked instruction; another thread can withdraw it without waiting for the owner.
//!
//! # The protocol
//! Only the owner writes `at` and `intent`; only the holder of the counter's lock writes `size`.
//! The owner stores its target (`intent`), checks `size` again, and moves (`at`). A thread that
//! withdraws the piece first sets `size` to 0 and then reads `intent`. Each side has a barrier
//! between its two steps ([`tidemark_barrier`]; the owner's costs nothing), so at least one of them
//! sees what the other has written:
//!
//! * The owner sees that the piece is withdrawn. It leaves `intent` as it is and acquires the lock.
//! * The withdrawing thread sees `intent`. It cannot know which size the owner has seen, so it
//!   *accepts* the move on the owner's behalf if the old size allowed it: the move counts from then
//!   on. An owner that saw the old size completes the same move; one that acquires the lock learns
//!   from [`Cell::resolve`] that its move is done.
//!
//! So no thread waits for one that was preempted in the middle of a move, and every move counts
//! exactly once. A request that is refused because of a move under way is ordered after that move.

use crate::piece::Piece;
use crate::sync::{AtomicU64, Ordering};
use tidemark_barrier::{heavy, light};

/// See the module. The alignment covers the cell's own cache line and the one that the processor
/// prefetches with it, which prevents false sharing.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Cell {
    /// Position of the owner in the piece: units that may be refunded. Below `size` while the piece
    /// is open.
    at: AtomicU64,
    /// `at`, or the position to which the owner is about to move.
    intent: AtomicU64,
    /// Number of positions in the piece: one more than its units, or 0 if it is closed.
    size: AtomicU64,
    /// The intent that was accepted when the piece was closed, or [`NONE`]. Written under the lock.
    ///
    /// The owner may have finished that move and begun another before it finds the piece closed.
    /// That is why this holds the accepted position and not just a flag.
    accepted: AtomicU64,
}

/// Not a position in any piece.
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

    /// Moves by `delta`; returns false without moving if the piece is closed or too small. If the
    /// piece was closed in the middle of the move, the move is [under way](Self::is_under_way).
    /// Called by the owner, with no move under way.
    #[inline]
    pub(crate) fn try_move(&self, delta: i64) -> bool {
        // A target outside the piece never wraps around into it: its size is far below 2^63.
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

    /// Whether the piece was closed in the middle of a move. The owner must then acquire the lock
    /// and [`resolve`](Self::resolve) the move. Called by the owner.
    pub(crate) fn is_under_way(&self) -> bool {
        self.intent.load(Ordering::Relaxed) != self.at.load(Ordering::Relaxed)
    }

    /// Ends the move that is under way, and returns whether it was accepted; if not, it has not
    /// happened. Called by the owner, under the lock.
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

    /// Opens the cell with a piece. Called by the owner, under the lock, with no move under way.
    pub(crate) fn open(&self, piece: Piece) {
        assert!(piece.down <= piece.span, "{piece:?} is opened below its own end");
        self.at.store(u64::from(piece.down), Ordering::Relaxed);
        self.intent.store(u64::from(piece.down), Ordering::Relaxed);
        self.accepted.store(NONE, Ordering::Relaxed);
        self.size.store(u64::from(piece.span) + 1, Ordering::Release);
    }

    /// Closes the cell. Called by the owner, under the lock, with no move under way.
    pub(crate) fn close(&self) -> Piece {
        piece(self.at.load(Ordering::Relaxed), self.withdraw())
    }

    /// Withdraws another thread's piece and returns its size: the first half of closing it. Called
    /// under the lock; followed by [`between`], once for any number of cells, and then
    /// [`settle`](Self::settle).
    pub(crate) fn withdraw(&self) -> u64 {
        let size = self.size.load(Ordering::Relaxed);
        assert!(size > 0, "a piece is withdrawn that is not open");
        self.size.store(0, Ordering::Relaxed);
        size
    }

    /// Completes the closing of another thread's piece.
    pub(crate) fn settle(&self, size: u64) -> Piece {
        let intent = self.intent.load(Ordering::Acquire);
        let at = self.at.load(Ordering::Acquire);
        self.accepted.store(if intent == at { NONE } else { intent }, Ordering::Relaxed);
        piece(intent, size)
    }

    /// Returns the owner's position in an open piece, before or after a move that is under way.
    pub(crate) fn at(&self) -> u64 {
        self.at.load(Ordering::Acquire)
    }
}

/// Returns the piece that a closed cell gives back.
fn piece(at: u64, size: u64) -> Piece {
    assert!(at < size, "the owner of a piece of {size} places stands at {at}");
    Piece { down: at as u32, span: (size - 1) as u32 }
}

/// The barrier between [`Cell::withdraw`] and [`Cell::settle`].
pub(crate) fn between() {
    heavy();
}
