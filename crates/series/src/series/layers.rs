//! Reading a range: pieces, head and late points as one sequence of runs.

use super::Series;
use super::columns::{Columns, positions};
use super::late::{Late, merge};
use super::piece::{Body, Piece, Scratch};
use crate::BLOCK_POINTS;
use crate::block::Summary;
use crate::sample::Sample;
use crate::unreadable::{Unreadable, served};
use std::collections::VecDeque;
use std::ops::{ControlFlow, RangeInclusive};

/// Order in which runs are read. Within a run, times always rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the oldest run to the newest.
    Forward,
    /// From the newest run to the oldest.
    Backward,
}

/// Reads runs of points.
pub trait Reading<V> {
    /// Reads a run of points, at least one. Times rise; no point is in two runs.
    fn run(&mut self, times: &[i64], values: &[V]) -> ControlFlow<()>;

    /// Reads a whole block by its summary. Returns `false` to get its points by [`Reading::run`]
    /// instead.
    fn block(&mut self, first: i64, last: i64, count: usize, summary: &dyn Fn() -> Summary<V>) -> bool {
        let _ = (first, last, count, summary);
        false
    }
}

impl<V, F: FnMut(&[i64], &[V]) -> ControlFlow<()>> Reading<V> for F {
    fn run(&mut self, times: &[i64], values: &[V]) -> ControlFlow<()> {
        self(times, values)
    }
}

/// What a series consists of, borrowed for reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layers<'a, V> {
    pub pieces: &'a VecDeque<Piece<V>>,
    pub head: &'a Columns<V>,
    pub late: &'a Late<V>,
    pub floor: i64,
}

impl<V: Sample> Series<V> {
    pub(super) fn layers(&self) -> Layers<'_, V> {
        Layers { pieces: &self.pieces, head: &self.head, late: &self.late, floor: self.floor() }
    }

    /// Reads the points in `range`, in runs of at most 1,024 and those that are late between them.
    /// O(n) of the blocks that the reader does not take by their summaries.
    pub fn read(&self, range: RangeInclusive<i64>, direction: Direction, reading: &mut impl Reading<V>) {
        served(self.layers().read(range, direction, reading));
    }

    /// Returns about how many points are in `range`, at most a block too many at each end, and more if
    /// blocks lost points or got late ones. O(log n).
    pub fn estimate_in(&self, range: RangeInclusive<i64>) -> usize {
        let from = self.pieces.partition_point(|piece| piece.last < *range.start());
        let to = self.pieces.partition_point(|piece| piece.first <= *range.end());
        let in_head = if to == self.pieces.len() { self.head.len() } else { 0 };
        // Only the newest blocks are small.
        let small = self.pieces.len() - self.tail_pieces();
        let in_tail: usize = self.pieces.range(from.max(small).min(to)..to).map(Piece::len).sum();
        to.min(small).saturating_sub(from) * BLOCK_POINTS + in_tail + in_head
    }

    /// Returns the number of points in `range`. O(blocks in the range), and two blocks decoded.
    pub fn count_in(&self, range: RangeInclusive<i64>) -> u64 {
        served(self.layers().count_in(range))
    }

    /// Like [`Series::count_in`], with the points that hide behind the floor.
    pub(super) fn count_stored(&self, range: RangeInclusive<i64>) -> Result<u64, Unreadable> {
        Layers { floor: i64::MIN, ..self.layers() }.count_in(range)
    }
}

/// Counts points without decoding blocks.
struct Counting(u64);

impl<V> Reading<V> for Counting {
    fn run(&mut self, times: &[i64], _values: &[V]) -> ControlFlow<()> {
        self.0 += times.len() as u64;
        ControlFlow::Continue(())
    }

    fn block(&mut self, _first: i64, _last: i64, count: usize, _summary: &dyn Fn() -> Summary<V>) -> bool {
        self.0 += count as u64;
        true
    }
}

