//! Points that are not compressed, by columns.

use crate::BLOCK_POINTS;
use crate::sample::Sample;
use std::ops::RangeInclusive;

/// Points that a copy has room for at least.
const ROOM_MIN: usize = 16;

/// Points at rising times, at most [`BLOCK_POINTS`].
#[derive(Debug)]
pub(crate) struct Columns<V> {
    /// Times of the points, and zeros where the next points go.
    times: Vec<i64>,
    /// As many values as times.
    values: Vec<V>,
    len: usize,
}

impl<V> Default for Columns<V> {
    fn default() -> Self {
        Self { times: Vec::new(), values: Vec::new(), len: 0 }
    }
}

impl<V: Clone> Clone for Columns<V> {
    /// Copies the points without the room behind them.
    fn clone(&self) -> Self {
        let (times, values) = (self.times[..self.len].to_vec(), self.values[..self.len].to_vec());
        Self { times, values, len: self.len }
    }
}

impl<V: Sample> Columns<V> {
    /// Reserves memory for a whole block.
    pub(crate) fn with_room_for_a_block() -> Self {
        Self { times: Vec::with_capacity(BLOCK_POINTS), values: Vec::with_capacity(BLOCK_POINTS), len: 0 }
    }

    /// Wraps columns of the same length.
    pub(crate) fn from_parts(times: Vec<i64>, values: Vec<V>) -> Self {
        assert_eq!(times.len(), values.len(), "times and values of columns");
        Self { len: times.len(), times, values }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn times(&self) -> &[i64] {
        &self.times[..self.len]
    }

    #[inline]
    pub(crate) fn values(&self) -> &[V] {
        &self.values[..self.len]
    }

    #[inline]
    pub(crate) fn first_time(&self) -> Option<i64> {
        self.times().first().copied()
    }

    #[inline]
    pub(crate) fn last_time(&self) -> Option<i64> {
        self.times().last().copied()
    }

    pub(crate) fn last(&self) -> Option<(i64, V)> {
        Some((*self.times().last()?, *self.values().last()?))
    }

    /// Returns the allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.times.capacity() * size_of::<i64>() + self.values.capacity() * size_of::<V>()
    }

    /// Appends a point behind all others; makes room for up to `limit` points. Amortised O(1).
    pub(crate) fn push(&mut self, time: i64, value: V, limit: usize) {
        debug_assert!(self.last_time().is_none_or(|last| last < time), "times rise");
        if self.len == self.times.len() {
            self.make_room(limit);
        }
        (self.times[self.len], self.values[self.len]) = (time, value);
        self.len += 1;
    }

    /// Appends a point behind the last if there is one before `time`, and room; else returns `false`.
    #[inline]
    pub(crate) fn push_behind(&mut self, time: i64, value: V) -> bool {
        // Without points, this begins behind its end and is none.
        let last_and_next = self.times.get_mut(self.len.wrapping_sub(1)..=self.len);
        if let Some([last, next]) = last_and_next
            && let Some(next_value) = self.values.get_mut(self.len)
            && *last < time
        {
            (*next, *next_value) = (time, value);
            self.len += 1;
            return true;
        }
        false
    }

    /// Doubles the room for points, until it is enough for `limit` points.
    fn make_room(&mut self, limit: usize) {
        let wanted =
            if self.times.capacity() >= BLOCK_POINTS { limit } else { self.len.saturating_mul(2).max(2) };
        let len = wanted.min(limit).max(self.len + 1);
        self.times.resize(len, 0);
        self.values.resize(len, V::from_bits(0));
    }

    /// Gives up the room behind the points.
    fn fit(&mut self) {
        self.times.truncate(self.len);
        self.values.truncate(self.len);
    }

    /// Returns a copy of the points from a position on, with room for as many more.
    pub(crate) fn copy_from(&self, position: usize) -> Self {
        let (times, values) = (&self.times()[position..], &self.values()[position..]);
        let room = (times.len() * 2).clamp(ROOM_MIN, BLOCK_POINTS);
        let mut rest = Self { times: Vec::with_capacity(room), values: Vec::with_capacity(room), len: 0 };
        rest.extend(times, values);
        rest
    }

