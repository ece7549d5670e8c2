//! A benchmark: a name, what it measures, and work that can be repeated any number of times.

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
    /// Names of the same benchmark in other versions of the original's suite.
    other_names: Vec<String>,
    measures: String,
    /// Name of one operation.
    operation: &'static str,
    group: Option<&'static str>,
    target: Option<f64>,
    is_in_summary: bool,
    quantity: Quantity,
    start: Start,
}

/// Creates a benchmark's work.
type Start = Box<dyn Fn(&Sizes) -> anyhow::Result<Work>>;

/// What a benchmark measures per operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time.
    Time,
    /// Latency of each of many values, reported as percentiles.
    Latency,
    /// Another amount, in this unit. It is measured a few times instead of for a given time.
    Amount(&'static str),
}

/// Prepared operations with everything that they need.
///
/// It is created for every iteration and dropped after it, outside the measured time.
pub(crate) struct Work {
    /// Operations per call.
    pub(crate) operations: u64,
    /// Performs the given number of calls. Returns their total cost: nanoseconds, or the unit of
    /// the benchmark's [`Quantity`].
    pub(crate) run: Run,
    /// For work that records latencies: waits for outstanding values and returns all latencies. The
    /// return values of the calls are then ignored.
    pub(crate) end: Option<End>,
    /// Checks at the end of an iteration that all of its work was done, and returns further
    /// findings.
    pub(crate) check: Option<Check>,
}

/// See [`Work::end`].
pub(crate) type End = Box<dyn FnOnce() -> anyhow::Result<Late>>;

/// See [`Work::check`].
pub(crate) type Check = Box<dyn FnOnce() -> anyhow::Result<Vec<Found>>>;

/// A further finding of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    /// Such as `wal_file_size`.
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

/// See [`Work::run`].
type Run = Box<dyn FnMut(u64) -> anyhow::Result<f64>>;

/// Default number of operations per call of a row whose name ends with `_batch`.
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

    /// Returns the benchmark, and a variant with a thousand operations per call whose name ends
    /// with `_batch`.
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

    /// Sets the target: the highest acceptable cost, in nanoseconds or the benchmark's unit.
    pub(crate) fn at_most(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }

    /// Adds alternative names, by which the benchmark is found too.
    pub(crate) fn also<N: Into<String>>(mut self, other_names: impl IntoIterator<Item = N>) -> Self {
        self.other_names = other_names.into_iter().map(N::into).collect();
        self
    }

    /// Sets the name of an operation in Go's lines.
    pub(crate) fn of(mut self, operation: &'static str) -> Self {
        self.operation = operation;
        self
    }

    /// Adds it to a group, which is measured in turns and compared with its first benchmark.
    pub(crate) fn in_group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    /// Adds it to the summary of the most important rows.
    pub(crate) fn in_summary(mut self) -> Self {
        self.is_in_summary = true;
        self
    }

    /// Measures the latency of each value.
    pub(crate) fn of_latencies(mut self) -> Self {
        self.quantity = Quantity::Latency;
        self
    }

    /// Measures an amount in this unit instead of nanoseconds.
    pub(crate) fn in_unit(mut self, unit: &'static str) -> Self {
        self.quantity = Quantity::Amount(unit);
        self
    }

    /// `Suite.benchmark`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its names in other versions of the original's suite.
    #[must_use]
    pub fn other_names(&self) -> &[String] {
        &self.other_names
    }

    /// Returns what is measured, in one line.
    #[must_use]
    pub fn measures(&self) -> &str {
        &self.measures
    }

    /// Returns the highest acceptable cost, in nanoseconds or the benchmark's unit.
    #[must_use]
    pub fn target(&self) -> Option<f64> {
        self.target
    }

    /// Returns whether it is one of the most important rows.
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
    /// Creates work whose calls of `operations` measure their time and return it.
    pub(crate) fn calls(
        operations: u64,
        mut call: impl FnMut() -> anyhow::Result<Duration> + 'static,
    ) -> anyhow::Result<Self> {
        Self::amounts(operations, move || Ok(call()?.as_nanos() as f64))
    }

    /// Creates work whose calls return an amount for all of their `operations`.
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

    /// Creates work whose calls record the latencies of `operations` values; `end` ends it.
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

    /// Adds a check at the end of an iteration.
    pub(crate) fn checked(self, check: impl FnOnce() -> anyhow::Result<Vec<Found>> + 'static) -> Self {
        Work { check: Some(Box::new(check)), ..self }
    }

    /// Returns the same work and a counter of its operations.
    pub(crate) fn counted(self) -> (Self, Rc<Cell<u64>>) {
        let (done, operations, mut run) = (Rc::new(Cell::new(0)), self.operations, self.run);
        let counted = Rc::clone(&done);
        let run = move |calls| {
            counted.set(counted.get() + calls * operations);
            run(calls)
        };
        (Work { operations, run: Box::new(run), end: self.end, check: self.check }, done)
    }

    /// Multiplies the operations of each call.
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

/// Creates work of single operations without clock readings between them. Each gets its number,
/// opaque to the optimizer; its result counts as used.
pub(crate) fn each<R>(operation: impl FnMut(u64) -> R + 'static) -> anyhow::Result<Work> {
    several(1, operation)
}

/// Like [`each`], for calls of several operations.
pub(crate) fn several<R>(
    operations: u64,
    mut operation: impl FnMut(u64) -> R + 'static,
) -> anyhow::Result<Work> {
    let (work, _) = on(operations, (), move |(), number| operation(number))?;
    Ok(work)
}

/// Like [`several`], for operations on a state, which can be checked after the calls.
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
        // In local variables, so that the operation's state can live in registers, as in a
        // program's loop.
        let (mut state, mut operation) = (at_rest.take().context(panicked)?, idle.take().context(panicked)?);
        let clock = Instant::now();
        for number in 0..count {
            // By reference: copying a result of several words right after its stores takes longer
            // than many operations.
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

/// The state that work operates on.
pub(crate) struct Worked<S> {
    state: Rc<Cell<Option<S>>>,
    calls: Rc<Cell<u64>>,
}

impl<S> Worked<S> {
    /// Returns the final state and the number of calls.
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
