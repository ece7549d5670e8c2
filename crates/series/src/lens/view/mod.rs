//! A series seen through transforms. Nothing is computed before it is read, and nothing is kept.
//!
//! A read begins as far before its range as the transforms look back, and ends as far behind it as they
//! look ahead, so a point has the same bits in whatever range it is read.

use super::error::{MADE_MAX, ViewError};
use super::operators::{Beside, BesideRun, Chain, Run};
use super::transform::{Span, Transform};
use crate::series::{Direction, Reading, Series, Snapshot};
use std::cell::Cell;
use std::ops::{ControlFlow, RangeInclusive};

/// Points that a view looks at.
pub trait Points {
    /// Reads the points in `range`, like [`Series::read`].
    fn read(&self, range: RangeInclusive<i64>, direction: Direction, reading: &mut impl Reading<f64>);
}

impl Points for &Series<f64> {
    fn read(&self, range: RangeInclusive<i64>, direction: Direction, reading: &mut impl Reading<f64>) {
        Series::read(self, range, direction, reading);
    }
}

impl Points for Snapshot<f64> {
    fn read(&self, range: RangeInclusive<i64>, direction: Direction, reading: &mut impl Reading<f64>) {
        self.read_within(range, direction, reading);
    }
}

/// Points of which only so many are read.
struct Metered<'p, P> {
    points: &'p P,
    left: &'p Cell<usize>,
}

