//! Blocks whose points leave memory, because they are kept elsewhere.

use super::Series;
use super::piece::{Body, Piece};
use crate::sample::Sample;

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
                piece.body = Body::Sealed(header);
            }
        }
        freed
    }
}
