//! What a benchmark is: a name, what it measures, and work that can be done any number of times.

use super::lateness::Late;
use super::sizes::Sizes;
use anyhow::Context;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// One row of the laboratory.
pub struct Benchmark {
    name: String,
    /// What the same was called in other versions of the original's suite.
    other_names: Vec<String>,
    measures: String,
    group: Option<&'static str>,
    target: Option<f64>,
    is_in_summary: bool,
    quantity: Quantity,
    start: Start,
}

/// Makes a benchmark's work.
type Start = Box<dyn Fn(&Sizes) -> anyhow::Result<Work>>;

/// What a benchmark counts for each of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time.
    Time,
    /// How late each of many values is, of which there are percentiles.
    Latency,
    /// Something else, in this unit. It is measured a few times and not for a given time.
    Amount(&'static str),
}

/// Operations at the ready, everything that they need being there.
///
/// It is made anew for every iteration and dropped after it, outside of the measured time.
pub(crate) struct Work {
    /// How many operations one call does.
    pub(crate) operations: u64,
    /// Does so many calls. Returns what they took in all: nanoseconds, or the unit of the benchmark's [`Quantity`].
    pub(crate) run: Run,
    /// Of work that takes down latencies: what ends the calls and says how late the values of all of them were. What the calls
    /// themselves return is then nothing.
    pub(crate) end: Option<End>,
}

/// See [`Work::end`].
pub(crate) type End = Box<dyn FnOnce() -> anyhow::Result<Late>>;

/// See [`Work::run`].
type Run = Box<dyn FnMut(u64) -> anyhow::Result<f64>>;

/// How many operations a row whose name ends with `_batch` does in one call, if its description says nothing else.
const BATCH: u64 = 1_000;

impl Benchmark {
    pub(crate) fn new(
        name: impl Into<String>,
        measures: impl Into<String>,
        start: impl Fn(&Sizes) -> anyhow::Result<Work> + 'static,
    ) -> Self {
        let (name, measures) = (name.into(), measures.into());
        debug_assert!(name.split('.').count() == 2, "{name}: a suite and a benchmark");
        Benchmark {
            name,
            other_names: Vec::new(),
            measures,
            group: None,
            target: None,
            is_in_summary: false,
            quantity: Quantity::Time,
            start: Box::new(start),
        }
    }

    /// The benchmark, and the same a thousand times in one call under the name with `_batch`.
    pub(crate) fn with_batch<F>(name: &str, measures: &str, start: F) -> [Self; 2]
    where
        F: Fn(&Sizes) -> anyhow::Result<Work> + Clone + 'static,
    {
        let one = Benchmark::new(name, measures, start.clone());
        let batch = Benchmark::new(
            format!("{name}_batch"),
            format!("{measures}; {BATCH} in one call, for each of them"),
            move |sizes| start(sizes).map(|work| work.times(BATCH)),
        );
        [one, batch]
    }

    /// What it should cost at most, in nanoseconds or the benchmark's unit.
    pub(crate) fn at_most(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }

    /// The same under other names, by which it is found too.
    pub(crate) fn also<N: Into<String>>(mut self, other_names: impl IntoIterator<Item = N>) -> Self {
        self.other_names = other_names.into_iter().map(N::into).collect();
        self
    }

    /// Measured in turns with all others of this group, and compared with the first of them.
    pub(crate) fn in_group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    /// One of the rows that say most.
    pub(crate) fn in_summary(mut self) -> Self {
        self.is_in_summary = true;
        self
    }

    /// Takes down how late each value is.
    pub(crate) fn of_latencies(mut self) -> Self {
        self.quantity = Quantity::Latency;
        self
    }

    /// Counts this instead of nanoseconds.
    pub(crate) fn in_unit(mut self, unit: &'static str) -> Self {
        self.quantity = Quantity::Amount(unit);
        self
    }

    /// `Suite.benchmark`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What other versions of the original's suite call it.
    #[must_use]
    pub fn other_names(&self) -> &[String] {
        &self.other_names
    }

    /// What is measured, in a line.
    #[must_use]
    pub fn measures(&self) -> &str {
        &self.measures
    }

    /// What it should cost at most, in nanoseconds or the benchmark's unit.
    #[must_use]
    pub fn target(&self) -> Option<f64> {
        self.target
    }

    /// Whether it is one of the rows that say most.
    #[must_use]
    pub fn is_in_summary(&self) -> bool {
        self.is_in_summary
    }

