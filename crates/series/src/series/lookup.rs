//! Single points: at, before, after and between times.

use super::Series;
use super::layers::Direction;
use crate::sample::Sample;
use crate::unreadable::{Unreadable, served};
use std::ops::{ControlFlow, RangeInclusive};

impl<V: Sample> Series<V> {
    /// Returns the value at exactly `time`. O(1) while times are regular and values simple, at most
    /// O(log n) and one block decoded.
    #[inline]
    pub fn get(&self, time: i64) -> Option<V> {
        served(self.layers().get(time))
    }

    /// Returns the newest point. O(1) unless points were removed.
    pub fn last(&self) -> Option<(i64, V)> {
        served(self.find_last())
    }

    pub(super) fn find_last(&self) -> Result<Option<(i64, V)>, Unreadable> {
        match self.head.last() {
            Some(last) => Ok(Some(last)),
            None => self.find_at_or_before(i64::MAX),
        }
    }

    /// Returns the oldest point.
    pub fn first(&self) -> Option<(i64, V)> {
        self.at_or_after(i64::MIN)
    }

    /// Returns the newest point at or before `time`.
    pub fn at_or_before(&self, time: i64) -> Option<(i64, V)> {
        served(self.find_at_or_before(time))
    }

    pub(super) fn find_at_or_before(&self, time: i64) -> Result<Option<(i64, V)>, Unreadable> {
        self.first_read(i64::MIN..=time, Direction::Backward, |points| points.last().copied())
    }

    /// Returns the oldest point at or after `time`.
    pub fn at_or_after(&self, time: i64) -> Option<(i64, V)> {
        served(self.first_read(time..=i64::MAX, Direction::Forward, |points| points.first().copied()))
    }

    /// Returns one point of the first run.
    fn first_read(
        &self,
        range: RangeInclusive<i64>,
        direction: Direction,
        choose: impl Fn(&[(i64, V)]) -> Option<(i64, V)>,
    ) -> Result<Option<(i64, V)>, Unreadable> {
        let mut found = None;
        self.layers().read(range, direction, &mut |times: &[i64], values: &[V]| {
            let ends = [0, times.len() - 1].map(|index| (times[index], values[index]));
            found = choose(&ends);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

impl Series<f64> {
    /// Returns the value at `time`, or the one on the straight line between the points before and
    /// after it. `None` outside of the points.
    pub fn interpolate(&self, time: i64) -> Option<f64> {
        let before = self.at_or_before(time)?;
        if before.0 == time {
            return Some(before.1);
        }
        let after = self.at_or_after(time)?;
        Some(between(before, after, time))
    }
}

/// Returns the value at `time` on the straight line through two points.
pub(crate) fn between(before: (i64, f64), after: (i64, f64), time: i64) -> f64 {
    let span = after.0.wrapping_sub(before.0).cast_unsigned() as f64;
    let elapsed = time.wrapping_sub(before.0).cast_unsigned() as f64;
    before.1 + (after.1 - before.1) * (elapsed / span)
}
