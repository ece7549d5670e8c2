//! Repetition of a benchmark's work, and timing.
//!
//! ```text
//! fork ─► warm-up iterations ─► measured iterations ─► one pass with allocations counted, on request
//!         each: fresh work ─► calls, as many between two clock readings as take a while ─► a sample
//! ```

use super::benchmark::{Benchmark, End, Found, Quantity, Work};
use super::options::{Mode, Plan};
use crate::allocations;
use crate::interrupt::Interrupt;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Results of one benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    /// For each fork, the cost of one operation in each iteration: nanoseconds or the benchmark's
    /// unit.
    pub(crate) samples: Vec<Vec<f64>>,
    /// Number of operations behind each sample.
    pub(crate) operations: Vec<Vec<u64>>,
    /// Further findings.
    pub(crate) others: Vec<Finding>,
    /// Why it has failed, in one line. A failed process contributes no figures; processes that
    /// completed before a later one died do.
    pub(crate) failure: Option<String>,
}

/// A further metric of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// Such as `p99`.
    pub(crate) label: String,
    pub(crate) unit: String,
    /// For each fork, one sample per iteration or one for all.
    pub(crate) samples: Vec<Vec<f64>>,
}

/// Percentiles of latency that are taken of each iteration.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// Label of the arrival rate of an open loop.
const RATE: &str = "rate";

/// Shortest time between two clock readings, so that their cost is negligible.
const READING_MIN: Duration = Duration::from_micros(200);

/// Maximum number of iterations for an amount other than time.
const AMOUNTS_MAX: u32 = 3;

/// Measures benchmarks in turns: each iteration does the work of all of them and starts with a
/// different one. An interrupt ends the iterations; a failed benchmark is not continued. Returns an
/// outcome for each, in their order.
pub(crate) fn measure(benchmarks: &[&Benchmark], plan: &Plan, interrupt: &Interrupt) -> Vec<Outcome> {
    let mut running: Vec<Running<'_>> = benchmarks.iter().map(|one| Running::new(one, plan)).collect();
    for number in 0..plan.warmup_iterations {
        for one in in_turn(&mut running, number).filter(|_| !interrupt.is_asked_for()) {
            one.attempt(Running::warm_up);
        }
    }
    for number in 0..plan.iterations {
        for one in in_turn(&mut running, number).filter(|_| !interrupt.is_asked_for()) {
            one.attempt(|one| one.measure(number));
        }
    }
    if plan.allocations {
        for one in running.iter_mut().filter(|_| !interrupt.is_asked_for()) {
            one.attempt(Running::count_allocations);
        }
    }
    running.into_iter().map(Running::finish).collect()
}

/// Rotates the order by round, because the first position may affect its benchmark or the next one.
fn in_turn<'a, 'b>(
    running: &'b mut [Running<'a>],
    round: u32,
) -> impl Iterator<Item = &'b mut Running<'a>> + use<'a, 'b> {
    let (before, first) = running.split_at_mut(round as usize % running.len().max(1));
    first.iter_mut().chain(before)
}

/// A benchmark that is being measured.
struct Running<'a> {
    benchmark: &'a Benchmark,
    plan: &'a Plan,
    /// Number of calls between two clock readings.
    calls: u64,
    samples: Vec<f64>,
    operations: Vec<u64>,
    /// Results of the checks, by iteration.
    found: Vec<Finding>,
    /// Results of the iterations for each of [`PERCENTILES`].
    percentiles: [Vec<f64>; PERCENTILES.len()],
    /// Arrival rates of the iterations of an open loop.
    rates: Vec<f64>,
    allocated: Vec<Finding>,
    failure: Option<String>,
}

impl<'a> Running<'a> {
    fn new(benchmark: &'a Benchmark, plan: &'a Plan) -> Self {
        Running {
            benchmark,
            plan,
            calls: 1,
            samples: Vec::new(),
            operations: Vec::new(),
            found: Vec::new(),
            percentiles: Default::default(),
            rates: Vec::new(),
            allocated: Vec::new(),
            failure: None,
        }
    }

    /// Runs a part of it unless it has failed before. A panic counts as a failure.
    fn attempt(&mut self, part: impl FnOnce(&mut Self) -> anyhow::Result<()>) {
        if self.failure.is_some() {
            return;
        }
        // State that a panic may have left half done is not used again.
        let why = match catch_unwind(AssertUnwindSafe(|| part(self))) {
            Ok(done) => done.err().map(|error| format!("{error:#}")),
            Err(panic) => Some(format!("it panicked: {}", said_by(&*panic))),
        };
        self.failure = why.map(|why| in_a_line(&why));
    }

