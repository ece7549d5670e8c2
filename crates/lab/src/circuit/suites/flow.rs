//! `FlowOps`: cost of operators in front of a pipe per emission into a circuit.

use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work, each};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::operator::Plan;
use tidemark_circuit::{Fiber, Receptor};

/// Number of values that the original's rows emit, and the first of them.
const VALUES: i32 = 1_000;
const FIRST: i32 = 42;

pub(super) fn suite() -> Vec<Benchmark> {
    vec![
        row("baseline_no_flow_await", "no operators", || Ok(Fiber::new()), VALUES),
        row("flow_diff_await", "diff", || Ok(Fiber::new().diff()), VALUES),
        row(
            "flow_guard_await",
            "a guard that all values pass",
            || Ok(Fiber::new().guard(is_positive)),
            VALUES,
        ),
        row("flow_limit_await", "a limit of 1,000, which is all", || Ok(Fiber::new().limit(1_000)), VALUES),
        row("flow_sample_await", "every tenth", || Ok(Fiber::new().every(10)?), VALUES / 10),
        row(
            "flow_sift_await",
            "the range from 40 to 200",
            || Ok(Fiber::new().range(40, 200)?),
            200 - FIRST + 1,
        ),
        row(
            "flow_combined_diff_guard_await",
            "diff and guard",
            || Ok(Fiber::new().diff().guard(is_positive)),
            VALUES,
        ),
        row(
            "flow_combined_diff_sample_await",
            "diff and every tenth",
            || Ok(Fiber::new().diff().every(10)?),
            VALUES / 10,
        ),
        row(
            "flow_combined_guard_limit_await",
            "guard and a limit of 1,000",
            || Ok(Fiber::new().guard(is_positive).limit(1_000)),
            VALUES,
        ),
        Benchmark::new(
            "FlowOps.flow_static",
            "a value through guard, diff, limit and an addition ahead of a receptor, made before; no circuit",
            |_| {
                let fiber = Fiber::new().guard(is_positive).diff().limit(u64::MAX).replace(|value| value + 1);
                let mut sum = 0_i64;
                let mut receptor =
                    fiber.receptor(move |value: i32| sum = black_box(sum + i64::from(value)))?;
                each(move |value| receptor.receive((value & 0xFFFF) as i32 + 1))
            },
        ),
    ]
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what a guard is given")]
fn is_positive(value: &i32) -> bool {
    *value > 0
}

/// The original's row: a thousand values through a new pipe, one await, and a count of those that
/// pass.
fn row<R: Plan<i32, Out = i32>>(
    name: &str,
    what: &str,
    fiber: fn() -> anyhow::Result<Fiber<i32, R>>,
    passing: i32,
) -> Benchmark {
    let measures = format!(
        "making a pipe with {what} ahead of a counting one, 1,000 emissions to it and one await, each, and counted what \
         passed; the shared pool runs the circuit"
    );
    Benchmark::new(format!("FlowOps.{name}"), measures, move |_| {
        let (rig, fiber) = (Rig::new(By::Pool)?, fiber()?);
        let mut tally = Tally::default();
        let counter = tally.counter();
        let sink = rig.pipe(move |value: i32| counter.count(value))?;
        Work::calls(VALUES as u64, move || {
            let clock = Instant::now();
            let pipe = sink.prepend(&fiber)?;
            for value in FIRST..FIRST + VALUES {
                pipe.emit(black_box(value));
            }
            rig.settle()?;
            let took = clock.elapsed();
            tally.expect(passing as u64)?;
            Ok(took)
        })
    })
}
