//! A piece of the window in which a counter may move, in one word.

/// How far the holder of the piece may move without the lock: `down` units down, and `span - down`
/// up.
///
/// A counter's window is cut into disjoint pieces that move independently, so the position stays
/// within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    /// Units that may be refunded.
    pub(crate) down: u32,
    /// Units that may be refunded or taken, at most [`Piece::MAX_SPAN`].
    pub(crate) span: u32,
}

impl Piece {
    /// Most units on either side of a piece, so that no piece equals one of the marker words below.
    pub(crate) const MAX_SIDE: i64 = 1 << 30;
    pub(crate) const MAX_SPAN: u32 = 2 * Self::MAX_SIDE as u32;

    /// Marker: a thread has taken the piece out and will write one back.
    pub(crate) const LOCKED: u64 = u64::MAX;
    /// Marker: the counter is striped, for good.
    pub(crate) const ELSEWHERE: u64 = u64::MAX - 1;

    /// Returns a piece with as much of `down` and `up` as fits.
    pub(crate) fn cut(down: i64, up: i64) -> Self {
        let (down, up) = (down.clamp(0, Self::MAX_SIDE), up.clamp(0, Self::MAX_SIDE));
        Self { down: down as u32, span: (down + up) as u32 }
    }

    #[inline]
    pub(crate) fn of(word: u64) -> Self {
        Self { down: word as u32, span: (word >> 32) as u32 }
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        // In debug builds only: every move of a counter runs this.
        debug_assert!(self.down <= self.span && self.span <= Self::MAX_SPAN);
        u64::from(self.span) << 32 | u64::from(self.down)
    }

    #[inline]
    pub(crate) fn up(self) -> u32 {
        self.span - self.down
    }

    /// Returns the piece after a move by `delta`, if there is room.
    #[inline]
    pub(crate) fn moved(self, delta: i64) -> Option<Self> {
        // A target outside the piece never wraps around into it: its span is far below 2^63.
        let down = u64::from(self.down).wrapping_add(delta.cast_unsigned());
        (down <= u64::from(self.span)).then_some(Self { down: down as u32, span: self.span })
    }

    /// Joins two pieces. They were cut from one, so nothing overflows.
    pub(crate) fn with(self, other: Self) -> Self {
        Self { down: self.down + other.down, span: self.span + other.span }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_piece_allows_what_lies_within_it() {
        let piece = Piece::cut(3, 5);
        assert_eq!((piece.down, piece.up()), (3, 5));
        assert_eq!(piece.moved(5), Some(Piece::cut(8, 0)));
        assert_eq!(piece.moved(6), None);
        assert_eq!(piece.moved(-3), Some(Piece::cut(0, 8)));
        assert_eq!(piece.moved(-4), None);
        assert_eq!(piece.moved(i64::MAX), None);
        assert_eq!(piece.moved(i64::MIN), None);
        assert_eq!(Piece::of(piece.word()), piece);
    }

    #[test]
    fn no_piece_looks_like_a_sign() {
        let largest = Piece::cut(i64::MAX, i64::MAX);
        assert!(largest.word() < Piece::ELSEWHERE);
        assert!(largest.moved(i64::from(largest.up())).unwrap().word() < Piece::ELSEWHERE);
        assert_eq!(Piece::cut(-1, i64::MIN), Piece::default());
    }
}
