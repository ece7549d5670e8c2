//! Rows of a range of one series by their positions: the time of a point, or the start of a bucket.

use super::{Aggregated, Range, Stamp};
use crate::value::series::Points;
use crate::watch::following::Undo;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};
use tidemark_series::{Buckets, Direction, Reading, Window, Windows};

/// The values of a row.
pub(super) type Row = SmallVec<[f64; 2]>;

impl Aggregated {
    fn window(&self, of: &Range, range: RangeInclusive<i64>) -> Window {
        let (buckets, aggregations) = (self.buckets(of), self.aggregations.clone());
        Window { buckets, aggregations, empty: false, range, before: None, after: None }
    }

    fn buckets(&self, range: &Range) -> Buckets {
        Buckets::new(self.duration, range.align.unwrap_or(0)).expect("a duration that was parsed is positive")
    }
}

impl Range {
    /// Returns the position of the row that has a point at this time.
    pub(super) fn position_of(&self, time: i64) -> i64 {
        self.aggregated.as_ref().map_or(time, |aggregated| aggregated.buckets(self).start_of(time))
    }

    /// Returns the time with which the row at a position is answered.
    pub(super) fn time_of(&self, at: i64) -> i64 {
        let Some(aggregated) = &self.aggregated else { return at };
        at.max(0).saturating_add(aggregated.offset())
    }

    /// Returns the times of the points in the row at a position.
    fn points_at(&self, at: i64) -> RangeInclusive<i64> {
        let end = self.aggregated.as_ref().map_or(at, |it| at.saturating_add(it.duration - 1));
        at.max(self.from)..=end.min(self.to)
    }

    /// Returns the times of the range next to a position, in a direction; `None` if there are none.
    pub(super) fn beside(&self, position: Option<i64>, direction: Direction) -> Option<RangeInclusive<i64>> {
        let (mut from, mut to) = (self.from, self.to);
        if let Some(at) = position {
            let own = self.points_at(at);
            match direction {
                Direction::Forward => from = from.max(own.end().checked_add(1)?),
                Direction::Backward => to = to.min(own.start().checked_sub(1)?),
            }
        }
        (from <= to).then_some(from..=to)
    }

    fn passes(&self, time: i64, value: f64) -> bool {
        self.times.as_ref().is_none_or(|times| times.contains(&time))
            && self.values.as_ref().is_none_or(|wanted| wanted.contains(&value))
    }

