//! Doing a benchmark's work for a while, and looking at the clock.
//!
//! ```text
//! fork ─► warm-up iterations ─► measured iterations ─► one pass with allocations counted, on request
//!         each: fresh work ─► calls, as many between two looks at the clock as take a while ─► a sample
//! ```

use super::benchmark::{Benchmark, Quantity, Work};
use super::options::{Mode, Plan};
use crate::allocations;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What was measured of one benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) name: String,
    /// For each fork what its iterations found for one operation, in nanoseconds or the benchmark's unit.
    pub(super) samples: Vec<Vec<f64>>,
    /// What one operation asked the allocator for.
    pub(super) allocated: Option<PerOperation>,
}

/// What one operation asks the allocator for, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PerOperation {
    pub(super) allocations: f64,
    pub(super) bytes: f64,
}

/// Two looks at the clock are at least so far apart, so that looking does not count.
const READING_MIN: Duration = Duration::from_micros(200);

/// How often an amount is measured that is not a time.
const AMOUNTS_MAX: u32 = 3;

/// Measures benchmarks in turns: each iteration does the work of all of them.
pub(super) fn measure(benchmarks: &[&Benchmark], plan: &Plan) -> anyhow::Result<Vec<Outcome>> {
    let mut running: Vec<Running<'_>> = benchmarks.iter().map(|one| Running::new(one, plan)).collect();
    for _ in 0..plan.warmup_iterations {
        for one in &mut running {
            one.warm_up()?;
        }
    }
    for number in 0..plan.iterations {
        for one in &mut running {
            one.measure(number)?;
        }
    }
    running.into_iter().map(Running::finish).collect()
}

/// A benchmark that is being measured.
struct Running<'a> {
    benchmark: &'a Benchmark,
    plan: &'a Plan,
    /// How many calls there are between two looks at the clock.
    calls: u64,
    samples: Vec<f64>,
}

impl<'a> Running<'a> {
    fn new(benchmark: &'a Benchmark, plan: &'a Plan) -> Self {
        Running { benchmark, plan, calls: 1, samples: Vec::new() }
    }

    fn warm_up(&mut self) -> anyhow::Result<()> {
        if self.is_amount() {
            return Ok(());
        }
        self.iterate(self.plan.warmup_time).map(drop)
    }

    fn measure(&mut self, number: u32) -> anyhow::Result<()> {
        if self.is_amount() && number >= AMOUNTS_MAX {
            return Ok(());
        }
        let sample = self.iterate(self.plan.time)?;
        self.samples.push(sample);
        Ok(())
    }

    fn is_amount(&self) -> bool {
        self.benchmark.quantity() != Quantity::Time
    }

    /// Does the work for about this long. Returns what one operation took.
    fn iterate(&mut self, time: Duration) -> anyhow::Result<f64> {
        let mut work = self.start()?;
        if self.plan.mode == Mode::SingleShot || self.is_amount() {
            return Ok(self.run(&mut work, 1)? / work.operations as f64);
        }
        let began = Instant::now();
        let (mut amount, mut calls) = (0.0, 0_u64);
        loop {
            let reading = Instant::now();
            amount += self.run(&mut work, self.calls)?;
            calls += self.calls;
            if reading.elapsed() < READING_MIN {
                // Looking at the clock took too much of it: it does not count.
                self.calls = self.calls.saturating_mul(2);
                (amount, calls) = (0.0, 0);
            } else if began.elapsed() >= time {
                return Ok(amount / (calls as f64 * work.operations as f64));
            }
        }
    }

    fn finish(self) -> anyhow::Result<Outcome> {
        let allocated = if self.plan.allocations && !self.is_amount() { self.allocated()? } else { None };
        Ok(Outcome { name: self.benchmark.name().to_owned(), samples: vec![self.samples], allocated })
    }

    /// Does the work once more and counts what it asks the allocator for, the parts included that are not timed.
    fn allocated(&self) -> anyhow::Result<Option<PerOperation>> {
        let mut work = self.start()?;
        // What is allocated once and kept is not what an operation costs.
        self.run(&mut work, self.calls)?;
        let (done, allocated) = allocations::during(|| self.run(&mut work, self.calls));
        done?;
        let allocated = allocated.context("this program's allocator does not count")?;
        let operations = self.calls as f64 * work.operations as f64;
        Ok(Some(PerOperation {
            allocations: allocated.count as f64 / operations,
            bytes: allocated.bytes as f64 / operations,
        }))
    }

    fn start(&self) -> anyhow::Result<Work> {
        self.benchmark.start(&self.plan.sizes).with_context(|| self.benchmark.name().to_owned())
    }

    fn run(&self, work: &mut Work, calls: u64) -> anyhow::Result<f64> {
        (work.run)(calls).with_context(|| self.benchmark.name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::measure;
    use crate::circuit::benchmark::{Benchmark, Work};
    use crate::circuit::options::{Mode, Plan};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    fn plan(mode: Mode) -> Plan {
        Plan { mode, warmup_iterations: 1, iterations: 3, ..Plan::quick() }
    }

    #[test]
    fn a_sample_is_the_time_that_the_work_says_it_took_for_one_operation() {
        let benchmark = Benchmark::new("A.a", "", |_| Work::calls(10, || Ok(Duration::from_nanos(70))));
        for mode in [Mode::SingleShot, Mode::AverageTime] {
            let outcome = measure(&[&benchmark], &plan(mode)).unwrap().remove(0);
            assert_eq!(outcome.samples, [[7.0; 3]]);
        }
    }

    #[test]
    fn a_group_takes_turns() {
        let order = Rc::new(RefCell::new(String::new()));
        let benchmark = |name: &'static str| {
            let order = Rc::clone(&order);
            Benchmark::new(format!("A.{name}"), "", move |_| {
                order.borrow_mut().push_str(name);
                Work::calls(1, || Ok(Duration::ZERO))
            })
        };
        let (a, b) = (benchmark("a"), benchmark("b"));
        measure(&[&a, &b], &plan(Mode::SingleShot)).unwrap();
        assert_eq!(*order.borrow(), "abababab");
    }

    #[test]
    fn an_amount_is_not_warmed_up_and_not_repeated_for_long() {
        let benchmark = Benchmark::new("A.a", "", |_| Work::amounts(2, || Ok(6.0))).in_unit("B");
        let plan = Plan { warmup_iterations: 9, iterations: 9, ..plan(Mode::AverageTime) };
        assert_eq!(measure(&[&benchmark], &plan).unwrap()[0].samples, [[3.0; 3]]);
    }

    #[test]
    fn a_failure_says_of_which_benchmark_it_is() {
        let benchmark = Benchmark::new("A.a", "", |_| Work::calls(1, || anyhow::bail!("it did not arrive")));
        let error = measure(&[&benchmark], &plan(Mode::SingleShot)).unwrap_err();
        assert_eq!(format!("{error:#}"), "A.a: it did not arrive");
    }
}
