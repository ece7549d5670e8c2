//! Transforms at work: operators that take points in time order, and give what they become.

use super::error::ViewError;
use super::expression::{Expression, ExpressionScratch};
use super::transform::{Difference, Gap, Span, Transform};
use crate::series::between;
use crate::window::{Aggregation, aggregate};
use std::cell::Cell;
use std::ops::RangeInclusive;

/// Most points that a moving aggregation has at a time.
const SPAN_MAX: usize = 1 << 14;

/// Points in time order.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub times: Vec<i64>,
    pub values: Vec<f64>,
}

impl Run {
    fn push(&mut self, time: i64, value: f64) {
        self.times.push(time);
        self.values.push(value);
    }

    fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
    }

    fn iter(&self) -> impl Iterator<Item = (i64, f64)> {
        self.times.iter().copied().zip(self.values.iter().copied())
    }
}

/// Takes a run of points.
pub(super) type BesideRun<'r> = dyn FnMut(&[i64], &[f64]) + 'r;

/// Another series, which a transform reads beside its own.
pub(super) trait Beside {
    /// Reads the points in `range`, in time order.
    fn read_beside(&self, range: RangeInclusive<i64>, run: &mut BesideRun<'_>) -> Result<(), ViewError>;
}

/// Something that points go through.
trait Operator {
    /// Takes the points of a run, and leaves there what they become.
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError>;

    /// Takes the end of all points. Returns the point that comes behind what was given, if any.
    fn end(&mut self) -> Option<(i64, f64)> {
        None
    }
}

/// The operators of a view, which points go through in order.
pub(super) struct Chain<'v>(Vec<Box<dyn Operator + 'v>>);

impl<'v> Chain<'v> {
    /// Makes the operators of transforms, whose points are needed in these ranges. They make at most
    /// `budget` points between others.
    pub(super) fn new<O: Beside>(
        transforms: &'v [Transform<O>],
        needed: Vec<RangeInclusive<i64>>,
        budget: &'v Cell<usize>,
    ) -> Self {
        let operators = transforms.iter().zip(needed);
        Self(operators.map(|(transform, needed)| operator(transform, needed, budget)).collect())
    }

    /// Replaces the points of a run by what they become.
    pub(super) fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        self.pass_from(0, run)
    }

    fn pass_from(&mut self, first: usize, run: &mut Run) -> Result<(), ViewError> {
        self.0[first..].iter_mut().try_for_each(|operator| operator.pass(run))
    }

    /// Ends all operators. Puts what comes behind all points into an empty run.
    pub(super) fn end(&mut self, run: &mut Run) -> Result<(), ViewError> {
        let mut last = Run::default();
        for index in 0..self.0.len() {
            if let Some((time, value)) = self.0[index].end() {
                last.clear();
                last.push(time, value);
                self.pass_from(index + 1, &mut last)?;
                run.times.append(&mut last.times);
                run.values.append(&mut last.values);
            }
        }
        Ok(())
    }
}

fn operator<'v, O: Beside>(
    transform: &'v Transform<O>,
    needed: RangeInclusive<i64>,
    budget: &'v Cell<usize>,
) -> Box<dyn Operator + 'v> {
    match transform {
        Transform::Map(expression) => Box::new(Map { expression, scratch: ExpressionScratch::default() }),
        Transform::Join { expression, other, age } => Box::new(Join {
            map: Map { expression, scratch: ExpressionScratch::default() },
            other,
            age: *age,
            second: Vec::new(),
        }),
        Transform::Difference(difference) => Box::new(Differences { difference: *difference, before: None }),
        Transform::Moving { aggregation, span } => {
            let (aggregation, span) = (*aggregation, *span);
            Box::new(Moving { aggregation, span, first: *needed.start(), recent: Run::default(), start: 0 })
        }
        Transform::Smooth { alpha } => {
            Box::new(Smooth::new(*alpha, Transform::<()>::smoothed(*alpha), *needed.start()))
        }
        Transform::Resample { step, gap } => {
            let between = Between { step: *step, gap: *gap, needed, budget };
            Box::new(Resample { between, before: None, given: Run::default() })
        }
        Transform::Fill { step, gap } => {
            let between = Between { step: *step, gap: *gap, needed, budget };
            Box::new(Fill { between, before: None, given: Run::default() })
        }
        Transform::Shift(distance) => Box::new(Shift(*distance)),
    }
}