    fn warm_up(&mut self) -> anyhow::Result<()> {
        if self.is_amount() {
            return Ok(());
        }
        self.iterate(self.plan.warmup_time)?;
        self.percentiles.iter_mut().for_each(Vec::clear);
        self.rates.clear();
        self.found.clear();
        Ok(())
    }

    fn measure(&mut self, number: u32) -> anyhow::Result<()> {
        if self.is_amount() && number >= AMOUNTS_MAX {
            return Ok(());
        }
        let Sample { score, operations } = self.iterate(self.plan.time)?;
        self.samples.push(score);
        self.operations.push(operations);
        Ok(())
    }

    fn is_amount(&self) -> bool {
        matches!(self.benchmark.quantity(), Quantity::Amount(_))
    }

    /// Does the work for about this long, and checks it.
    fn iterate(&mut self, time: Duration) -> anyhow::Result<Sample> {
        let mut work = self.benchmark.start(&self.plan.sizes)?;
        let sample = self.do_for(time, &mut work)?;
        if let Some(check) = work.check.take() {
            check()?.into_iter().for_each(|found| self.add(found));
        }
        Ok(sample)
    }

    fn do_for(&mut self, time: Duration, work: &mut Work) -> anyhow::Result<Sample> {
        let time = if self.plan.mode == Mode::SingleShot || self.is_amount() { Duration::ZERO } else { time };
        if let Some(end) = work.end.take() {
            return self.take_latencies(work, end, time);
        }
        if time.is_zero() {
            return Ok(Sample::of((work.run)(1)?, work.operations));
        }
        let began = Instant::now();
        let (mut amount, mut calls) = (0.0, 0_u64);
        loop {
            let reading = Instant::now();
            amount += (work.run)(self.calls)?;
            calls += self.calls;
            if reading.elapsed() < READING_MIN {
                // The clock readings took too large a share: the sample does not count.
                self.calls = self.calls.saturating_mul(2);
                (amount, calls) = (0.0, 0);
            } else if began.elapsed() >= time {
                return Ok(Sample::of(amount, calls * work.operations));
            }
        }
    }

    fn add(&mut self, Found { label, unit, value }: Found) {
        match self.found.iter_mut().find(|finding| finding.label == label) {
            Some(Finding { samples, .. }) => samples.iter_mut().for_each(|fork| fork.push(value)),
            None => self.found.push(Finding::new(label, unit, vec![value])),
        }
    }

    /// Does work that records latencies for about this long, and ends it. The score is the mean.
    fn take_latencies(&mut self, work: &mut Work, end: End, time: Duration) -> anyhow::Result<Sample> {
        let began = Instant::now();
        let mut operations = 0;
        loop {
            (work.run)(1)?;
            operations += work.operations;
            if began.elapsed() >= time {
                break;
            }
        }
        let late = end()?;
        for (samples, (_, quantile)) in self.percentiles.iter_mut().zip(PERCENTILES) {
            samples.push(late.latencies.nanos_at(quantile) as f64);
        }
        self.rates.extend(late.per_second);
        Ok(Sample { score: late.nanos, operations })
    }

    fn finish(self) -> Outcome {
        let name = self.benchmark.name().to_owned();
        if self.failure.is_some() {
            return Outcome { name, failure: self.failure, ..Outcome::default() };
        }
        let percentiles = self.percentiles.into_iter().zip(PERCENTILES);
        let mut others: Vec<Finding> = percentiles
            .filter(|(samples, _)| !samples.is_empty())
            .map(|(samples, (label, _))| Finding::new(label, "ns/op", samples))
            .collect();
        if !self.rates.is_empty() {
            others.push(Finding::new(RATE, "ops/s", self.rates));
        }
        others.extend(self.found);
        others.extend(self.allocated);
        Outcome {
            name,
            samples: vec![self.samples],
            operations: vec![self.operations],
            others,
            failure: None,
        }
    }

