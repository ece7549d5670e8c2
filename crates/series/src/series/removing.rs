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
        self.floor = self.floor();
        self.remove_stored(range);
        // Otherwise points that hide behind the floor might be all that is left.
        if self.floor > i64::MIN {
            self.remove_stored(i64::MIN..=self.floor - 1);
        }
        self.settle_newest();
        self.retain();
        removed
    }

    /// Removes points, also those that hide behind the floor.
    fn remove_stored(&mut self, range: RangeInclusive<i64>) {
        let removed = self.count_stored(range.clone());
        self.late.remove(range.clone());
        self.settled -= removed - self.head.remove(range.clone()) as u64;
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
    }

    /// Finds the newest point after others have gone. Late points may not be behind all pieces.
    fn settle_newest(&mut self) {
        let end_of_pieces = self.pieces.back().map(|piece| piece.last);
        self.newest_settled = end_of_pieces.unwrap_or(i64::MIN);
        // No time is behind `i64::MAX`.
        if let Some(from) = end_of_pieces.map_or(Some(i64::MIN), |end| end.checked_add(1)) {
            let (times, values) = self.late.range(from..=i64::MAX);
            if !times.is_empty() {
                let moved: Vec<(i64, V)> = times.iter().copied().zip(values.iter().copied()).collect();
                self.settled -= moved.len() as u64;
                for (time, value) in moved {
                    self.head.insert(time, value);
                }
                self.late.remove(from..=i64::MAX);
                self.split_head();
            }
        }
    }

    /// Drops the pieces that lie below the floor, with the late points over them. What else is below it
    /// hides until its piece goes.
    pub(super) fn drop_below_floor(&mut self) {
        let gone = self.pieces.partition_point(|piece| piece.last < self.floor);
        let Some(last) = gone.checked_sub(1).map(|index| self.pieces[index].last) else { return };
        self.settled -= self.count_stored(i64::MIN..=last);
        self.late.remove(i64::MIN..=last);
        for piece in self.pieces.drain(..gone) {
            self.open_pieces -= usize::from(matches!(piece.body, Body::Open(_)));
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
