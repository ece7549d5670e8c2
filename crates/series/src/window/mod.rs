//! Aggregation by buckets of equal duration.

mod accumulator;
mod aggregation;
mod buckets;

pub use aggregation::{Aggregation, UnknownAggregation};
pub use buckets::Buckets;

use crate::block::Summary;
use crate::sample::{Kind, Sample};
use crate::series::{Reading, between};
use accumulator::{Accumulator, Slice};
use aggregation::Needs;
use std::ops::{ControlFlow, RangeInclusive};

/// How to aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The buckets.
    pub buckets: Buckets,
    /// One result of each for every bucket.
    pub aggregations: Vec<Aggregation>,
    /// Whether buckets without points are returned: those in the range that lie between two points,
    /// `before` and `after` included.
    pub empty: bool,
    /// The range that is read; time outside of it is in no mean over time.
    pub range: RangeInclusive<i64>,
    /// The point before the range, for aggregations that need it.
    pub before: Option<(i64, f64)>,
    /// The point behind the range.
    pub after: Option<(i64, f64)>,
}

/// Aggregates the points that it reads, which must come in time order.
///
/// Calls `output` with each bucket's start and results, in time order, until it breaks off.
///
/// ```
/// use std::ops::ControlFlow;
/// use tidemark_series::{Aggregation, Buckets, Direction, Options, Series, Window, Windows};
///
/// let mut series = Series::new(Options::default());
/// series.extend(&[0, 400, 800, 1_200], &[1.0, 2.0, 4.0, 8.0]).unwrap();
/// let window = Window {
///     buckets: Buckets::new(1_000, 0).unwrap(),
///     aggregations: vec![Aggregation::Sum, Aggregation::Count],
///     empty: false,
///     range: 0..=2_000,
///     before: None,
///     after: None,
/// };
/// let mut rows = Vec::new();
/// let mut windows = Windows::new(&window, |start, results: &[f64]| {
///     rows.push((start, results.to_vec()));
///     ControlFlow::Continue(())
/// });
/// series.read(0..=2_000, Direction::Forward, &mut windows);
/// windows.finish();
/// assert_eq!(rows, [(0, vec![7.0, 3.0]), (1_000, vec![8.0, 1.0])]);
/// ```
pub struct Windows<'w, F> {
    window: &'w Window,
    needs: Needs,
    output: F,
    /// Start of the bucket that is being read.
    current: Option<i64>,
    accumulator: Accumulator,
    results: Vec<f64>,
    /// The last point that is no NaN, in the current bucket or before it.
    last: Option<(i64, f64)>,
    stopped: bool,
    /// Room for values of other types as numbers.
    converted: Vec<f64>,
}

impl<'w, F: FnMut(i64, &[f64]) -> ControlFlow<()>> Windows<'w, F> {
    /// Begins before the first point.
    pub fn new(window: &'w Window, output: F) -> Self {
        Self {
            needs: Needs::of(&window.aggregations),
            window,
            output,
            current: None,
            accumulator: Accumulator::default(),
            results: Vec::with_capacity(window.aggregations.len()),
            last: window.before,
            stopped: false,
            converted: Vec::new(),
        }
    }

    /// Returns the last bucket, and those without points between it and the point behind the range.
    pub fn finish(mut self) {
        let after = self.window.after;
        let last_bucket = self.window.buckets.start_of(*self.window.range.end());
        if self.current.is_some() {
            self.flush(after);
            if self.window.empty && after.is_some() {
                self.fill(last_bucket, true, after);
            }
        } else if self.window.empty
            && let (Some(_), Some(_)) = (self.window.before, after)
        {
            self.current = self.before_first_bucket();
            self.fill(last_bucket, true, after);
        }
    }

    /// Returns the start of the bucket before that in which the range begins.
    fn before_first_bucket(&self) -> Option<i64> {
        let Buckets { duration, .. } = self.window.buckets;
        self.window.buckets.start_of(*self.window.range.start()).checked_sub(duration)
    }

    /// Goes on to the bucket that begins at `start`, whose first point is `next`.
    fn enter(&mut self, start: i64, next: (i64, f64)) {
        if self.current == Some(start) {
            return;
        }
        if self.current.is_some() {
            self.flush(Some(next));
        } else if self.window.empty && self.window.before.is_some() {
            self.current = self.before_first_bucket();
        }
        if self.window.empty && self.current.is_some() {
            self.fill(start, false, Some(next));
        }
        self.current = Some(start);
        self.accumulator.clear();
    }

    /// Returns the results of the current bucket. `next` is the point behind it.
    fn flush(&mut self, next: Option<(i64, f64)>) {
        let Some(start) = self.current else { return };
        if self.stopped {
            return;
        }
        if self.needs.area
            && let (Some(last), Some(next)) = (self.accumulator.last(), next)
        {
            let end = self.end_of(start);
            self.accumulator.add_area(last, next, self.begin_of(start), end);
        }
        self.results.clear();
        for aggregation in &self.window.aggregations {
            let result = self.accumulator.result(*aggregation, self.window.buckets.duration as u64);
            self.results.push(result);
        }
        self.stopped = (self.output)(start, &self.results).is_break();
    }

    /// Returns where a bucket's mean over time begins: within the range.
    fn begin_of(&self, start: i64) -> i64 {
        start.max(*self.window.range.start())
    }

    /// Returns where a bucket's mean over time ends: within the range.
    fn end_of(&self, start: i64) -> i64 {
        start.saturating_add(self.window.buckets.duration).min(*self.window.range.end())
    }

