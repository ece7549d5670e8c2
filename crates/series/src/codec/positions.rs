//! Rising positions in a block: of exceptions, or of the starts of runs.

use super::packing::{Packed, pack, packed_words};
use super::words::{Reader, Words};

/// Bits of a position in a block.
const POSITION_BITS: u32 = 10;

/// Returns the number of words that `count` exceptions of `width` bits occupy, with their positions.
pub(super) fn exception_words(count: usize, width: u32) -> usize {
    position_words(count) + packed_words(count, width)
}

/// Returns the number of words that `count` positions occupy.
pub(super) fn position_words(count: usize) -> usize {
    packed_words(count, POSITION_BITS)
}

/// Appends positions.
pub(super) fn encode(positions: &[u64], into: &mut Words) {
    pack(positions, POSITION_BITS, into);
}

/// Positions that [`encode`] wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Positions<'a>(Packed<'a>);

impl<'a> Positions<'a> {
    /// No positions.
    pub(super) const NONE: Self = Self(Packed::NONE);

    /// Takes `count` positions; `None` if words are missing. O(1).
    #[inline]
    pub(super) fn read(from: &mut Reader<'a>, count: usize) -> Option<Self> {
        Packed::read(from, count, POSITION_BITS).map(Self)
    }

    /// Whether the positions rise and are below `end`. O(n).
    pub(super) fn are_well_formed(&self, end: usize) -> bool {
        let rising = (1..self.len()).all(|index| self.get(index - 1) < self.get(index));
        rising && (self.len() == 0 || self.get(self.len() - 1) < end)
    }

    /// Returns the number of positions.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a position. O(1).
    #[inline]
    pub(super) fn get(&self, index: usize) -> usize {
        self.0.get(index) as usize
    }

    /// Returns the positions.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Returns how many positions are before `position`. O(log n).
    pub(super) fn count_before(&self, position: usize) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle) < position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns which of the positions this is. O(log n).
    #[inline]
    pub(super) fn find(&self, position: usize) -> Option<usize> {
        if self.len() == 0 {
            return None;
        }
        let index = self.count_before(position);
        (index < self.len() && self.get(index) == position).then_some(index)
    }
}