impl<P: Points> Points for Metered<'_, P> {
    fn read(&self, range: RangeInclusive<i64>, direction: Direction, reading: &mut impl Reading<f64>) {
        if self.left.get() == 0 {
            return;
        }
        self.points.read(range, direction, &mut |times: &[i64], values: &[f64]| {
            self.left.set(self.left.get().saturating_sub(times.len()));
            reading.run(times, values)?;
            if self.left.get() == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
}

/// Most points that are made between others in one part of a read backward.
const MADE_IN_PART_MAX: usize = 1 << 12;

/// A series seen through transforms, the first of which sees the series itself.
///
/// ```
/// use std::ops::ControlFlow;
/// use tidemark_series::{Difference, Direction, Options, Series, Transform, View};
///
/// let mut requests = Series::new(Options::default());
/// requests.extend(&[0, 1_000, 3_000], &[0.0, 50.0, 250.0]).unwrap();
/// let by_second = Transform::Difference(Difference::Rate { per: 1_000.0 });
/// let by_minute = Transform::Map("x * 60".parse().unwrap());
/// let view = View::new(&requests, vec![by_second, by_minute]);
///
/// let mut points = Vec::new();
/// view.read(2_000..=4_000, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
///     points.extend(times.iter().copied().zip(values.iter().copied()));
///     ControlFlow::Continue(())
/// })
/// .unwrap();
/// assert_eq!(points, [(3_000, 6_000.0)]);
/// ```
#[derive(Debug, Clone)]
pub struct View<P> {
    points: P,
    transforms: Vec<Transform<View<P>>>,
}

/// How far apart the points are that a transform sees.
enum Spacing {
    /// Points of the series may be missing, so they cannot be counted there.
    Unknown,
    /// So far.
    Even(i64),
    /// At least one is there for each point of the series.
    OfPoints,
}

/// Times between which points are read, while it is found out.
#[derive(Debug, Clone, Copy)]
struct Reach {
    from: i64,
    to: i64,
}

impl<P: Points> View<P> {
    /// Makes a view of points.
    pub fn new(points: P, transforms: Vec<Transform<View<P>>>) -> Self {
        Self { points, transforms }
    }

    /// Returns the view seen through further transforms.
    #[must_use]
    pub fn through(mut self, transforms: impl IntoIterator<Item = Transform<Self>>) -> Self {
        self.transforms.extend(transforms);
        self
    }

    /// Whether the view is of the points as they are.
    pub fn is_plain(&self) -> bool {
        self.transforms.is_empty()
    }

    /// Returns the points that it looks at.
    pub fn points(&self) -> &P {
        &self.points
    }

    /// Reads the points in `range`, in runs. O(points in the range and as far around it as the
    /// transforms look).
    ///
    /// # Errors
    /// A transform is beyond its limits, which depend on the points. Runs may have been read then.
    pub fn read(
        &self,
        range: RangeInclusive<i64>,
        direction: Direction,
        reading: &mut impl Reading<f64>,
    ) -> Result<(), ViewError> {
        if range.is_empty() {
            return Ok(());
        }
        if self.is_plain() {
            self.points.read(range, direction, reading);
            return Ok(());
        }
        match direction {
            Direction::Forward => self.read_forward(range, &Cell::new(MADE_MAX), reading),
            Direction::Backward => self.read_backward(range, reading),
        }
    }

    /// Returns the value at exactly `time`.
    ///
    /// # Errors
    /// See [`View::read`].
    pub fn get(&self, time: i64) -> Result<Option<f64>, ViewError> {
        let found = self.first_read(time..=time, Direction::Forward, |times| times.len() - 1)?;
        Ok(found.map(|(_, value)| value))
    }

    /// Returns the newest point at or before `time`.
    ///
    /// # Errors
    /// See [`View::read`].
    pub fn at_or_before(&self, time: i64) -> Result<Option<(i64, f64)>, ViewError> {
        self.first_read(i64::MIN..=time, Direction::Backward, |times| times.len() - 1)
    }

    /// Returns the oldest point at or after `time`.
    ///
    /// # Errors
    /// See [`View::read`].
    pub fn at_or_after(&self, time: i64) -> Result<Option<(i64, f64)>, ViewError> {
        self.first_read(time..=i64::MAX, Direction::Forward, |_| 0)
    }

    fn first_read(
        &self,
        range: RangeInclusive<i64>,
        direction: Direction,
        choose: impl Fn(&[i64]) -> usize,
    ) -> Result<Option<(i64, f64)>, ViewError> {
        let mut found = None;
        self.read(range, direction, &mut |times: &[i64], values: &[f64]| {
            let index = choose(times);
            found = Some((times[index], values[index]));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Whether there are at least `count` points in `range`, or more than `limit` points have to be read
    /// or made to tell. O(limit).
    ///
    /// # Errors
    /// See [`View::read`].
    pub fn may_have(
        &self,
        range: RangeInclusive<i64>,
        count: usize,
        limit: usize,
    ) -> Result<bool, ViewError> {
        if range.is_empty() {
            return Ok(count == 0);
        }
        let (left, made) = (Cell::new(limit), Cell::new(limit));
        let metered = self.over(range.clone(), &|points, _| Metered { points, left: &left });
        let mut found = 0;
        let result = metered.read_forward(range, &made, &mut |times: &[i64], _: &[f64]| {
            found += times.len();
            if found < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        match result {
            Err(ViewError::TooManySteps { .. }) => Ok(true),
            result => result.map(|()| found >= count || left.get() == 0),
        }
    }

    /// Returns the same view of other points, each made of those that are needed for the points in
    /// `range`.
    fn over<'p, Q>(
        &'p self,
        range: RangeInclusive<i64>,
        make: &impl Fn(&'p P, RangeInclusive<i64>) -> Q,
    ) -> View<Q> {
        let (reached, needed) = self.reach(range);
        let of_transform = |(transform, needed): (&'p Transform<Self>, RangeInclusive<i64>)| match transform {
            Transform::Join { expression, other, age } => {
                let other = other.over(needed.start().saturating_sub(*age)..=*needed.end(), make);
                Transform::Join { expression: expression.clone(), other, age: *age }
            }
            alone => alone.alone().expect("all others read no series of their own"),
        };
        let transforms = self.transforms.iter().zip(needed).map(of_transform).collect();
        View { points: make(&self.points, reached), transforms }
    }

    /// `budget` is the number of points that may be made between others, and then of those that were
    /// not.
    fn read_forward(
        &self,
        range: RangeInclusive<i64>,
        budget: &Cell<usize>,
        reading: &mut impl Reading<f64>,
    ) -> Result<(), ViewError> {
        let (from, to) = (*range.start(), *range.end());
        let (reached, needed) = self.reach(range);
        let mut chain = Chain::new(&self.transforms, needed, budget);
        let mut run = Run::default();
        let mut give = |run: &mut Run| {
            let is_last = run.times.last().is_some_and(|last| *last > to);
            let inside =
                run.times.partition_point(|time| *time < from)..run.times.partition_point(|time| *time <= to);
            if !inside.is_empty() {
                reading.run(&run.times[inside.clone()], &run.values[inside])?;
            }
            if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut result = Ok(());
        let mut is_over = false;
        self.points.read(reached, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
            run.times.clear();
            run.times.extend_from_slice(times);
            run.values.clear();
            run.values.extend_from_slice(values);
            result = chain.pass(&mut run);
            is_over = result.is_err() || give(&mut run).is_break();
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        result?;
        if !is_over {
            run.times.clear();
            run.values.clear();
            chain.end(&mut run)?;
            let _ = give(&mut run);
        }
        Ok(())
    }

    /// Reads parts of the range, the newest first. Each part is about what one run of points becomes.
    fn read_backward(
        &self,
        range: RangeInclusive<i64>,
        reading: &mut impl Reading<f64>,
    ) -> Result<(), ViewError> {
        let (from, mut to) = (*range.start(), *range.end());
        let mut budget = MADE_MAX;
        let distance = self.distance(self.transforms.len());
        let mut result = Ok(ControlFlow::Continue(()));
        let mut is_done = false;
        let (reached, _) = self.reach(range);
        self.points.read(reached, Direction::Backward, &mut |times: &[i64], _: &[f64]| {
            let start = times[0].saturating_add(distance).max(from);
            if start > to {
                return ControlFlow::Continue(());
            }
            result = self.read_part(start..=to, &mut budget, reading);
            is_done = start == from || !matches!(result, Ok(ControlFlow::Continue(())));
            to = start.saturating_sub(1);
            if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let _ = result?;
        if !is_done {
            let _ = self.read_part(from..=to, &mut budget, reading)?;
        }
        Ok(())
    }

    /// Reads a part of a range forward, and gives its runs backward: in halves, the later first, as long
    /// as many points are made in it, because often only the newest are wanted.
    fn read_part(
        &self,
        range: RangeInclusive<i64>,
        budget: &mut usize,
        reading: &mut impl Reading<f64>,
    ) -> Result<ControlFlow<()>, ViewError> {
        let mut parts = vec![range];
        while let Some(part) = parts.pop() {
            let (mut runs, left) = (Vec::new(), Cell::new(MADE_IN_PART_MAX));
            let result = self.read_forward(part.clone(), &left, &mut |times: &[i64], values: &[f64]| {
                runs.push((times.to_vec(), values.to_vec()));
                ControlFlow::Continue(())
            });
            let (start, end) = part.into_inner();
            match result {
                Err(ViewError::TooManySteps { .. }) if start < end => {
                    let middle = start.midpoint(end);
                    parts.push(start..=middle);
                    parts.push(middle + 1..=end);
                    continue;
                }
                result => result?,
            }
            let made = MADE_IN_PART_MAX - left.get();
            *budget = budget.checked_sub(made).ok_or(ViewError::TOO_MANY_STEPS)?;
            for (times, values) in runs.iter().rev() {
                if reading.run(times, values).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns by how much the first `count` transforms shift points.
    fn distance(&self, count: usize) -> i64 {
        self.transforms[..count].iter().fold(0, |distance, transform| match transform {
            Transform::Shift(shift) => distance.saturating_add(*shift),
            _ => distance,
        })
    }

    /// Returns the range of points that the transforms need for those of the view in `range`, and the
    /// range in which the points of each transform are needed.
    fn reach(&self, range: RangeInclusive<i64>) -> (RangeInclusive<i64>, Vec<RangeInclusive<i64>>) {
        let mut reach = Reach { from: *range.start(), to: *range.end() };
        let mut needed = vec![range; self.transforms.len()];
        for (index, transform) in self.transforms.iter().enumerate().rev() {
            needed[index] = reach.from..=reach.to;
            match transform {
                Transform::Map(_) | Transform::Join { .. } => {}
                Transform::Difference(_) => self.look_back(index, 1, &mut reach),
                Transform::Moving { span: Span::Points(count), .. } => {
                    self.look_back(index, count - 1, &mut reach);
                }
                Transform::Moving { span: Span::Time(duration), .. } => {
                    reach.from = reach.from.saturating_sub(*duration);
                }
                Transform::Smooth { alpha } => {
                    self.look_back(index, Transform::<P>::smoothed(*alpha) - 1, &mut reach);
                }
                Transform::Resample { .. } | Transform::Fill { .. } => {
                    self.look_around(index, &mut reach);
                }
                Transform::Shift(distance) => {
                    // Saturated times have no points: those would be beyond the range of times.
                    reach.from = reach.from.saturating_sub(*distance);
                    reach.to = reach.to.saturating_sub(*distance);
                }
            }
        }
        (reach.from..=reach.to, needed)
    }

    /// Returns how far apart the points are that a transform sees.
    fn spacing(&self, index: usize) -> Spacing {
        let before = &self.transforms[..index];
        if before.iter().any(|transform| matches!(transform, Transform::Join { .. })) {
            return Spacing::Unknown;
        }
        let step = before.iter().rev().find_map(|transform| match transform {
            Transform::Resample { step, .. } => Some(Spacing::Even(*step)),
            _ => None,
        });
        step.unwrap_or(Spacing::OfPoints)
    }

    /// Moves the start back by so many points that a transform sees.
    fn look_back(&self, index: usize, count: usize, reach: &mut Reach) {
        reach.from = match self.spacing(index) {
            Spacing::Unknown => i64::MIN,
            Spacing::Even(step) => {
                let distance = i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(step);
                reach.from.saturating_sub(distance)
            }
            Spacing::OfPoints => {
                let distance = self.distance(index);
                self.before(reach.from.saturating_sub(distance), count).saturating_add(distance)
            }
        };
    }

    /// Moves both ends to the next points that a transform sees.
    fn look_around(&self, index: usize, reach: &mut Reach) {
        match self.spacing(index) {
            Spacing::Unknown => *reach = Reach { from: i64::MIN, to: i64::MAX },
            Spacing::Even(step) => {
                reach.from = reach.from.saturating_sub(step);
                reach.to = reach.to.saturating_add(step);
            }
            Spacing::OfPoints => {
                let distance = self.distance(index);
                let (from, to) = (reach.from.saturating_sub(distance), reach.to.saturating_sub(distance));
                let from = from.checked_add(1).map_or(from, |after| self.before(after, 1));
                let to = to.checked_add(1).map_or(to, |after| self.after(after));
                *reach = Reach { from: from.saturating_add(distance), to: to.saturating_add(distance) };
            }
        }
    }

    /// Returns the time of the `count`-th point before `time`; that of the first if there are fewer.
    fn before(&self, time: i64, count: usize) -> i64 {
        let Some(last) = time.checked_sub(1).filter(|_| count > 0) else { return time };
        let (mut found, mut left) = (time, count);
        self.points.read(i64::MIN..=last, Direction::Backward, &mut |times: &[i64], _: &[f64]| {
            found = times[times.len().saturating_sub(left)];
            left = left.saturating_sub(times.len());
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Returns the time of the first point at or after `time`; `time` if there is none.
    fn after(&self, time: i64) -> i64 {
        let mut found = time;
        self.points.read(time..=i64::MAX, Direction::Forward, &mut |times: &[i64], _: &[f64]| {
            found = times[0];
            ControlFlow::Break(())
        });
        found
    }
}

impl<P: Points> Beside for View<P> {
    fn read_beside(&self, range: RangeInclusive<i64>, run: &mut BesideRun<'_>) -> Result<(), ViewError> {
        self.read(range, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
            run(times, values);
            ControlFlow::Continue(())
        })
    }
}

impl View<&Series<f64>> {
    /// Returns the part that can be read between two times, to be read without the series. Takes
    /// references, like [`Series::snapshot`].
    pub fn snapshot(&self, range: RangeInclusive<i64>) -> View<Snapshot<f64>> {
        self.over(range, &|points, reached| points.snapshot(reached))
    }
}

#[cfg(test)]
mod tests;