struct Map<'v> {
    expression: &'v Expression,
    scratch: ExpressionScratch,
}

impl Operator for Map<'_> {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        self.expression.apply(&mut run.values, &[], &mut self.scratch);
        Ok(())
    }
}

struct Join<'v, O> {
    map: Map<'v>,
    other: &'v O,
    age: i64,
    /// The other values of a run's points.
    second: Vec<f64>,
}

impl<O: Beside> Operator for Join<'_, O> {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        let (Some(first), Some(last)) = (run.times.first(), run.times.last()) else { return Ok(()) };
        let range = first.saturating_sub(self.age)..=*last;
        self.second.clear();
        let mut joined = Run::default();
        let mut points = run.iter().peekable();
        let mut newest: Option<(i64, f64)> = None;
        let mut join_until = |end: Option<i64>, newest: Option<(i64, f64)>| {
            while let Some((time, value)) = points.next_if(|(time, _)| end.is_none_or(|end| *time < end)) {
                if let Some((_, other)) =
                    newest.filter(|(other, _)| time.wrapping_sub(*other).cast_unsigned() <= self.age as u64)
                {
                    joined.push(time, value);
                    self.second.push(other);
                }
            }
        };
        self.other.read_beside(range, &mut |times, values| {
            for (time, value) in times.iter().zip(values) {
                join_until(Some(*time), newest);
                newest = Some((*time, *value));
            }
        })?;
        join_until(None, newest);
        drop(points);
        *run = joined;
        self.map.expression.apply(&mut run.values, &self.second, &mut self.map.scratch);
        Ok(())
    }
}

struct Differences {
    difference: Difference,
    before: Option<(i64, f64)>,
}

impl Differences {
    fn of(&self, (time, value): (i64, f64), (time_before, before): (i64, f64)) -> f64 {
        let increase = || if value < before { value } else { value - before };
        match self.difference {
            Difference::Delta => value - before,
            Difference::Increase => increase(),
            Difference::Rate { per } => {
                let elapsed = time.wrapping_sub(time_before).cast_unsigned() as f64;
                increase() / (elapsed / per)
            }
            Difference::Return => value / before - 1.0,
            Difference::LogReturn => libm::log(value / before),
        }
    }
}

impl Operator for Differences {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        let Some(first) = run.times.first().copied().zip(run.values.first().copied()) else { return Ok(()) };
        let mut before = self.before.unwrap_or(first);
        for (time, value) in run.times.iter().zip(&mut run.values) {
            let point = (*time, *value);
            *value = self.of(point, before);
            before = point;
        }
        if self.before.replace(before).is_none() {
            run.times.remove(0);
            run.values.remove(0);
        }
        Ok(())
    }
}

struct Moving {
    aggregation: Aggregation,
    span: Span,
    /// Time of the first point that is needed.
    first: i64,
    /// Points that are or were in the span, which begins at `start`.
    recent: Run,
    start: usize,
}

impl Operator for Moving {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        for (time, value) in run.times.iter().zip(&mut run.values) {
            self.recent.push(*time, *value);
            match self.span {
                Span::Points(count) => {
                    self.start = self.start.max(self.recent.times.len().saturating_sub(count));
                }
                Span::Time(duration) => {
                    let is_old = |old: i64| time.wrapping_sub(old).cast_unsigned() >= duration as u64;
                    while is_old(self.recent.times[self.start]) {
                        self.start += 1;
                    }
                }
            }
            if *time < self.first {
                continue;
            }
            let span = &self.recent.values[self.start..];
            if span.len() > SPAN_MAX {
                return Err(ViewError::SpanTooLong { at: *time, most: SPAN_MAX });
            }
            *value = aggregate(self.aggregation, span);
            if self.start > SPAN_MAX {
                self.recent.times.drain(..self.start);
                self.recent.values.drain(..self.start);
                self.start = 0;
            }
        }
        Ok(())
    }
}

struct Smooth {
    /// Time of the first point that is needed.
    first: i64,
    /// Weights, that of the newest value last.
    weights: Vec<f64>,
    /// The last values, the newest last, and some before them.
    recent: Vec<f64>,
}

impl Smooth {
    fn new(alpha: f64, count: usize, first: i64) -> Self {
        let mut weights = vec![0.0; count];
        let mut weight = 1.0;
        for slot in weights.iter_mut().rev() {
            *slot = weight;
            weight *= 1.0 - alpha;
        }
        Self { first, weights, recent: Vec::new() }
    }
}