    /// Returns the first point in a direction that passes the filters.
    pub(super) fn first_point(
        &self,
        points: &Points,
        within: RangeInclusive<i64>,
        direction: Direction,
    ) -> Option<(i64, f64)> {
        if let Some(times) = &self.times {
            let wanted = times.iter().copied().filter(|time| within.contains(time));
            let found = wanted.filter_map(|time| {
                points.get(time).map(|value| (time, value)).filter(|(time, value)| self.passes(*time, *value))
            });
            return match direction {
                Direction::Forward => found.min_by_key(|(time, _)| *time),
                Direction::Backward => found.max_by_key(|(time, _)| *time),
            };
        }
        let mut found = None;
        points.read(within, direction, &mut |times: &[i64], values: &[f64]| {
            let mut run = times.iter().copied().zip(values.iter().copied());
            let passes = |(time, value): &(i64, f64)| self.passes(*time, *value);
            found = match direction {
                Direction::Forward => run.find(passes),
                Direction::Backward => run.rfind(passes),
            };
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Returns the row at a position, if there is one.
    pub(super) fn row_at(&self, points: &Points, at: i64) -> Option<Row> {
        let Some(aggregated) = &self.aggregated else {
            let is_in_range = self.points_at(at).contains(&at);
            let value = points.get(at).filter(|value| is_in_range && self.passes(at, *value))?;
            return Some(Row::from_slice(&[value]));
        };
        let mut row = None;
        self.aggregate_points(aggregated, self.points_at(at), points, |_, results| {
            row = Some(Row::from_slice(results));
            ControlFlow::Continue(())
        });
        row
    }

    /// Calls `visit` with the rows and their positions, in a direction, until it breaks off.
    pub(super) fn for_each_row(
        &self,
        points: &Points,
        direction: Direction,
        mut visit: impl FnMut(i64, &[f64]) -> ControlFlow<()>,
    ) {
        let within = self.from..=self.to;
        let Some(aggregated) = &self.aggregated else {
            points.read(within, direction, &mut |times: &[i64], values: &[f64]| {
                let mut run = times.iter().zip(values).filter(|(time, value)| self.passes(**time, **value));
                match direction {
                    Direction::Forward => run.try_for_each(|(time, value)| visit(*time, &[*value])),
                    Direction::Backward => run.rev().try_for_each(|(time, value)| visit(*time, &[*value])),
                }
            });
            return;
        };
        if direction == Direction::Forward {
            return self.aggregate_points(aggregated, within, points, visit);
        }
        let mut rows = Vec::new();
        self.aggregate_points(aggregated, within, points, |at, results| {
            rows.push((at, Row::from_slice(results)));
            ControlFlow::Continue(())
        });
        _ = rows.iter().rev().try_for_each(|(at, row)| visit(*at, row));
    }

    /// Aggregates the points between two times that pass the filters. Calls `output` with the start of
    /// each bucket and its results.
    fn aggregate_points(
        &self,
        aggregated: &Aggregated,
        within: RangeInclusive<i64>,
        points: &Points,
        output: impl FnMut(i64, &[f64]) -> ControlFlow<()>,
    ) {
        if within.is_empty() {
            return;
        }
        let window = aggregated.window(self, within.clone());
        let mut windows = Windows::new(&window, output);
        if self.times.is_none() && self.values.is_none() {
            points.read(within, Direction::Forward, &mut windows);
        } else {
            points.read(within, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
                let run = times.iter().copied().zip(values.iter().copied());
                let (times, values): (Vec<i64>, Vec<f64>) =
                    run.filter(|(time, value)| self.passes(*time, *value)).unzip();
                if times.is_empty() { ControlFlow::Continue(()) } else { windows.run(&times, &values) }
            });
        }
        windows.finish();
    }

    /// Returns the row at a position as it was before a change.
    pub(super) fn row_before(&self, points: &Points, at: i64, undo: &Undo) -> Option<Row> {
        let Some(aggregated) = &self.aggregated else {
            let Some(value) = undo.get(&at) else { return self.row_at(points, at) };
            return value.filter(|value| self.passes(at, *value)).map(|value| Row::from_slice(&[value]));
        };
        let within = self.points_at(at);
        if undo.range(within.clone()).next().is_none() {
            return self.row_at(points, at);
        }
        let mut before: BTreeMap<i64, f64> = BTreeMap::new();
        points.read(within.clone(), Direction::Forward, &mut |times: &[i64], values: &[f64]| {
            before.extend(times.iter().copied().zip(values.iter().copied()));
            ControlFlow::Continue(())
        });
        for (time, value) in undo.range(within.clone()) {
            match value {
                Some(value) => before.insert(*time, *value),
                None => before.remove(time),
            };
        }
        let passing = before.into_iter().filter(|(time, value)| self.passes(*time, *value));
        let (times, values): (Vec<i64>, Vec<f64>) = passing.unzip();
        if times.is_empty() {
            return None;
        }
        let window = aggregated.window(self, within);
        let mut row = None;
        let mut windows = Windows::new(&window, |_, results: &[f64]| {
            row = Some(Row::from_slice(results));
            ControlFlow::Continue(())
        });
        _ = windows.run(&times, &values);
        windows.finish();
        row
    }
}

impl Aggregated {
    /// Returns how far behind the start of a bucket the time of its row is.
    pub(super) fn offset(&self) -> i64 {
        match self.stamp {
            Stamp::Start => 0,
            Stamp::Middle => self.duration / 2,
            Stamp::End => self.duration,
        }
    }
}
