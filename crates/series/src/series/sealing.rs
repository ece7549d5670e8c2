//! Compressing pieces, and merging late points into them.
//!
//! A block is best full: it is smaller, and cheaper to make. But a series that gets few points would have
//! most of them in its head, at 16 bytes each. So its head becomes a *small block*, if the caller asks for
//! it, and a few small blocks of about one size become one. All of them and the head fill one block
//! together, the last time that these points are compressed.
//!
//! Compressing takes some 20 ns a point. A caller that holds a lock for appending can take what is
//! [`Unsealed`], compress it elsewhere, and hand the result back.

use super::Series;
use super::columns::Columns;
use super::late::merge;
use super::piece::{Body, Piece, Scratch};
use crate::BLOCK_POINTS;
use crate::block::{Beside, Block};
use crate::codec::Hints;
use crate::sample::Sample;
use crate::unreadable::{Unreadable, guarded, served};
use std::collections::VecDeque;

/// Number of late points at which they are merged into the pieces.
const LATE_MAX: usize = 1_000;

/// Number of late points at which no more are taken: those that there are lie over a block that cannot
/// be read, so they are not merged.
const UNMERGED_MAX: usize = 4 * LATE_MAX;

/// Length of a head that is compressed before a block is full.
const GROWN_HEAD: usize = 64;

/// Newest points that stay in a head, because a point that comes a little late costs least there.
const KEPT: usize = 8;

/// Number of small blocks of about one size that become one. Each point is compressed some three times
/// on its way to a full block.
const MERGED: usize = 4;

/// Adjacent points that become one block: some pieces, then the first points of the head. Cloned from a
/// series without copying the points of pieces.
#[derive(Debug, Clone)]
pub struct Unsealed<V> {
    pieces: Vec<Piece<V>>,
    head: Columns<V>,
    hints: Hints,
}

/// Points that [`Unsealed::seal`] compressed.
#[derive(Debug)]
pub struct SealedPiece<V> {
    from: Unsealed<V>,
    block: Block,
}

impl<V: Sample> Unsealed<V> {
    /// Compresses the points. O(n).
    pub fn seal(mut self) -> SealedPiece<V> {
        let block = match &self.pieces[..] {
            [Piece { body: Body::Open(columns), .. }] if self.head.is_empty() => {
                Block::encode(columns.times(), columns.values(), &mut self.hints)
            }
            [] => Block::encode(self.head.times(), self.head.values(), &mut self.hints),
            pieces => {
                let (mut times, mut values) = (Vec::new(), Vec::new());
                let mut scratch = Scratch::new();
                for piece in pieces {
                    let points = piece.points(&mut scratch).expect("the points are in memory");
                    times.extend_from_slice(points.0);
                    values.extend_from_slice(points.1);
                }
                times.extend_from_slice(self.head.times());
                values.extend_from_slice(self.head.values());
                Block::encode(&times, &values, &mut self.hints)
            }
        };
        SealedPiece { from: self, block }
    }
}

/// Class of sizes: each is four times the one before.
fn size_class(points: usize) -> u32 {
    points.ilog2() / MERGED.ilog2()
}

impl<V: Sample> Series<V> {
    /// Returns the oldest points that wait to be compressed, with the small blocks before them that fit
    /// in the same block. O(pieces that wait).
    pub fn unsealed(&self) -> Option<Unsealed<V>> {
        if self.open_pieces == 0 {
            return None;
        }
        // They are mostly the newest.
        let newest = self.pieces.len() - self.open_pieces;
        let open = |index: &usize| matches!(self.pieces[*index].body, Body::Open(_));
        let index = (newest..self.pieces.len()).find(open).or_else(|| (0..newest).find(open))?;
        let (mut first, mut points) = (index, self.pieces[index].len());
        while let Some(before) = first.checked_sub(1)
            && self.pieces[before].is_small_block()
            && points + self.pieces[before].len() <= BLOCK_POINTS
        {
            points += self.pieces[before].len();
            first = before;
        }
        let pieces = self.pieces.range(first..=index).cloned().collect();
        Some(Unsealed { pieces, head: Columns::default(), hints: self.hints })
    }

    /// Returns all but the newest points of a head that has grown long, with the small blocks before it
    /// that are to become one block with them. Copies the points of the head.
    pub fn unsealed_head(&self) -> Option<Unsealed<V>> {
        if self.head.len() < GROWN_HEAD {
            return None;
        }
        let count = self.head.len() - KEPT;
        let (times, values) = (&self.head.times()[..count], &self.head.values()[..count]);
        let head = Columns::from_parts(times.to_vec(), values.to_vec());
        let pieces = self.pieces.range(self.merged_with(count)..).cloned().collect();
        Some(Unsealed { pieces, head, hints: self.hints })
    }