impl Operator for Smooth {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        for (time, value) in run.times.iter().zip(&mut run.values) {
            self.recent.push(*value);
            if *time < self.first {
                continue;
            }
            let start = self.recent.len().saturating_sub(self.weights.len());
            let recent = &self.recent[start..];
            let weights = &self.weights[self.weights.len() - recent.len()..];
            let (mut sum, mut total) = (0.0, 0.0);
            for (number, weight) in recent.iter().zip(weights).filter(|(number, _)| !number.is_nan()) {
                sum += number * weight;
                total += weight;
            }
            if !value.is_nan() {
                *value = sum / total;
            }
            if start > self.weights.len() {
                self.recent.drain(..start);
            }
        }
        Ok(())
    }
}

/// Makes points between others, a step apart.
struct Between<'v> {
    step: i64,
    gap: Gap,
    /// Where the points are needed.
    needed: RangeInclusive<i64>,
    /// How many points may still be made in this read.
    budget: &'v Cell<usize>,
}

impl Between<'_> {
    /// Makes points from `first` on and before `after`, as far as they are needed.
    fn make(
        &mut self,
        first: Option<i64>,
        before: (i64, f64),
        after: (i64, f64),
        into: &mut Run,
    ) -> Result<(), ViewError> {
        let Some(first) = first else { return Ok(()) };
        let skipped = (i128::from(*self.needed.start()) - i128::from(first)).max(0);
        let step = i128::from(self.step);
        let mut next = i64::try_from(i128::from(first) + (skipped + step - 1) / step * step).ok();
        while let Some(time) = next.filter(|time| *time < after.0 && *time <= *self.needed.end()) {
            self.budget.set(self.budget.get().checked_sub(1).ok_or(ViewError::TOO_MANY_STEPS)?);
            into.push(time, self.value(before, after, time));
            next = time.checked_add(self.step);
        }
        Ok(())
    }

    fn value(&self, before: (i64, f64), after: (i64, f64), time: i64) -> f64 {
        match self.gap {
            _ if time == before.0 => before.1,
            Gap::Previous => before.1,
            Gap::Linear => between(before, after, time),
            Gap::Constant(value) => value,
        }
    }
}

/// Returns the lowest multiple of `step` that is at least `time`.
fn multiple_from(time: i64, step: i64) -> Option<i64> {
    match time.rem_euclid(step) {
        0 => Some(time),
        rest => time.checked_add(step - rest),
    }
}

struct Resample<'v> {
    between: Between<'v>,
    before: Option<(i64, f64)>,
    given: Run,
}

impl Operator for Resample<'_> {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        self.given.clear();
        for after in run.iter() {
            if let Some(before) = self.before {
                let first = multiple_from(before.0, self.between.step);
                self.between.make(first, before, after, &mut self.given)?;
            }
            self.before = Some(after);
        }
        std::mem::swap(run, &mut self.given);
        Ok(())
    }

    fn end(&mut self) -> Option<(i64, f64)> {
        self.before.filter(|(time, _)| time.rem_euclid(self.between.step) == 0)
    }
}

struct Fill<'v> {
    between: Between<'v>,
    before: Option<(i64, f64)>,
    given: Run,
}

impl Operator for Fill<'_> {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        self.given.clear();
        for after in run.iter() {
            if let Some(before) = self.before {
                let first = before.0.checked_add(self.between.step);
                self.between.make(first, before, after, &mut self.given)?;
            }
            self.given.push(after.0, after.1);
            self.before = Some(after);
        }
        std::mem::swap(run, &mut self.given);
        Ok(())
    }
}

struct Shift(i64);

impl Operator for Shift {
    fn pass(&mut self, run: &mut Run) -> Result<(), ViewError> {
        let fits = |time: &i64| time.checked_add(self.0).is_some();
        // Times rise, so what does not fit is at one end.
        let from = run.times.iter().position(fits).unwrap_or(run.times.len());
        let to = run.times.iter().rposition(fits).map_or(from, |last| last + 1);
        run.times.truncate(to);
        run.values.truncate(to);
        run.times.drain(..from);
        run.values.drain(..from);
        run.times.iter_mut().for_each(|time| *time += self.0);
        Ok(())
    }
}
