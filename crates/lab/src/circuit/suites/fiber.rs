//! `FiberOps` of the original's newer suite: cost of each operator per emission into a circuit.

use crate::circuit::batch::{Batch, ahead, end};
use crate::circuit::making::making;
use crate::micro::benchmark::Benchmark;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidemark_circuit::operator::Plan;
use tidemark_circuit::{Circuit, Fiber};

/// Accepted number of arrivals for a number of emissions.
type Arrivals = fn(u64) -> RangeInclusive<u64>;

/// Longer than any row takes.
const LONG: Duration = Duration::from_hours(1);

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = vec![
        Batch::new("FiberOps.baseline_plain_batch", "a pipe without operators", |circuit, counter| {
            Ok(end::<u64>(circuit, counter)?)
        })
        .row(),
    ];
    all.extend(without_state());
    all.extend(with_state());
    all.extend(routing());
    all.push(making("FiberOps.pipe_create_fiber", "a pipe with a guard ahead of another", |circuit| {
        let (sink, fiber) = (circuit.discard::<u64>()?, Fiber::new().guard(is_positive));
        Ok(move |_: &Circuit| sink.prepend(&fiber))
    }));
    all
}

fn without_state() -> [Benchmark; 5] {
    [
        changing("identity_batch", "a fiber without operators", all, || Ok(Fiber::new())),
        changing("guard_batch", "a guard that all values pass", all, || Ok(Fiber::new().guard(is_positive))),
        changing("peek_batch", "a peek that does nothing", all, || Ok(Fiber::new().peek(|_| {}))),
        changing("above_compare_batch", "above a bound, by a comparison of one's own", all, || {
            Ok(Fiber::new().above_by(0, u64::cmp))
        }),
        changing("above_natural_batch", "above a bound", all, || Ok(Fiber::new().above(0))),
    ]
}

fn with_state() -> [Benchmark; 12] {
    [
        changing("diff_batch", "a diff of values that all differ", all, || Ok(Fiber::new().diff())),
        changing("guard_diff_batch", "a guard and a diff that all values pass", all, || {
            Ok(Fiber::new().guard(is_positive).diff())
        }),
        changing("limit_batch", "a limit that is not reached", all, || Ok(Fiber::new().limit(u64::MAX))),
        changing("every_batch", "every second value", half, || Ok(Fiber::new().every(2)?)),
        changing("every_duration_batch", "one value an hour", at_most_one, || {
            Ok(Fiber::new().every_duration(LONG)?)
        }),
        changing("heartbeat_changing_batch", "a heartbeat of values that all differ", all, || {
            Ok(Fiber::new().heartbeat(LONG)?)
        }),
        constant(
            "heartbeat_duplicate_batch",
            "a heartbeat of values that are equal, once an hour",
            at_most_one,
            || Ok(Fiber::new().heartbeat(LONG)?),
        ),
        changing("chance_batch", "one chance in two", around_half, || Ok(Fiber::new().chance(0.5)?)),
        changing("reduce_batch", "a sum", all, || {
            Ok(Fiber::new().reduce(0_u64, |sum, value| sum.wrapping_add(*value)))
        }),
        changing("distinct_bounded_batch", "values that none of the last 5,000 is equal to", all, || {
            Ok(Fiber::new().distinct_last(5_000)?)
        }),
        changing("streak_fire_batch", "every second value of a streak", half, || {
            Ok(Fiber::new().streak(2, |_: &u64| true)?)
        }),
        changing("streak_match_batch", "a streak that never is long enough", none, || {
            Ok(Fiber::new().streak(u64::MAX, |_: &u64| true)?)
        }),
    ]
}

fn routing() -> Vec<Benchmark> {
    let routed = |name: &str, what: &str, is_taken: bool| {
        Batch::new(format!("FiberOps.{name}"), what, move |circuit, counter| {
            let side = end::<u64>(circuit, counter.clone())?;
            ahead(circuit, counter, &Fiber::new().route(move |_: &u64| is_taken, side))
        })
        .row()
    };
    vec![
        changing("streak_miss_batch", "a streak that never begins", none, || {
            Ok(Fiber::new().streak(3, |_: &u64| false)?)
        }),
        routed("route_match_batch", "all values to a pipe at the side", true),
        routed("route_noMatch_batch", "no value to a pipe at the side", false),
        changing("when_match_batch", "a guard for all values", all, || {
            Ok(Fiber::new().when(|_: &u64| true, Fiber::new().guard(is_positive)))
        }),
        changing("when_noMatch_batch", "a guard for no value", all, || {
            Ok(Fiber::new().when(|_: &u64| false, Fiber::new().guard(is_positive)))
        }),
    ]
}

/// Distinct values through these operators.
fn changing<R: Plan<u64, Out = u64>>(
    name: &str,
    what: &str,
    arrivals: Arrivals,
    fiber: fn() -> anyhow::Result<Fiber<u64, R>>,
) -> Benchmark {
    let wire = move |circuit: &Circuit, counter| ahead(circuit, counter, &fiber()?);
    Batch::new(format!("FiberOps.{name}"), what, wire).arriving(arrivals).row()
}

/// Equal values through these operators.
fn constant<R: Plan<u64, Out = u64>>(
    name: &str,
    what: &str,
    arrivals: Arrivals,
    fiber: fn() -> anyhow::Result<Fiber<u64, R>>,
) -> Benchmark {
    let wire = move |circuit: &Circuit, counter| ahead(circuit, counter, &fiber()?);
    Batch::new(format!("FiberOps.{name}"), what, wire).with_one_value().arriving(arrivals).row()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what a guard is given")]
fn is_positive(value: &u64) -> bool {
    *value > 0
}

fn all(count: u64) -> RangeInclusive<u64> {
    count..=count
}

fn half(count: u64) -> RangeInclusive<u64> {
    count / 2..=count / 2
}

/// Wide enough that chance never exceeds it.
fn around_half(count: u64) -> RangeInclusive<u64> {
    count / 5..=count * 4 / 5
}

fn at_most_one(_: u64) -> RangeInclusive<u64> {
    0..=1
}

fn none(_: u64) -> RangeInclusive<u64> {
    0..=0
}
