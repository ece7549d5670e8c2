//! The points of one bucket, as far as its aggregations need them.

use super::aggregation::{Aggregation, Needs};
use crate::exact_sum::ExactSum;
use crate::series::between;

/// What is known of the points of one bucket.
///
/// Everything is a function of the points, to the bit: sums are exact until they are rounded, and
/// what is summed is computed from one or two neighbouring points.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    count: u64,
    nans: u64,
    sum: ExactSum,
    lowest: f64,
    highest: f64,
    first: f64,
    last: Option<(i64, f64)>,
    /// Sums of the distances from the first value, and of their squares.
    distances: ExactSum,
    squares: ExactSum,
    values: Vec<f64>,
    area: ExactSum,
    /// Time that the area spans.
    span: f64,
    increase: ExactSum,
    /// Numbers on their way to a sum.
    scratch: Vec<f64>,
}

/// A slice of a bucket's points, none of them NaN, at least one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice<'a> {
    pub times: &'a [i64],
    pub values: &'a [f64],
}

impl Accumulator {
    /// Begins a bucket.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.nans = 0;
        self.last = None;
        self.sum.clear();
        self.distances.clear();
        self.squares.clear();
        self.values.clear();
        self.area.clear();
        self.span = 0.0;
        self.increase.clear();
    }

    pub(super) fn add_nans(&mut self, nans: u64) {
        self.nans += nans;
    }

    pub(super) fn last(&self) -> Option<(i64, f64)> {
        self.last
    }

    /// Adds points behind those so far. `before` is the point before the slice, in this bucket or
    /// before it; of the way from it, only what is at or after `start` counts as area.
    pub(super) fn add(&mut self, slice: Slice<'_>, before: Option<(i64, f64)>, start: i64, needs: Needs) {
        let Slice { times, values } = slice;
        if needs.sum {
            self.sum.add_all(values);
        }
        if needs.range {
            self.widen(values);
        }
        if self.count == 0 {
            self.first = values[0];
        }
        if needs.spread {
            self.add_distances(values);
        }
        if needs.values {
            self.values.extend_from_slice(values);
        }
        if needs.area || needs.steps {
            let mut from = before;
            for point in times.iter().copied().zip(values.iter().copied()) {
                if let Some(from) = from {
                    if needs.area {
                        self.add_area(from, point, start, i64::MAX);
                    }
                    if needs.steps {
                        self.add_step(from.1, point.1);
                    }
                }
                from = Some(point);
            }
        }
        self.count += values.len() as u64;
        self.last = Some((times[times.len() - 1], values[values.len() - 1]));
    }

    /// Adds a block without NaNs by its summary.
    pub(super) fn add_summary(&mut self, count: usize, last_time: i64, summary: &crate::Summary<f64>) {
        if let Some(sum) = summary.sum {
            self.sum.add_halves(sum);
        }
        self.widen(&[summary.lowest, summary.highest]);
        if self.count == 0 {
            self.first = summary.first;
        }
        self.count += count as u64;
        self.last = Some((last_time, summary.last));
    }

    fn widen(&mut self, values: &[f64]) {
        if self.count == 0 {
            (self.lowest, self.highest) = (values[0], values[0]);
        }
        let (mut lowest, mut highest) = (self.lowest, self.highest);
        for value in values {
            lowest = if *value < lowest { *value } else { lowest };
            highest = if *value > highest { *value } else { highest };
        }
        (self.lowest, self.highest) = (lowest, highest);
    }

    fn add_distances(&mut self, values: &[f64]) {
        // Near the first value, squares keep the digits that a large mean would cost them.
        self.scratch.clear();
        self.scratch.extend(values.iter().map(|value| value - self.first));
        self.distances.add_all(&self.scratch);
        self.scratch.iter_mut().for_each(|distance| *distance *= *distance);
        self.squares.add_all(&self.scratch);
    }

    /// Adds the area under the line between two points, as far as it is between `start` and `end`.
    pub(super) fn add_area(&mut self, from: (i64, f64), to: (i64, f64), start: i64, end: i64) {
        let value_at = |time: i64| {
            if time == from.0 {
                from.1
            } else if time == to.0 {
                to.1
            } else {
                between(from, to, time)
            }
        };
        let (begin, finish) = (from.0.max(start), to.0.min(end));
        if begin >= finish {
            return;
        }
        let duration = finish.wrapping_sub(begin).cast_unsigned() as f64;
        self.area.add(f64::midpoint(value_at(begin), value_at(finish)) * duration);
        self.span += duration;
    }

    fn add_step(&mut self, before: f64, value: f64) {
        self.increase.add(if value < before { value } else { value - before });
    }

    /// Returns the result of an aggregation. `duration` is that of the bucket.
    pub(super) fn result(&mut self, aggregation: Aggregation, duration: u64) -> f64 {
        match aggregation {
            Aggregation::Count => return self.count as f64,
            Aggregation::CountNan => return self.nans as f64,
            Aggregation::CountAll => return (self.count + self.nans) as f64,
            Aggregation::Twa if self.span > 0.0 => return self.area.rounded() / self.span,
            _ if self.count == 0 => return aggregation.of_nothing(),
            _ => {}
        }
        match aggregation {
            Aggregation::Avg => self.sum.mean(self.count),
            Aggregation::Sum => self.sum.rounded(),
            Aggregation::Min => self.lowest,
            Aggregation::Max => self.highest,
            Aggregation::Range => self.highest - self.lowest,
            Aggregation::First => self.first,
            // A single point has no span.
            Aggregation::Last | Aggregation::Twa => self.last.map_or(f64::NAN, |(_, value)| value),
            Aggregation::VarP => self.variance(self.count),
            Aggregation::VarS => self.variance(self.count - 1),
            Aggregation::StdP => self.variance(self.count).sqrt(),
            Aggregation::StdS => self.variance(self.count - 1).sqrt(),
            Aggregation::Quantile(share) => quantile(&mut self.values, share),
            Aggregation::Increase => self.increase.rounded(),
            Aggregation::Rate => self.increase.rounded() / duration as f64,
            Aggregation::Count | Aggregation::CountNan | Aggregation::CountAll => {
                unreachable!("returned above")
            }
        }
    }

    /// Returns the sum of the squares of the distances from the mean, divided; zero for one value.
    fn variance(&mut self, divisor: u64) -> f64 {
        if self.count <= 1 {
            return 0.0;
        }
        let (sum, squares) = (self.distances.rounded(), self.squares.rounded());
        let about_mean = squares - sum * (sum / self.count as f64);
        if !about_mean.is_finite() {
            return f64::INFINITY;
        }
        // Rounding can make the difference negative.
        about_mean.max(0.0) / divisor as f64
    }
}

/// Returns the value at a share of the sorted values, on the line between two if need be. O(n).
fn quantile(values: &mut [f64], share: f64) -> f64 {
    let rank = share * (values.len() - 1) as f64;
    let below = rank as usize;
    let (_, lower, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let upper = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*lower);
    let weight = rank - below as f64;
    if weight == 0.0 { *lower } else { *lower + (upper - *lower) * weight }
}