    /// Whether the memory is more than [`Columns::copy_from`] would reserve.
    pub(crate) fn has_too_much_room(&self) -> bool {
        self.times.capacity() > (self.len * 2).max(ROOM_MIN)
    }

    /// Appends points behind all others.
    pub(crate) fn extend(&mut self, times: &[i64], values: &[V]) {
        assert_eq!(times.len(), values.len(), "times and values of columns");
        self.fit();
        self.times.extend_from_slice(times);
        self.values.extend_from_slice(values);
        self.len = self.times.len();
    }

    /// Returns the position of the first point at or after `time`. O(1) for regular times, O(log n)
    /// at worst.
    #[inline]
    pub(crate) fn position(&self, time: i64) -> usize {
        let times = self.times();
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return 0 };
        if time <= *first {
            return 0;
        }
        if time > *last {
            return times.len();
        }
        position_between(times, *first, *last, time)
    }

    /// Returns the value at exactly `time`.
    #[inline]
    pub(crate) fn get(&self, time: i64) -> Option<V> {
        self.get_between(self.first_time()?, self.last_time()?, time)
    }

    /// Returns the value at exactly `time`; the caller knows the first and the last time, so that they
    /// need not be read.
    #[inline]
    pub(crate) fn get_between(&self, first: i64, last: i64, time: i64) -> Option<V> {
        if time < first || time > last {
            return None;
        }
        let times = self.times();
        let position = position_between(times, first, last, time);
        (*times.get(position)? == time).then(|| self.values[position])
    }

    /// Returns the value at `time` for a change.
    pub(crate) fn get_mut(&mut self, time: i64) -> Option<&mut V> {
        let position = self.position(time);
        if *self.times().get(position)? == time { self.values.get_mut(position) } else { None }
    }

    /// Inserts a point at a time that has none. O(n).
    pub(crate) fn insert(&mut self, time: i64, value: V) {
        let position = self.position(time);
        debug_assert!(self.times().get(position) != Some(&time), "a second point at {time}");
        self.fit();
        self.times.insert(position, time);
        self.values.insert(position, value);
        self.len += 1;
    }

    /// Removes the points in `range` and returns their number. O(n).
    pub(crate) fn remove(&mut self, range: RangeInclusive<i64>) -> usize {
        let positions = self.positions(range);
        let removed = positions.len();
        self.fit();
        self.times.drain(positions.clone());
        self.values.drain(positions);
        self.len -= removed;
        removed
    }

    /// Returns the positions of the points in `range`.
    pub(crate) fn positions(&self, range: RangeInclusive<i64>) -> std::ops::Range<usize> {
        positions(self.times(), range)
    }
}

/// Returns the position of the first of rising times at or after `time`, which is at or between the
/// first and the last.
#[inline]
fn position_between(times: &[i64], first: i64, last: i64, time: i64) -> usize {
    // Where the time would be if all steps were equal: mostly right, or one off.
    let (span, distance) = (last.wrapping_sub(first) as u64, time.wrapping_sub(first) as u64);
    let guess = (distance as f64 / span.max(1) as f64 * (times.len() - 1) as f64 + 0.5) as usize;
    if times.get(guess) == Some(&time) {
        return guess;
    }
    let guess = guess.clamp(1, (times.len() - 1).max(1));
    for near in [guess, guess + 1] {
        if times.get(near).is_some_and(|at| *at >= time) && times[near - 1] < time {
            return near;
        }
    }
    times.partition_point(|other| *other < time)
}

/// Returns the positions of rising times in `range`.
pub(crate) fn positions(times: &[i64], range: RangeInclusive<i64>) -> std::ops::Range<usize> {
    let start = times.partition_point(|time| time < range.start());
    let end = times.partition_point(|time| time <= range.end());
    start..end.max(start)
}
