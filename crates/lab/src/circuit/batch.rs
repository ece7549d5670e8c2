//! Standard measurement of a circuit: many emissions, one await, and a count of the arrivals.

use super::rig::{Runner, Way};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::sizes::Sizes;
use crate::micro::tally::{Counter, Tally};
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::time::Instant;
use tidemark_circuit::{Circuit, Fault, Pipe, Recipe};

/// A row of 10,000 emissions by one caller. By default a thread runs the circuit on a core of its
/// own, all values differ, each arrives once, and the time ends when the await returns.
pub(super) struct Batch<F> {
    name: String,
    what: String,
    wire: F,
    runner: Runner,
    /// Difference between consecutive values.
    step: u64,
    arrivals: Arrivals,
    is_awaited: bool,
}

/// Accepted number of arrivals for a number of emissions.
type Arrivals = Box<dyn Fn(u64) -> RangeInclusive<u64>>;

/// The first value.
const FIRST: u64 = 42;

impl<W: Way, F: Fn(&Circuit, Counter) -> anyhow::Result<W> + 'static> Batch<F> {
    /// Creates a row of emissions through the topology that `wire` builds, which ends in the
    /// counter.
    pub(super) fn new(name: impl Into<String>, what: impl Into<String>, wire: F) -> Self {
        Batch {
            name: name.into(),
            what: what.into(),
            wire,
            runner: Runner::THREAD,
            step: 1,
            arrivals: Box::new(|count| count..=count),
            is_awaited: true,
        }
    }

    /// Changes how the circuit is run.
    pub(super) fn run_by(mut self, runner: Runner) -> Self {
        self.runner = runner;
        self
    }

    /// Makes all values equal.
    pub(super) fn with_one_value(mut self) -> Self {
        self.step = 0;
        self
    }

    /// Expects `times` arrivals per emission.
    pub(super) fn arriving_times(self, times: u64) -> Self {
        self.arriving(move |count| count * times..=count * times)
    }

    /// Expects the number of arrivals that `arrivals` accepts.
    pub(super) fn arriving(mut self, arrivals: impl Fn(u64) -> RangeInclusive<u64> + 'static) -> Self {
        self.arrivals = Box::new(arrivals);
        self
    }

    /// Ends the time when the last emission returns.
    pub(super) fn until_returned(mut self) -> Self {
        self.is_awaited = false;
        self
    }

    /// Returns the benchmark.
    pub(super) fn row(self) -> Benchmark {
        let until = if *(self.arrivals)(Sizes::FULL.batch).end() == 0 {
            "10,000 emissions and one await, each; there is nothing to count"
        } else if self.is_awaited {
            "10,000 emissions and one await, each; what arrives is counted"
        } else {
            "10,000 emissions, until the last has returned; awaited and counted outside of the measured time"
        };
        let measures = format!("{}: {until}; {}", self.what, self.runner.driver);
        Benchmark::new(self.name.clone(), measures, move |sizes| self.start(sizes))
    }

    fn start(&self, sizes: &Sizes) -> anyhow::Result<Work> {
        let rig = (self.runner.rig)()?;
        let mut tally = Tally::default();
        let mut way = (self.wire)(&rig, tally.counter())?;
        let (count, step, is_awaited) = (sizes.batch, self.step, self.is_awaited);
        let (mut value, arrivals) = (FIRST, (self.arrivals)(count));
        Work::calls(count, move || {
            let mut last = value;
            let clock = Instant::now();
            for _ in 0..count {
                last = value;
                way.emit(black_box(value));
                value = value.wrapping_add(step);
            }
            let returned = clock.elapsed();
            way.settle(&rig)?;
            let took = if is_awaited { clock.elapsed() } else { returned };
            way.finish(&rig, last)?;
            tally.expect_within(&arrivals)?;
            Ok(took)
        })
    }
}

/// Returns a pipe to the counter.
pub(super) fn end<E: Send + 'static>(circuit: &Circuit, counter: Counter) -> Result<Pipe<E>, Fault> {
    circuit.pipe(move |value: E| counter.count(value))
}

/// Returns a pipe with this recipe in front of the counter.
pub(super) fn ahead<R>(circuit: &Circuit, counter: Counter, recipe: &R) -> anyhow::Result<Pipe<R::In>>
where
    R: Recipe,
    R::In: Send + 'static,
    R::Out: Send + 'static,
{
    Ok(end::<R::Out>(circuit, counter)?.prepend(recipe)?)
}

#[cfg(test)]
mod tests {
    use super::{Batch, ahead, end};
    use crate::circuit::rig::Runner;
    use crate::micro::benchmark::Benchmark;
    use crate::micro::sizes::Sizes;
    use tidemark_circuit::Fiber;

    fn run(benchmark: &Benchmark) -> Result<(), String> {
        let mut work = benchmark.start(&Sizes::QUICK).unwrap();
        assert_eq!(work.operations, Sizes::QUICK.batch);
        (work.run)(2).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn arrivals_are_counted_whichever_driver_runs_the_circuit() {
        for runner in Runner::ALL {
            let once = Batch::new("A.a", "", |circuit, counter| Ok(end::<u64>(circuit, counter)?));
            assert_eq!(run(&once.run_by(runner).row()), Ok(()), "{}", runner.driver);
        }
    }

    #[test]
    fn a_value_that_does_not_arrive_is_an_error() {
        let half = |circuit: &_, counter| ahead(circuit, counter, &Fiber::new().every(2)?);
        assert_eq!(run(&Batch::new("A.a", "", half).arriving(|count| count / 2..=count / 2).row()), Ok(()));
        let error = run(&Batch::new("A.a", "", half).until_returned().row()).unwrap_err();
        assert_eq!(error, "50 values arrived where 100 should have");
    }

    #[test]
    fn values_differ_unless_they_are_one() {
        let changes = |circuit: &_, counter| ahead(circuit, counter, &Fiber::new().diff());
        assert_eq!(run(&Batch::new("A.a", "", changes).row()), Ok(()));
        let one = Batch::new("A.a", "", changes).with_one_value().arriving(|_| 0..=1);
        assert_eq!(run(&one.row()), Ok(()));
    }
}
