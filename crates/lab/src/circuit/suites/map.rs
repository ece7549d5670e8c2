//! `FlowOps`, `PipeMapOps`, `ScanOps`, `RelateOps` and `RunChangeOps` of the original's newer
//! suite: operators that transform values.

use crate::circuit::batch::{Batch, ahead, end};
use crate::circuit::making::making;
use crate::micro::benchmark::Benchmark;
use std::ops::RangeInclusive;
use tidemark_circuit::{Circuit, Fiber, Flow, Recipe};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    for suite in ["FlowOps", "PipeMapOps"] {
        let baseline = Batch::new(
            format!("{suite}.baseline_plain_batch"),
            "a pipe without operators",
            |circuit, counter| Ok(end::<u64>(circuit, counter)?),
        );
        all.push(baseline.row());
    }
    all.extend(flows());
    all.extend(states());
    all.extend(runs());
    all.extend(creations());
    all
}

fn flows() -> Vec<Benchmark> {
    let chained = |name: &str| {
        Batch::new(name, "two pipes, each a map ahead of the next", |circuit, counter| {
            Ok(ahead(circuit, counter, &Flow::new().map(plus_one))?.prepend(&Flow::new().map(plus_one))?)
        })
        .row()
    };
    vec![
        through("FlowOps.identity_batch", "a flow without operators", Flow::<u64>::new),
        through("FlowOps.map_batch", "a map", || Flow::new().map(plus_one)),
        chained("FlowOps.map_chained_batch"),
        through("FlowOps.composed_batch", "two flows of a map each in one", || {
            Flow::new().map(plus_one).flow(Flow::new().map(|value: u64| value.wrapping_mul(2)))
        }),
        through("FlowOps.fiber_batch", "a flow of a fiber that all values pass", || {
            Flow::new().fiber(Fiber::new().guard(is_positive))
        }),
        through("FlowOps.fiber_factory_batch", "a fiber made for its subject, that all values pass", || {
            Flow::new().fiber_for(|_| Ok(Fiber::new().guard(is_positive)))
        }),
        through("PipeMapOps.mapped_emit_batch", "a map", || Flow::new().map(plus_one)),
        chained("PipeMapOps.mapped_chained_batch"),
        through("PipeMapOps.mapped_stateful_batch", "a map that adds up", || {
            let mut sum = 0_u64;
            Flow::new().map(move |value: u64| {
                sum = sum.wrapping_add(value);
                sum
            })
        }),
    ]
}

fn states() -> [Benchmark; 6] {
    let add = |sum: &mut u64, value: &u64| *sum = sum.wrapping_add(*value);
    [
        through("ScanOps.scan_runningSum_batch", "a sum", move || Flow::new().scan(|| 0, add)),
        through("ScanOps.scan_runningMean_batch", "a mean, of a sum and a number", || {
            let step = |(sum, count): &mut (u64, u64), value: &u64| {
                *sum = sum.wrapping_add(*value);
                *count += 1;
            };
            let mean = |(sum, count): &(u64, u64), _: u64| *sum as f64 / *count as f64;
            Flow::new().scan_map(|| (0, 0), step, mean)
        }),
        through("ScanOps.scan_inputAware_batch", "a sum, and the value added once more", move || {
            Flow::new().scan_map(|| 0, add, |sum: &u64, value: u64| sum.wrapping_add(value))
        }),
        through("ScanOps.scan_via_flow_factory_batch", "a sum by a flow made for its subject", move || {
            Flow::new().flow_for(move |_| Ok(Flow::new().scan(|| 0, add)))
        }),
        through("RelateOps.relate_fires_batch", "each value unless it is equal to the one before", || {
            Flow::new().filter_relate(Some(0), |before: Option<&u64>, value: &u64| {
                (before != Some(value)).then_some(*value)
            })
        }),
        Batch::new(
            "RelateOps.relate_suppresses_batch",
            "each value if it is equal to the one before",
            |circuit, counter| {
                let relate = Flow::new().filter_relate(Some(0), |before: Option<&u64>, value: &u64| {
                    (before == Some(value)).then_some(*value)
                });
                ahead(circuit, counter, &relate)
            },
        )
        .arriving_times(0)
        .row(),
    ]
}

fn runs() -> [Benchmark; 4] {
    let change = |circuit: &Circuit, counter| ahead(circuit, counter, &Flow::<u64>::new().change());
    let run = |circuit: &Circuit, counter| ahead(circuit, counter, &Flow::<u64>::new().run());
    // The first value of all has no predecessor to differ from.
    let but_the_first = |count: u64| -> RangeInclusive<u64> { count - 1..=count };
    [
        Batch::new("RunChangeOps.change_fires_batch", "changes of values that all differ", change)
            .arriving(but_the_first)
            .row(),
        Batch::new("RunChangeOps.change_suppresses_batch", "changes of values that are all equal", change)
            .with_one_value()
            .arriving_times(0)
            .row(),
        Batch::new("RunChangeOps.run_changing_batch", "runs of values that all differ", run).row(),
        Batch::new("RunChangeOps.run_constant_batch", "runs of values that are all equal", run)
            .with_one_value()
            .row(),
    ]
}

fn creations() -> [Benchmark; 7] {
    let add = |sum: &mut u64, value: &u64| *sum = sum.wrapping_add(*value);
    [
        attached("FlowOps.pipe_create_map", "a pipe with a map ahead of another", || {
            Flow::new().map(plus_one)
        }),
        attached(
            "FlowOps.pipe_create_fiber_factory",
            "a pipe with a fiber made for it ahead of another",
            || Flow::<u64>::new().fiber_for(|_| Ok(Fiber::new().guard(is_positive))),
        ),
        attached("ScanOps.pipe_create_scan", "a pipe with a sum ahead of another", move || {
            Flow::<u64>::new().scan(|| 0, add)
        }),
        attached(
            "ScanOps.pipe_create_flow_factory",
            "a pipe with a flow made for it ahead of another",
            || Flow::<u64>::new().flow_for(|_| Ok(Flow::new().map(plus_one))),
        ),
        attached("RelateOps.pipe_create_relate", "a pipe with differences ahead of another", || {
            Flow::new().relate(0, |before: &u64, value: &u64| value.wrapping_sub(*before))
        }),
        attached("RunChangeOps.pipe_create_change", "a pipe with changes ahead of another", || {
            Flow::<u64>::new().change()
        }),
        attached("RunChangeOps.pipe_create_run", "a pipe with runs ahead of another", || {
            Flow::<u64>::new().run()
        }),
    ]
}

/// Emissions that all pass a recipe.
fn through<R>(name: &str, what: &str, recipe: impl Fn() -> R + 'static) -> Benchmark
where
    R: Recipe<In = u64>,
    R::Out: Send + 'static,
{
    Batch::new(name, what, move |circuit, counter| ahead(circuit, counter, &recipe())).row()
}

/// Attaches a recipe to a pipe that discards.
fn attached<R>(name: &str, what: &str, recipe: impl Fn() -> R + 'static) -> Benchmark
where
    R: Recipe<In = u64>,
    R::Out: Send + 'static,
{
    making(name, what, move |circuit| {
        let (sink, recipe) = (circuit.discard::<R::Out>()?, recipe());
        Ok(move |_: &Circuit| sink.prepend(&recipe))
    })
}

fn plus_one(value: u64) -> u64 {
    value.wrapping_add(1)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what a guard is given")]
fn is_positive(value: &u64) -> bool {
    *value > 0
}