    /// Returns the buckets without points behind the current one, up to that at `end`.
    fn fill(&mut self, end: i64, inclusive: bool, next: Option<(i64, f64)>) {
        let duration = self.window.buckets.duration;
        let Some(mut start) = self.current.and_then(|start| start.checked_add(duration)) else { return };
        while !self.stopped && (start < end || (inclusive && start == end)) {
            self.results.clear();
            for aggregation in &self.window.aggregations {
                let result = match aggregation {
                    Aggregation::Last => self.last_before(start),
                    Aggregation::Twa => self.mean_of_line(start, next),
                    other => other.of_nothing(),
                };
                self.results.push(result);
            }
            self.stopped = (self.output)(start, &self.results).is_break();
            self.current = Some(start);
            let Some(following) = start.checked_add(duration) else { return };
            start = following;
        }
    }

    /// Returns the last value before a bucket without points.
    fn last_before(&self, start: i64) -> f64 {
        self.last.filter(|(time, _)| *time < start).map_or(f64::NAN, |(_, value)| value)
    }

    /// Returns the mean of the line over a bucket without points.
    fn mean_of_line(&self, start: i64, next: Option<(i64, f64)>) -> f64 {
        let (Some(last), Some(next)) = (self.last, next) else { return f64::NAN };
        let (begin, end) = (self.begin_of(start), self.end_of(start));
        if begin >= end {
            return between(last, next, begin);
        }
        let mut line = Accumulator::default();
        line.add_area(last, next, begin, end);
        line.result(Aggregation::Twa, 0)
    }

    /// Reads points that are no NaNs.
    fn read_numbers(&mut self, times: &[i64], values: &[f64]) {
        let mut rest = Slice { times, values };
        while let (Some(time), false) = (rest.times.first(), self.stopped) {
            let start = self.window.buckets.start_of(*time);
            self.enter(start, (*time, rest.values[0]));
            let count = count_before(rest.times, start.checked_add(self.window.buckets.duration));
            let slice = Slice { times: &rest.times[..count], values: &rest.values[..count] };
            self.accumulator.add(slice, self.last, self.begin_of(start), self.needs);
            self.last = self.accumulator.last();
            rest = Slice { times: &rest.times[count..], values: &rest.values[count..] };
        }
    }

    /// Reads points of which some are NaNs: in each bucket, the numbers and then the number of NaNs.
    fn read_with_nans(&mut self, times: &[i64], values: &[f64]) {
        let mut from = 0;
        while from < times.len() && !self.stopped {
            let start = self.window.buckets.start_of(times[from]);
            let count = count_before(&times[from..], start.checked_add(self.window.buckets.duration));
            let bucket = from..from + count;
            let (mut numbers, mut nans) = ((Vec::new(), Vec::new()), 0);
            for index in bucket.clone() {
                if values[index].is_nan() {
                    nans += 1;
                } else {
                    numbers.0.push(times[index]);
                    numbers.1.push(values[index]);
                }
            }
            if numbers.0.is_empty() {
                // The way to the next number leads through this bucket, and is not known yet.
                self.enter(start, (times[from], f64::NAN));
            } else {
                self.read_numbers(&numbers.0, &numbers.1);
            }
            self.accumulator.add_nans(nans);
            from = bucket.end;
        }
    }
}

/// Returns the number of rising times before `end`, at least 1; all of them without an end.
fn count_before(times: &[i64], end: Option<i64>) -> usize {
    let Some(end) = end else { return times.len() };
    if times[times.len() - 1] < end {
        return times.len();
    }
    // Buckets are mostly short: look ahead in growing steps.
    let mut step = 8;
    while step < times.len() && times[step] < end {
        step *= 2;
    }
    let from = step / 2;
    let to = times.len().min(step + 1);
    let from = if times.get(from).is_some_and(|time| *time < end) { from } else { 0 };
    from + times[from..to].partition_point(|time| *time < end)
}

impl<V: Sample, F: FnMut(i64, &[f64]) -> ControlFlow<()>> Reading<V> for Windows<'_, F> {
    fn run(&mut self, times: &[i64], values: &[V]) -> ControlFlow<()> {
        let mut converted = std::mem::take(&mut self.converted);
        let numbers = V::as_numbers(values, &mut converted);
        // All are counted, which a processor does many at a time.
        if V::KIND == Kind::Float && numbers.iter().filter(|number| number.is_nan()).count() > 0 {
            self.read_with_nans(times, numbers);
        } else {
            self.read_numbers(times, numbers);
        }
        self.converted = converted;
        if self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn block(&mut self, first: i64, last: i64, count: usize, summary: &dyn Fn() -> Summary<V>) -> bool {
        let buckets = &self.window.buckets;
        if !self.needs.only_summaries() || buckets.start_of(first) != buckets.start_of(last) {
            return false;
        }
        let summary = summary();
        if summary.nans > 0 || (self.needs.sum && summary.sum.is_none()) {
            return false;
        }
        let summary = Summary {
            nans: 0,
            sum: summary.sum,
            lowest: summary.lowest.to_f64(),
            highest: summary.highest.to_f64(),
            first: summary.first.to_f64(),
            last: summary.last.to_f64(),
        };
        self.enter(self.window.buckets.start_of(first), (first, summary.first));
        self.accumulator.add_summary(count, last, &summary);
        self.last = self.accumulator.last();
        true
    }
}

/// Aggregates values that have no times, such as those of several series at one time. NaNs are left
/// out, as in buckets.
pub fn aggregate(aggregation: Aggregation, values: &[f64]) -> f64 {
    let needs = Needs::of(&[aggregation]);
    let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let mut accumulator = Accumulator::default();
    accumulator.add_nans((values.len() - numbers.len()) as u64);
    if !numbers.is_empty() {
        let times = vec![0; numbers.len()];
        accumulator.add(Slice { times: &times, values: &numbers }, None, 0, Needs { area: false, ..needs });
    }
    accumulator.result(aggregation, 1)
}

#[cfg(test)]
mod tests;
