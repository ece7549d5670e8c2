//! Late points: they lie over the pieces, and a point of the same time in a piece does not count.

use super::columns::Columns;
use crate::sample::Sample;
use std::ops::RangeInclusive;

/// Late points at rising times. Most series have none, and need a pointer for them.
#[derive(Debug, Clone)]
pub(crate) struct Late<V> {
    points: Option<Box<Columns<V>>>,
}

impl<V> Default for Late<V> {
    fn default() -> Self {
        Self { points: None }
    }
}

impl<V: Sample> Late<V> {
    /// Wraps points at rising times.
    pub(crate) fn of(points: Columns<V>) -> Self {
        Self { points: (!points.is_empty()).then(|| Box::new(points)) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.points.as_ref().map_or(0, |points| points.len())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.points.as_ref().map_or(0, |points| size_of::<Columns<V>>() + points.bytes())
    }

    /// Returns the value at exactly `time`. O(log n).
    pub(crate) fn get(&self, time: i64) -> Option<V> {
        self.points.as_ref()?.get(time)
    }

    /// Adds or replaces a point. O(n), of at most some thousand.
    pub(crate) fn set(&mut self, time: i64, value: V) {
        let points = self.points.get_or_insert_default();
        match points.get_mut(time) {
            Some(old) => *old = value,
            None => points.insert(time, value),
        }
    }

    /// Removes the points in `range`.
    pub(crate) fn remove(&mut self, range: RangeInclusive<i64>) {
        if let Some(points) = &mut self.points {
            points.remove(range);
            if points.is_empty() {
                self.points = None;
            }
        }
    }

    /// Returns the points in `range`. O(log n).
    pub(crate) fn range(&self, range: RangeInclusive<i64>) -> (&[i64], &[V]) {
        let Some(points) = &self.points else { return (&[], &[]) };
        let positions = points.positions(range);
        (&points.times()[positions.clone()], &points.values()[positions])
    }

    /// Returns the times.
    pub(crate) fn times(&self) -> &[i64] {
        self.points.as_ref().map_or(&[], |points| points.times())
    }

    /// Takes all points.
    pub(crate) fn take(&mut self) -> Columns<V> {
        self.points.take().map_or_else(Columns::default, |points| *points)
    }
}

/// Appends the points of both to `into`, in time order; of two at the same time, the late one.
pub(crate) fn merge<V: Sample>(
    (times, values): (&[i64], &[V]),
    (late_times, late_values): (&[i64], &[V]),
    into: &mut (Vec<i64>, Vec<V>),
) {
    let mut done = 0;
    for (late, value) in late_times.iter().zip(late_values) {
        let before = done + times[done..].partition_point(|time| time < late);
        into.0.extend_from_slice(&times[done..before]);
        into.1.extend_from_slice(&values[done..before]);
        into.0.push(*late);
        into.1.push(*value);
        done = before + usize::from(times.get(before) == Some(late));
    }
    into.0.extend_from_slice(&times[done..]);
    into.1.extend_from_slice(&values[done..]);
}
