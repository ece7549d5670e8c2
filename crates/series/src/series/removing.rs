//! Points that go: by a range of times, or because they are below the floor.

use super::Series;
use super::columns::{Columns, positions};
use super::piece::{Body, Piece, Scratch};
use crate::block::Beside;
use crate::sample::Sample;
use crate::unreadable::{Unreadable, guarded, served};
use std::ops::RangeInclusive;

impl<V: Sample> Series<V> {
    /// Removes the points in `range` and returns their number. Pieces that lie in the range are
    /// dropped; the two at its ends are made again. O(pieces + log n). Nothing is removed if one of
    /// those cannot be read.
    pub fn remove(&mut self, range: RangeInclusive<i64>) -> u64 {
        served(self.try_remove(range))
    }

    fn try_remove(&mut self, range: RangeInclusive<i64>) -> Result<u64, Unreadable> {
        let removed = self.layers().count_in(range.clone())?;
        if removed == 0 {
            return Ok(0);
        }
        let hidden = self.floor().checked_sub(1).map(|last| i64::MIN..=last);
        self.bring_what_changes(&range)?;
        if let Some(hidden) = &hidden {
            self.bring_what_changes(hidden)?;
        }
        self.floor = self.floor();
        self.remove_stored(range);
        // Otherwise points that hide behind the floor might be all that is left.
        if let Some(hidden) = hidden {
            self.remove_stored(hidden);
        }
        self.settle_newest();
        self.retain();
        Ok(removed)
    }

    /// Brings the points into memory that removing a range needs: those of pieces that lie partly in it,
    /// and of pieces in it that late points lie over.
    fn bring_what_changes(&mut self, range: &RangeInclusive<i64>) -> Result<(), Unreadable> {
        let from = self.pieces.partition_point(|piece| piece.last < *range.start());
        let to = self.pieces.partition_point(|piece| piece.first <= *range.end()).max(from);
        let mut before = from.checked_sub(1).map_or(i64::MIN, |index| self.pieces[index].last);
        let mut beside = Beside::default();
        for piece in self.pieces.range_mut(from..to) {
            let is_whole = range.contains(&piece.first) && range.contains(&piece.last);
            // Late points between two pieces are read with the second.
            if !is_whole || !self.late.range(before..=piece.last).0.is_empty() {
                piece.bring_points(&mut beside)?;
            }
            before = piece.last;
        }
        Ok(())
    }

    /// Removes points, also those that hide behind the floor. What it needs is in memory.
    fn remove_stored(&mut self, range: RangeInclusive<i64>) {
        let removed = self.count_stored(range.clone()).expect("the points are in memory");
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
        // With late points over a block that cannot be read, their number is unknown: they hide on.
        let Ok(Ok(dropped)) = guarded(|| self.count_stored(i64::MIN..=last)) else { return };
        self.settled -= dropped;
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
    let (times, values) = piece.points(&mut scratch).expect("the points are in memory");
    let gone = positions(times, range);
    let times = [&times[..gone.start], &times[gone.end..]].concat();
    let values = [&values[..gone.start], &values[gone.end..]].concat();
    Some(Piece::open(Columns::from_parts(times, values)))
}
