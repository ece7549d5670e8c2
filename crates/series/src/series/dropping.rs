//! Blocks whose points leave memory, because they are kept elsewhere.

use super::Series;
use super::piece::{Body, Piece};
use crate::block::Beside;
use crate::sample::Sample;
use crate::unreadable::{Unreadable, served};
use std::ops::RangeInclusive;

impl<V: Sample> Series<V> {
    /// Returns the memory of the blocks that have their points in memory, in bytes. O(pieces).
    pub fn bytes_of_points(&self) -> usize {
        let bytes = |piece: &Piece<V>| match &piece.body {
            Body::Sealed(block) => block.bytes_of_points(),
            Body::Open(_) => 0,
        };
        self.pieces.iter().map(bytes).sum()
    }

    /// Drops the points of the oldest blocks that have a [`Place`](crate::Place), until about `bytes` are
    /// free. Returns how many are. Their points are read from their places. O(pieces).
    pub fn drop_points(&mut self, bytes: usize) -> usize {
        let mut freed = 0;
        for piece in &mut self.pieces {
            if freed >= bytes {
                break;
            }
            if let Body::Sealed(block) = &piece.body
                && let Some(header) = block.without_points()
            {
                freed += block.bytes_of_points();
                self.may_lack_points = true;
                piece.body = Body::Sealed(header);
            }
        }
        freed
    }

    /// Whether points of a block may be out of memory, so that a read or a change may need its file.
    pub fn may_lack_points(&self) -> bool {
        self.may_lack_points
    }

    /// Reads the blocks that a change of points in `range` may need and that are not in memory: a caller
    /// that guards this knows, before it changes anything, whether the change can fail by them. O(pieces
    /// in the range).
    pub fn read_for_change(&self, range: RangeInclusive<i64>) {
        if self.may_lack_points {
            served(self.try_read_for_change(range));
        }
    }

    fn try_read_for_change(&self, range: RangeInclusive<i64>) -> Result<(), Unreadable> {
        let from = self.pieces.partition_point(|piece| piece.last < *range.start());
        // One more: points between two pieces are merged into the second.
        let to = self.pieces.partition_point(|piece| piece.last < *range.end()) + 1;
        let to = to.min(self.pieces.len());
        let mut beside = Beside::default();
        self.pieces.range(from.min(to)..to).try_for_each(|piece| piece.check_points(&mut beside))?;
        // The change may be the one at which the late points are merged.
        let mut next = 0;
        while let Some(time) = self.late.times().get(next) {
            let piece = &self.pieces[self.pieces.partition_point(|piece| piece.last < *time)];
            piece.check_points(&mut beside)?;
            next = self.late.times().partition_point(|time| *time <= piece.last);
        }
        Ok(())
    }
}