    pub(crate) fn group(&self) -> Option<&'static str> {
        self.group
    }

    pub(crate) fn quantity(&self) -> Quantity {
        self.quantity
    }

    pub(crate) fn start(&self, sizes: &Sizes) -> anyhow::Result<Work> {
        (self.start)(sizes)
    }
}

impl Work {
    /// Calls of so many operations that look at the clock themselves and return what they took.
    pub(crate) fn calls(
        operations: u64,
        mut call: impl FnMut() -> anyhow::Result<Duration> + 'static,
    ) -> anyhow::Result<Self> {
        Self::amounts(operations, move || Ok(call()?.as_nanos() as f64))
    }

    /// Calls of so many operations that return an amount of something for all of them.
    pub(crate) fn amounts(
        operations: u64,
        mut call: impl FnMut() -> anyhow::Result<f64> + 'static,
    ) -> anyhow::Result<Self> {
        debug_assert!(operations > 0);
        let run = move |count| {
            let mut sum = 0.0;
            for _ in 0..count {
                sum += call()?;
            }
            Ok(sum)
        };
        Ok(Work::new(operations, run))
    }

    /// Calls that take down how late so many values each are, and what ends them.
    pub(crate) fn of_latencies(
        operations: u64,
        mut call: impl FnMut() -> anyhow::Result<()> + 'static,
        end: impl FnOnce() -> anyhow::Result<Late> + 'static,
    ) -> Self {
        let run = move |count| (0..count).try_for_each(|_| call()).map(|()| 0.0);
        Work { end: Some(Box::new(end)), ..Work::new(operations, run) }
    }

    fn new(operations: u64, run: impl FnMut(u64) -> anyhow::Result<f64> + 'static) -> Self {
        Work { operations, run: Box::new(run), end: None }
    }

    /// The same work with as many operations more in each call.
    fn times(self, factor: u64) -> Self {
        let mut run = self.run;
        Work::new(self.operations * factor, move |count| run(count * factor))
    }
}

/// Work of single operations, between which nobody looks at the clock. Each is given its number, of which the compiler knows
/// nothing, and what it returns counts as used.
pub(crate) fn each<R>(operation: impl FnMut(u64) -> R + 'static) -> anyhow::Result<Work> {
    several(1, operation)
}

/// As [`each`], for calls that do so many operations.
pub(crate) fn several<R>(operations: u64, operation: impl FnMut(u64) -> R + 'static) -> anyhow::Result<Work> {
    let mut at_rest = Some(operation);
    let run = move |count| {
        // In a variable of its own, so that what the operation keeps may be in registers, as in any loop of a program.
        let mut operation = at_rest.take().context("the operation has panicked before")?;
        let clock = Instant::now();
        for number in 0..count {
            black_box(operation(black_box(number)));
        }
        let took = clock.elapsed();
        at_rest = Some(operation);
        Ok(took.as_nanos() as f64)
    };
    Ok(Work::new(operations, run))
}

#[cfg(test)]
mod tests {
    use super::{Benchmark, Work, each};
    use crate::micro::sizes::Sizes;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;

    #[test]
    fn a_batch_does_a_thousand_in_a_call() {
        let done = Rc::new(Cell::new(0_u64));
        let counted = Rc::clone(&done);
        let start = move |_: &Sizes| {
            let counted = Rc::clone(&counted);
            each(move |_| counted.set(counted.get() + 1))
        };
        let [one, batch] = Benchmark::with_batch("Some.thing", "a thing", start);
        assert_eq!((one.name(), batch.name()), ("Some.thing", "Some.thing_batch"));
        for (benchmark, operations) in [(one, 1), (batch, 1_000)] {
            done.set(0);
            let mut work = benchmark.start(&Sizes::QUICK).unwrap();
            (work.run)(3).unwrap();
            assert_eq!((done.get(), work.operations), (3 * operations, operations));
        }
    }

    #[test]
    fn calls_add_up_and_their_errors_end_the_work() {
        let mut left = 3;
        let mut work = Work::calls(10, move || {
            left -= 1;
            anyhow::ensure!(left > 0, "no more");
            Ok(Duration::from_nanos(5))
        })
        .unwrap();
        assert!(((work.run)(2).unwrap() - 10.0).abs() < f64::EPSILON);
        assert_eq!((work.run)(1).unwrap_err().to_string(), "no more");
    }
}
