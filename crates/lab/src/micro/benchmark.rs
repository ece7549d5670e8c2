//! What a benchmark is: a name, what it measures, and work that can be done any number of times.

use super::lateness::Late;
use super::sizes::Sizes;
use anyhow::Context;
use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// One row of the laboratory.
pub struct Benchmark {
    name: String,
    /// What the same was called in other versions of the original's suite.
    other_names: Vec<String>,
    measures: String,
    /// What one of its operations is called.
    operation: &'static str,
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
    /// What makes sure, when an iteration is over, that all of it was done, and says what else was found.
    pub(crate) check: Option<Check>,
}

/// See [`Work::end`].
pub(crate) type End = Box<dyn FnOnce() -> anyhow::Result<Late>>;

/// See [`Work::check`].
pub(crate) type Check = Box<dyn FnOnce() -> anyhow::Result<Vec<Found>>>;

/// What else was found of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    /// Such as `wal_file_size`.
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

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
        assert!(name.split('.').count() == 2, "{name}: a suite and a benchmark");
        Benchmark {
            name,
            other_names: Vec::new(),
            measures,
            operation: "op",
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

    /// Its operations are called this, in Go's lines.
    pub(crate) fn of(mut self, operation: &'static str) -> Self {
        self.operation = operation;
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

    pub(crate) fn operation(&self) -> &'static str {
        self.operation
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
        assert!(operations > 0, "a figure is divided by the operations of a call");
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
        Work { operations, run: Box::new(run), end: None, check: None }
    }

    /// The same work, which is looked at when an iteration is over.
    pub(crate) fn checked(self, check: impl FnOnce() -> anyhow::Result<Vec<Found>> + 'static) -> Self {
        Work { check: Some(Box::new(check)), ..self }
    }

    /// The same work, and how many operations it has done.
    pub(crate) fn counted(self) -> (Self, Rc<Cell<u64>>) {
        let (done, operations, mut run) = (Rc::new(Cell::new(0)), self.operations, self.run);
        let counted = Rc::clone(&done);
        let run = move |calls| {
            counted.set(counted.get() + calls * operations);
            run(calls)
        };
        (Work { operations, run: Box::new(run), end: self.end, check: self.check }, done)
    }

    /// The same work with as many operations more in each call.
    fn times(self, factor: u64) -> Self {
        let mut run = self.run;
        Work {
            operations: self.operations * factor,
            run: Box::new(move |count| run(count * factor)),
            end: self.end,
            check: self.check,
        }
    }
}

/// Work of single operations, between which nobody looks at the clock. Each is given its number, of which the compiler knows
/// nothing, and what it returns counts as used.
pub(crate) fn each<R>(operation: impl FnMut(u64) -> R + 'static) -> anyhow::Result<Work> {
    several(1, operation)
}

/// As [`each`], for calls that do so many operations.
pub(crate) fn several<R>(
    operations: u64,
    mut operation: impl FnMut(u64) -> R + 'static,
) -> anyhow::Result<Work> {
    let (work, _) = on(operations, (), move |(), number| operation(number))?;
    Ok(work)
}

/// As [`several`], for calls that do something to a state, which can be looked at when they are over.
pub(crate) fn on<S: 'static, R>(
    operations: u64,
    state: S,
    operation: impl FnMut(&mut S, u64) -> R + 'static,
) -> anyhow::Result<(Work, Worked<S>)> {
    let worked = Worked { state: Rc::new(Cell::new(Some(state))), calls: Rc::default() };
    let (at_rest, calls) = (Rc::clone(&worked.state), Rc::clone(&worked.calls));
    let mut idle = Some(operation);
    let run = move |count| {
        let panicked = "the operation has panicked before";
        // In variables of their own, so that what the operation keeps may be in registers, as in any loop of a program.
        let (mut state, mut operation) = (at_rest.take().context(panicked)?, idle.take().context(panicked)?);
        let clock = Instant::now();
        for number in 0..count {
            // By reference: to copy a result of several words just behind their stores takes longer than many an operation.
            black_box(&operation(&mut state, black_box(number)));
        }
        let took = clock.elapsed();
        at_rest.set(Some(state));
        idle = Some(operation);
        calls.set(calls.get() + count);
        Ok(took.as_nanos() as f64)
    };
    Ok((Work::new(operations, run), worked))
}

/// What work is done on.
pub(crate) struct Worked<S> {
    state: Rc<Cell<Option<S>>>,
    calls: Rc<Cell<u64>>,
}

impl<S> Worked<S> {
    /// What it has become, and by how many calls.
    pub(crate) fn finish(self) -> anyhow::Result<(S, u64)> {
        let state = self.state.take().context("the operation has panicked")?;
        Ok((state, self.calls.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Benchmark, Found, Work, each, on};
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

    #[test]
    fn what_was_worked_on_is_there_when_it_is_over_with_the_number_of_calls() {
        let (work, worked) = on(2, 0_u64, |sum, number| *sum += number).unwrap();
        let mut work = work.checked(move || {
            let (sum, calls) = worked.finish()?;
            Ok(vec![Found { label: "sum", unit: "calls", value: (sum * 10 + calls) as f64 }])
        });
        (work.run)(3).unwrap();
        (work.run)(4).unwrap();
        let found = (work.check.unwrap())().unwrap();
        assert_eq!(found, [Found { label: "sum", unit: "calls", value: 97.0 }]);
    }
}
