//! Points that go: by a range of times, or because they are below the floor.

use super::Series;
use super::columns::{Columns, positions};
use super::piece::{Body, Piece, Scratch};
use crate::sample::Sample;
use std::ops::RangeInclusive;

impl<V: Sample> Series<V> {
    /// Removes the points in `range` and returns their number. Pieces that lie in the range are
    /// dropped; the two at its ends are made again. O(pieces + log n).
    pub fn remove(&mut self, range: RangeInclusive<i64>) -> u64 {
        let removed = self.count_in(range.clone());
        if removed == 0 {
            return 0;
        }
        self.late.remove(range.clone());
        self.head.remove(range.clone());
        let from = self.pieces.partition_point(|piece| piece.last < *range.start());
        let to = self.pieces.partition_point(|piece| piece.first <= *range.end());
        let mut left = Vec::new();
        for piece in self.pieces.range(from..to) {
            self.open_pieces -= usize::from(matches!(piece.body, Body::Open(_)));
            left.extend(without(piece, range.clone()));
        }
        self.open_pieces += left.len();
        let behind = self.pieces.split_off(to);
        self.pieces.truncate(from);
        self.pieces.extend(left);
        self.pieces.extend(behind);
        self.count -= removed;
        self.settle_newest();
        removed
    }

    /// Finds the newest point after others have gone. Late points may not be behind all pieces.
    fn settle_newest(&mut self) {
        if let Some((newest, _)) = self.at_or_before(i64::MAX) {
            self.newest = newest;
        }
        let end_of_pieces = self.pieces.back().map_or(i64::MIN, |piece| piece.last);
        if self.pieces.is_empty() || self.newest > end_of_pieces {
            let from = if self.pieces.is_empty() { i64::MIN } else { end_of_pieces + 1 };
            let (times, values) = self.late.range(from..=i64::MAX);
            if !times.is_empty() {
                let moved: Vec<(i64, V)> = times.iter().copied().zip(values.iter().copied()).collect();
                for (time, value) in moved {
                    self.head.insert(time, value);
                }
                self.late.remove(from..=i64::MAX);
                self.close_overfull_head();
            }
        }
    }

    /// Makes pieces of a head that got more points than it may have.
    fn close_overfull_head(&mut self) {
        while self.head.len() > crate::BLOCK_POINTS {
            let (times, values) = (self.head.times(), self.head.values());
            let (full, rest) = (0..crate::BLOCK_POINTS, crate::BLOCK_POINTS..times.len());
            let piece = Columns::from_parts(times[full.clone()].to_vec(), values[full].to_vec());
            let rest = Columns::from_parts(times[rest.clone()].to_vec(), values[rest].to_vec());
            self.pieces.push_back(Piece::open(piece));
            self.open_pieces += 1;
            self.head = rest;
        }
    }

    /// Drops pieces and late points that lie below the floor. Does not count them.
    pub(super) fn drop_below_floor(&mut self) {
        while let Some(piece) = self.pieces.front()
            && piece.last < self.floor
        {
            self.open_pieces -= usize::from(matches!(piece.body, Body::Open(_)));
            self.pieces.pop_front();
        }
        if self.floor > i64::MIN && !self.late.is_empty() {
            self.late.remove(i64::MIN..=self.floor - 1);
        }
    }
}

/// Returns what is left of a piece without the points in `range`: nothing, or one piece.
fn without<V: Sample>(piece: &Piece<V>, range: RangeInclusive<i64>) -> Option<Piece<V>> {
    if *range.start() <= piece.first && piece.last <= *range.end() {
        return None;
    }
    let mut scratch = Scratch::new();
    let (times, values) = piece.points(&mut scratch);
    let gone = positions(times, range);
    let times = [&times[..gone.start], &times[gone.end..]].concat();
    let values = [&values[..gone.start], &values[gone.end..]].concat();
    Some(Piece::open(Columns::from_parts(times, values)))
}