    /// Does the work once more and counts its allocations, including those of untimed parts.
    fn count_allocations(&mut self) -> anyhow::Result<()> {
        if self.is_amount() {
            return Ok(());
        }
        let mut work = self.benchmark.start(&self.plan.sizes)?;
        // Allocations that are made once and kept are not part of an operation's cost.
        (work.run)(self.calls)?;
        let end = work.end.take();
        let (done, allocated) = allocations::during(|| {
            (work.run)(self.calls)?;
            end.map_or(Ok(()), |end| end().map(drop))
        });
        done?;
        work.check.take().map_or(Ok(Vec::new()), |check| check())?;
        let allocated = allocated.context("this program's allocator does not count")?;
        let operations = self.calls as f64 * work.operations as f64;
        self.allocated = vec![
            Finding::new("gc.alloc.rate.norm", "B/op", vec![allocated.bytes as f64 / operations]),
            Finding::new("gc.alloc.count.norm", "allocs/op", vec![allocated.count as f64 / operations]),
        ];
        Ok(())
    }
}

/// Result of an iteration.
struct Sample {
    /// Cost of one operation.
    score: f64,
    operations: u64,
}

impl Sample {
    fn of(amount: f64, operations: u64) -> Self {
        Sample { score: amount / operations as f64, operations }
    }
}

