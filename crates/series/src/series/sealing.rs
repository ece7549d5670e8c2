//! Compressing pieces, and merging late points into them.
//!
//! Compressing takes some 20 ns a point. A caller that holds a lock for appending can take what is
//! [`Unsealed`], compress it elsewhere, and hand the result back.

use super::Series;
use super::columns::Columns;
use super::late::merge;
use super::piece::{Body, Piece, Scratch};
use crate::BLOCK_POINTS;
use crate::block::Block;
use crate::codec::Hints;
use crate::sample::Sample;
use crate::unreadable::{Unreadable, guarded, served};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of late points at which they are merged into the pieces.
const LATE_MAX: usize = 1_000;

/// Number of late points at which no more are taken: those that there are lie over a block that cannot
/// be read, so they are not merged.
const UNMERGED_MAX: usize = 4 * LATE_MAX;

/// Points that can be compressed. Cloned from a series without copying them.
#[derive(Debug, Clone)]
pub struct Unsealed<V> {
    columns: Arc<Columns<V>>,
    hints: Hints,
}

/// Points that [`Unsealed::seal`] compressed.
#[derive(Debug)]
pub struct SealedPiece<V> {
    columns: Arc<Columns<V>>,
    block: Block,
    hints: Hints,
}

impl<V: Sample> Unsealed<V> {
    /// Compresses the points. O(n).
    pub fn seal(mut self) -> SealedPiece<V> {
        let block = Block::encode(self.columns.times(), self.columns.values(), &mut self.hints);
        SealedPiece { columns: self.columns, block, hints: self.hints }
    }
}

impl<V: Sample> Series<V> {
    /// Returns the oldest points that wait to be compressed. O(pieces that wait).
    pub fn unsealed(&self) -> Option<Unsealed<V>> {
        if self.open_pieces == 0 {
            return None;
        }
        // They are mostly the newest.
        let from = self.pieces.len() - self.open_pieces;
        let open = |piece: &Piece<V>| match &piece.body {
            Body::Open(columns) => Some(Arc::clone(columns)),
            Body::Sealed(_) => None,
        };
        let newest = self.pieces.range(from..).find_map(open);
        let columns = newest.or_else(|| self.pieces.iter().find_map(open))?;
        Some(Unsealed { columns, hints: self.hints })
    }

    /// Returns the number of pieces that wait to be compressed.
    #[inline]
    pub fn open_pieces(&self) -> usize {
        self.open_pieces
    }

    /// Puts compressed points in the place of those they were made from. Returns `false` if those have
    /// changed or gone since; the series stays as it is then.
    pub fn put_sealed(&mut self, sealed: SealedPiece<V>) -> bool {
        let first = sealed.block.first_time();
        let index = self.pieces.partition_point(|piece| piece.last < first);
        let Some(piece) = self.pieces.get_mut(index) else { return false };
        let Body::Open(columns) = &piece.body else { return false };
        if !Arc::ptr_eq(columns, &sealed.columns) {
            return false;
        }
        *piece = Piece::sealed(sealed.block);
        self.hints = sealed.hints;
        self.open_pieces -= 1;
        true
    }

    /// Compresses every piece that waits for it. O(n) of their points.
    pub fn seal(&mut self) {
        if self.open_pieces == 0 {
            return;
        }
        for piece in self.pieces.iter_mut().rev() {
            if piece.seal(&mut self.hints) {
                self.open_pieces -= 1;
                if self.open_pieces == 0 {
                    break;
                }
            }
        }
        assert_eq!(self.open_pieces, 0, "pieces that wait to be compressed");
    }

    /// Compresses everything, the head included, and merges what is late: the smallest form of a
    /// series that gets no more points.
    pub fn seal_all(&mut self) {
        served(self.merge_late());
        if !self.head.is_empty() {
            let head = std::mem::take(&mut self.head);
            self.settle(head);
        }
        self.seal();
    }

    pub(super) fn merge_late_if_many(&mut self) {
        if self.late.len() >= LATE_MAX {
            // The point that made them many is taken already. They stay late until the block is read.
            let _ = guarded(|| self.merge_late());
        }
    }

    /// Whether so many late points could not be merged that no more are taken.
    pub(super) fn has_too_many_late(&self) -> bool {
        self.late.len() >= UNMERGED_MAX
    }

    /// Merges the late points into the pieces. O(n) of the pieces that they lie over. Changes nothing if
    /// one of those cannot be read.
    pub(super) fn merge_late(&mut self) -> Result<(), Unreadable> {
        if self.late.is_empty() {
            return Ok(());
        }
        let mut next = 0;
        while let Some(time) = self.late.times().get(next) {
            let index = self.pieces.partition_point(|piece| piece.last < *time);
            self.pieces[index].bring_points()?;
            next = self.late.times().partition_point(|time| *time <= self.pieces[index].last);
        }
        let late = self.late.take();
        let mut scratch = Scratch::new();
        let mut pieces = VecDeque::with_capacity(self.pieces.len() + 4);
        let mut merged: (Vec<i64>, Vec<V>) = (Vec::new(), Vec::new());
        let mut from = 0;
        for piece in std::mem::take(&mut self.pieces) {
            let to = from + late.times()[from..].partition_point(|time| *time <= piece.last);
            let touched = to > from;
            // A piece with room takes what its changed neighbour has too many.
            let takes_rest = !merged.0.is_empty() && piece.len() < BLOCK_POINTS && piece.has_points();
            if touched || takes_rest {
                let overlay = (&late.times()[from..to], &late.values()[from..to]);
                let points = piece.points(&mut scratch).expect("its points are in memory");
                merge(points, overlay, &mut merged);
                self.open_pieces -= usize::from(matches!(piece.body, Body::Open(_)));
                cut_full_pieces(&mut merged, &mut pieces, &mut self.hints);
            } else {
                cut_rest(&mut merged, &mut pieces, &mut self.hints);
                pieces.push_back(piece);
            }
            from = to;
        }
        assert_eq!(from, late.len(), "late points lie before the end of the last piece");
        cut_rest(&mut merged, &mut pieces, &mut self.hints);
        self.pieces = pieces;
        Ok(())
    }
}

/// Makes blocks of as many points as fill them.
fn cut_full_pieces<V: Sample>(
    merged: &mut (Vec<i64>, Vec<V>),
    pieces: &mut VecDeque<Piece<V>>,
    hints: &mut Hints,
) {
    let mut done = 0;
    while merged.0.len() - done >= BLOCK_POINTS {
        let points = done..done + BLOCK_POINTS;
        let block = Block::encode(&merged.0[points.clone()], &merged.1[points.clone()], hints);
        pieces.push_back(Piece::sealed(block));
        done = points.end;
    }
    merged.0.drain(..done);
    merged.1.drain(..done);
}

/// Makes a block of the points that fill none.
fn cut_rest<V: Sample>(merged: &mut (Vec<i64>, Vec<V>), pieces: &mut VecDeque<Piece<V>>, hints: &mut Hints) {
    if !merged.0.is_empty() {
        pieces.push_back(Piece::sealed(Block::encode(&merged.0, &merged.1, hints)));
        merged.0.clear();
        merged.1.clear();
    }
}