impl<V: Sample> Layers<'_, V> {
    /// Returns the number of points in `range`.
    pub(super) fn count_in(&self, range: RangeInclusive<i64>) -> Result<u64, Unreadable> {
        let mut counting = Counting(0);
        self.read(range, Direction::Forward, &mut counting)?;
        Ok(counting.0)
    }

    /// Reads the points in `range`. Ends before the first block that cannot be read.
    pub(super) fn read(
        &self,
        range: RangeInclusive<i64>,
        direction: Direction,
        reading: &mut impl Reading<V>,
    ) -> Result<(), Unreadable> {
        let (from, to) = (*range.start().max(&self.floor), *range.end());
        if from > to {
            return Ok(());
        }
        let start = self.pieces.partition_point(|piece| piece.last < from);
        // Late points may lie before the first piece behind the range. The head counts as a piece.
        let end = self.pieces.partition_point(|piece| piece.first <= to);
        let mut indices = start..end + 1;
        let mut scratch = None;
        loop {
            let next = match direction {
                Direction::Forward => indices.next(),
                Direction::Backward => indices.next_back(),
            };
            let Some(index) = next else { return Ok(()) };
            if self.read_piece(index, from..=to, &mut scratch, reading)?.is_break() {
                return Ok(());
            }
        }
    }

    /// Returns the late points that are read with a piece: those behind the piece before it, up to its
    /// end; with the head, all behind the last piece.
    fn late_of_piece(&self, index: usize, range: &RangeInclusive<i64>) -> (&[i64], &[V]) {
        if self.late.is_empty() {
            return (&[], &[]);
        }
        let before = index.checked_sub(1).map(|before| self.pieces[before].last);
        // No time is behind `i64::MAX`.
        let from = match before {
            Some(i64::MAX) => return (&[], &[]),
            Some(last) => last + 1,
            None => i64::MIN,
        };
        let to = self.pieces.get(index).map_or(i64::MAX, |piece| piece.last);
        self.late.range(from.max(*range.start())..=to.min(*range.end()))
    }

    /// Reads one piece, or the head behind the last.
    fn read_piece(
        &self,
        index: usize,
        range: RangeInclusive<i64>,
        scratch: &mut Option<Box<Scratch<V>>>,
        reading: &mut impl Reading<V>,
    ) -> Result<ControlFlow<()>, Unreadable> {
        let late = self.late_of_piece(index, &range);
        let (times, values) = match self.pieces.get(index) {
            None => (self.head.times(), self.head.values()),
            Some(piece) if piece.first > *range.end() => (&[][..], &[][..]),
            Some(piece) => {
                let whole = *range.start() <= piece.first && piece.last <= *range.end();
                if let Body::Sealed(block) = &piece.body
                    && whole
                    && late.0.is_empty()
                    && reading.block(piece.first, piece.last, block.len(), &|| block.summary())
                {
                    return Ok(ControlFlow::Continue(()));
                }
                piece.points(scratch.get_or_insert_with(Scratch::new))?
            }
        };
        let inside = positions(times, range);
        let (times, values) = (&times[inside.clone()], &values[inside]);
        if late.0.is_empty() {
            let is_nothing = times.is_empty();
            return Ok(if is_nothing { ControlFlow::Continue(()) } else { reading.run(times, values) });
        }
        let mut merged = (Vec::new(), Vec::new());
        merge((times, values), late, &mut merged);
        Ok(reading.run(&merged.0, &merged.1))
    }

    /// Returns the value at exactly `time`. O(1) to O(n) of a block.
    #[inline]
    pub(super) fn get(&self, time: i64) -> Result<Option<V>, Unreadable> {
        if time < self.floor {
            return Ok(None);
        }
        if !self.late.is_empty()
            && let Some(value) = self.late.get(time)
        {
            return Ok(Some(value));
        }
        if self.head.first_time().is_some_and(|first| time >= first) {
            return Ok(self.head.get(time));
        }
        self.pieces.get(self.piece_of(time)).map_or(Ok(None), |piece| piece.get(time))
    }

    /// Returns the first piece that ends at or after `time`.
    #[inline]
    fn piece_of(&self, time: i64) -> usize {
        let (Some(front), Some(back)) = (self.pieces.front(), self.pieces.back()) else { return 0 };
        // Where the piece would be if all spanned the same time: mostly right, or one off.
        if time > front.last && time < back.first {
            let span = back.first.wrapping_sub(front.first) as u64 as f64;
            let distance = time.wrapping_sub(front.first) as u64 as f64;
            let guess = (distance / span * (self.pieces.len() - 1) as f64) as usize;
            let first = guess.clamp(1, self.pieces.len() - 1);
            for near in [first, first - 1, first + 1] {
                let before = near.checked_sub(1).and_then(|before| self.pieces.get(before));
                if before.is_none_or(|piece| piece.last < time)
                    && self.pieces.get(near).is_some_and(|piece| time <= piece.last)
                {
                    return near;
                }
            }
        }
        self.pieces.partition_point(|piece| piece.last < time)
    }
}