/// Returns the message of a panic.
fn said_by(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

/// Joins a text into one line of a table; messages of assertions have several.
fn in_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Finding {
    pub(crate) fn new(label: &str, unit: &str, samples: Vec<f64>) -> Self {
        Finding { label: label.to_owned(), unit: unit.to_owned(), samples: vec![samples] }
    }
}

impl Outcome {
    /// Returns whether there are valid figures.
    pub(crate) fn has_figures(&self) -> bool {
        self.samples.iter().any(|fork| !fork.is_empty())
    }

    /// Adds the results of another fork. If that fork failed, the whole outcome fails.
    pub(crate) fn add(&mut self, fork: Outcome) {
        assert_eq!(self.name, fork.name, "forks of one benchmark are added up");
        if fork.failure.is_some() || self.samples.is_empty() {
            *self = fork;
            return;
        }
        // The fork was interrupted before the end of its first iteration.
        if !fork.has_figures() {
            return;
        }
        self.samples.extend(fork.samples);
        self.operations.extend(fork.operations);
        for (sum, other) in self.others.iter_mut().zip(fork.others) {
            // The results are parsed from a fork's output: a different label is a failure of the
            // run, not a panic.
            if sum.label != other.label {
                self.failure =
                    Some(format!("one fork found {} where another found {}", sum.label, other.label));
                return;
            }
            sum.samples.extend(other.samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, Outcome, measure as measure_until};
    use crate::interrupt::Interrupt;
    use crate::micro::benchmark::{Benchmark, Found, Work};
    use crate::micro::lateness::Lateness;
    use crate::micro::open_loop::emissions;
    use crate::micro::options::{Mode, Plan};
    use crate::micro::tally::Take;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use std::time::Duration;

    fn measure(benchmarks: &[&Benchmark], plan: &Plan) -> Vec<Outcome> {
        measure_until(benchmarks, plan, &Interrupt::default())
    }

    fn plan(mode: Mode) -> Plan {
        Plan { mode, warmup_iterations: 1, iterations: 3, ..Plan::quick() }
    }

    #[test]
    fn a_sample_is_the_time_that_the_work_says_it_took_for_one_operation() {
        let benchmark = Benchmark::new("A.a", "", |_| Work::calls(10, || Ok(Duration::from_nanos(70))));
        for mode in [Mode::SingleShot, Mode::AverageTime] {
            let outcome = measure(&[&benchmark], &plan(mode)).remove(0);
            assert_eq!(outcome.samples, [[7.0; 3]]);
        }
    }

    #[test]
    fn each_iteration_is_checked_and_what_that_finds_is_a_finding() {
        let benchmark = Benchmark::new("A.a", "", |_| {
            let done = Rc::new(Cell::new(0.0));
            let counted = Rc::clone(&done);
            let work = Work::calls(10, move || {
                counted.set(counted.get() + 10.0);
                Ok(Duration::from_nanos(70))
            })?;
            Ok(work.checked(move || Ok(vec![Found { label: "done", unit: "draws", value: done.get() }])))
        });
        let outcome = measure(&[&benchmark], &plan(Mode::SingleShot)).remove(0);
        assert_eq!(outcome.operations, [[10; 3]]);
        assert_eq!(outcome.others, [Finding::new("done", "draws", vec![10.0; 3])]);
        let wrong = Benchmark::new("A.b", "", |_| {
            Ok(Work::calls(1, || Ok(Duration::ZERO))?.checked(|| anyhow::bail!("a prize is missing")))
        });
        let outcome = measure(&[&wrong], &plan(Mode::SingleShot)).remove(0);
        assert_eq!(outcome.failure.as_deref(), Some("a prize is missing"));
    }

    #[test]
    fn a_group_takes_turns_and_another_one_begins_each_round() {
        let order = Rc::new(RefCell::new(String::new()));
        let benchmark = |name: &'static str| {
            let order = Rc::clone(&order);
            Benchmark::new(format!("A.{name}"), "", move |_| {
                order.borrow_mut().push_str(name);
                Work::calls(1, || Ok(Duration::ZERO))
            })
        };
        let (a, b, c) = (benchmark("a"), benchmark("b"), benchmark("c"));
        measure(&[&a, &b, &c], &plan(Mode::SingleShot));
        assert_eq!(*order.borrow(), ["abc", "abc", "bca", "cab"].concat());
    }

    #[test]
    fn an_amount_is_not_warmed_up_and_not_repeated_for_long() {
        let benchmark = Benchmark::new("A.a", "", |_| Work::amounts(2, || Ok(6.0))).in_unit("B");
        let plan = Plan { warmup_iterations: 9, iterations: 9, ..plan(Mode::AverageTime) };
        assert_eq!(measure(&[&benchmark], &plan)[0].samples, [[3.0; 3]]);
    }

    #[test]
    fn a_failure_says_why_in_a_line_and_to_panic_is_one() {
        let lost = Benchmark::new("A.a", "", |_| Work::calls(1, || anyhow::bail!("it did not arrive")));
        let wrong = Benchmark::new("A.b", "", |_| Work::calls(1, || panic!("left: {}\n right: 2", 1)));
        let none = Benchmark::new("A.c", "", |_| std::panic::resume_unwind(Box::new(1)));
        let sound = Benchmark::new("A.d", "", |_| Work::calls(1, || Ok(Duration::ZERO)));
        let outcomes = measure(&[&lost, &wrong, &none, &sound], &plan(Mode::SingleShot));
        let failures: Vec<_> = outcomes.iter().map(|one| one.failure.as_deref()).collect();
        let (panicked, silent) = ("it panicked: left: 1 right: 2", "it panicked: no reason given");
        assert_eq!(failures, [Some("it did not arrive"), Some(panicked), Some(silent), None]);
        assert_eq!(
            outcomes.iter().map(Outcome::has_figures).collect::<Vec<_>>(),
            [false, false, false, true]
        );
    }

    #[test]
    fn latencies_have_percentiles_and_a_rate_of_each_iteration() {
        let benchmark = Benchmark::new("A.a", "", |_| {
            let lateness = Lateness::new();
            let mut end = lateness.clone();
            let emit = move |(): &mut (), due| {
                end.take(due);
                Ok(())
            };
            emissions((), &lateness, 100_000, emit, |()| Ok(()))
        })
        .of_latencies();
        let outcome = measure(&[&benchmark], &plan(Mode::AverageTime)).remove(0);
        let labels: Vec<&str> = outcome.others.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["p50", "p90", "p99", "p99.9", "max", "rate"]);
        for number in 0..3 {
            let mut found: Vec<f64> = outcome.others.iter().map(|one| one.samples[0][number]).collect();
            let rate = found.pop();
            assert!(found.is_sorted(), "{found:?}");
            assert!(rate.is_some_and(|rate| rate > 0.0 && rate <= 100_000.0), "{rate:?}");
        }
    }

    #[test]
    fn an_interrupted_run_has_what_was_measured_until_then() {
        let (interrupt, runs) = (Interrupt::default(), Rc::new(Cell::new(0)));
        let (asked, counted) = (interrupt.clone(), Rc::clone(&runs));
        let benchmark = Benchmark::new("A.a", "", move |_| {
            counted.set(counted.get() + 1);
            // One to warm up, and two of nine that count.
            if counted.get() == 3 {
                asked.ask();
            }
            Work::calls(1, || Ok(Duration::ZERO))
        });
        let plan = Plan { iterations: 9, ..plan(Mode::SingleShot) };
        let outcome = measure_until(&[&benchmark], &plan, &interrupt).remove(0);
        assert_eq!(outcome.samples, [[0.0, 0.0]]);
    }
}