    /// Returns the first of the small blocks that become one block with so many points behind them.
    fn merged_with(&self, mut points: usize) -> usize {
        let mut first = self.pieces.len();
        let (mut similar, mut of_similar) = (1, 0);
        for index in (self.pieces.len() - self.tail_pieces()..self.pieces.len()).rev() {
            let len = self.pieces[index].len();
            if size_class(len) > size_class(points) || points + of_similar + len > BLOCK_POINTS {
                break;
            }
            (similar, of_similar) = (similar + 1, of_similar + len);
            if similar == MERGED {
                (first, points) = (index, points + of_similar);
                (similar, of_similar) = (1, 0);
            }
        }
        first
    }

    /// Returns the number of small blocks at the end that will be one block with the points behind them.
    /// O(1), a few steps.
    pub(super) fn tail_pieces(&self) -> usize {
        let mut points = 0;
        let fits = |piece: &&Piece<V>| {
            let is_small = piece.is_small_block() && points + piece.len() < BLOCK_POINTS;
            points += piece.len();
            is_small
        };
        self.pieces.iter().rev().take_while(fits).count()
    }

    /// Returns the number of points in the small blocks at the end; less than a block.
    pub(super) fn tail_points(&self) -> usize {
        self.pieces.iter().rev().take(self.tail_pieces()).map(Piece::len).sum()
    }

    /// Returns a number that rises when the head has got so long that it is worth compressing, and when it
    /// has doubled since; 0 for a short head.
    #[inline]
    pub fn head_growth(&self) -> u32 {
        usize::BITS - (self.head.len() / GROWN_HEAD).leading_zeros()
    }

    /// Frees the memory that the head does not need. It is made again if points come.
    pub fn shrink_head(&mut self) {
        if self.head.has_too_much_room() {
            self.head = self.head.copy_from(0);
        }
    }

    /// Compresses the head, if it has grown long. O(points in the head), and those of small blocks.
    pub fn seal_head(&mut self) {
        if let Some(unsealed) = self.unsealed_head() {
            assert!(self.put_sealed(unsealed.seal()), "the head is as it was");
        }
        self.shrink_head();
    }

    /// Returns the number of pieces that wait to be compressed.
    #[inline]
    pub fn open_pieces(&self) -> usize {
        self.open_pieces
    }

    /// Puts compressed points in the place of those they were made from. Returns `false` if those have
    /// changed or gone since; the series stays as it is then.
    pub fn put_sealed(&mut self, sealed: SealedPiece<V>) -> bool {
        let SealedPiece { from, block } = sealed;
        let piece = Piece::sealed(block);
        let first = self.pieces.partition_point(|other| other.last < piece.first);
        let end = first + from.pieces.len();
        let are_same = end <= self.pieces.len()
            && self.pieces.range(first..end).zip(&from.pieces).all(|(piece, taken)| piece.is_same(taken));
        if !are_same || !self.begins_with(end, &from.head) {
            return false;
        }
        let in_head = from.head.len();
        if in_head > 0 {
            self.settled += in_head as u64;
            self.newest_settled = piece.last;
            self.head = self.head.copy_from(in_head);
        }
        let is_open = |piece: &&Piece<V>| matches!(piece.body, Body::Open(_));
        self.open_pieces -= from.pieces.iter().filter(is_open).count();
        self.hints = from.hints;
        if first == end {
            self.pieces.push_back(piece);
        } else {
            self.pieces[first] = piece;
            self.pieces.drain(first + 1..end);
        }
        // Points that hide behind the floor go with their piece, and those of a head have one only now.
        self.floor = self.floor();
        self.drop_below_floor();
        self.expect_appends();
        true
    }

    /// Whether the head has these points first, behind so many pieces. Without points, any head does.
    fn begins_with(&self, pieces: usize, points: &Columns<V>) -> bool {
        let bits = |value: &V| value.to_bits();
        points.is_empty()
            || pieces == self.pieces.len()
                && self.head.times().starts_with(points.times())
                && self.head.values().iter().zip(points.values()).all(|(one, other)| bits(one) == bits(other))
    }

    /// Compresses every piece that waits for it. O(n) of their points.
    pub fn seal(&mut self) {
        while let Some(unsealed) = self.unsealed() {
            assert!(self.put_sealed(unsealed.seal()), "the pieces are as they were");
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
        let (mut next, mut beside) = (0, Beside::default());
        while let Some(time) = self.late.times().get(next) {
            let index = self.pieces.partition_point(|piece| piece.last < *time);
            self.pieces[index].bring_points(&mut beside)?;
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
