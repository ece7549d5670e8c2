//! A series at one moment, to be read while the series changes.

use super::Series;
use super::columns::Columns;
use super::late::Late;
use super::layers::{Direction, Layers, Reading};
use super::piece::Piece;
use crate::sample::Sample;
use crate::unreadable::served;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// The points of a series in a range, at the moment when it was taken.
#[derive(Debug, Clone)]
pub struct Snapshot<V> {
    pieces: VecDeque<Piece<V>>,
    head: Columns<V>,
    late: Late<V>,
    floor: i64,
    range: RangeInclusive<i64>,
}

impl<V: Sample> Series<V> {
    /// Returns what [`Series::read`] would read, to be read without the series. Copies at most the
    /// points that are in no piece, and a reference for each piece in the range.
    pub fn snapshot(&self, range: RangeInclusive<i64>) -> Snapshot<V> {
        Snapshot::of(&self.layers(), range)
    }
}

impl<V: Sample> Snapshot<V> {
    fn of(layers: &Layers<'_, V>, range: RangeInclusive<i64>) -> Self {
        let from = layers.pieces.partition_point(|piece| piece.last < *range.start());
        // One more, before which late points may lie.
        let to = layers.pieces.partition_point(|piece| piece.first <= *range.end()).max(from);
        let pieces: VecDeque<_> = layers.pieces.range(from..to).cloned().collect();
        let head = if to == layers.pieces.len() { layers.head.clone() } else { Columns::default() };
        let late = layers.late.clone();
        Self { pieces, head, late, floor: layers.floor, range }
    }

    /// Returns the value at exactly `time`, if it is in the range.
    pub fn get(&self, time: i64) -> Option<V> {
        served(self.layers().get(time)).filter(|_| self.range.contains(&time))
    }

    /// Returns the number of points. O(blocks), and two blocks decoded.
    pub fn count(&self) -> u64 {
        served(self.layers().count_in(self.range.clone()))
    }

    /// Reads the points, like [`Series::read`](super::Series::read).
    pub fn read(&self, direction: Direction, reading: &mut impl Reading<V>) {
        served(self.layers().read(self.range.clone(), direction, reading));
    }

    /// Reads the points that are in `range` too.
    pub(crate) fn read_within(
        &self,
        range: RangeInclusive<i64>,
        direction: Direction,
        reading: &mut impl Reading<V>,
    ) {
        let from = *range.start().max(self.range.start());
        let to = *range.end().min(self.range.end());
        served(self.layers().read(from..=to, direction, reading));
    }

    fn layers(&self) -> Layers<'_, V> {
        Layers { pieces: &self.pieces, head: &self.head, late: &self.late, floor: self.floor }
    }
}
