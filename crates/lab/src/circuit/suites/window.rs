//! `WindowOps` of the original's newer suite: the last values, and a lookup in them with each new
//! one.
//!
//! Here a function sees the window and its result is emitted; in the original the window itself is
//! emitted.

use crate::circuit::batch::{Batch, ahead};
use crate::circuit::making::making;
use crate::micro::benchmark::Benchmark;
use std::time::Duration;
use tidemark_circuit::operator::Part;
use tidemark_circuit::{Circuit, Flow, Window};

/// Longer than any row takes.
const LONG: Duration = Duration::from_hours(24);
/// Shorter than the clock's resolution.
const SHORT: Duration = Duration::from_nanos(1);

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = sizes();
    all.extend(views());
    all.extend(answers());
    all.extend(compositions());
    all
}

fn sizes() -> Vec<Benchmark> {
    let of = |name: &str, count: usize| {
        Batch::new(name, format!("a window of {count} values, and its length"), move |circuit, counter| {
            ahead(circuit, counter, &Flow::<u64>::new().window(count)?.map(|window| window.len()))
        })
        .row()
    };
    let lasting = |name: &str, what: &str, age: Duration| {
        Batch::new(name, what, move |circuit, counter| {
            let flow = Flow::<u64>::new().window_duration(age, 16)?;
            ahead(circuit, counter, &flow.map(|window| window.len()))
        })
        .row()
    };
    vec![
        of("WindowOps.window_4_batch", 4),
        of("WindowOps.window_16_batch", 16),
        of("WindowOps.window_64_batch", 64),
        lasting("WindowOps.window_duration_16_batch", "a window of 16 values of a day, and its length", LONG),
        lasting(
            "WindowOps.window_duration_expiring_batch",
            "a window of 16 values of a nanosecond, and its length",
            SHORT,
        ),
        lasting(
            "WindowOps.window_duration_size_batch",
            "a window of 16 values of a day, and its length",
            LONG,
        ),
        seen("window_size_batch", "its length", |window| window.len() as u64),
    ]
}

fn views() -> [Benchmark; 7] {
    [
        seen("window_for_each_batch", "the sum of all", sum),
        seen("window_prefix_batch", "the sum of the oldest two", |window| sum(window.prefix(2))),
        seen("window_suffix_batch", "the sum of the newest two", |window| sum(window.suffix(2))),
        seen("window_slice_batch", "the sum of the second and third", |window| sum(window.slice(1, 2))),
        seen("window_skip_batch", "the sum of all but the oldest", |window| sum(window.skip(1))),
        seen("window_trim_batch", "the sum of all but the newest", |window| sum(window.trim(1))),
        seen("window_reverse_batch", "the sum of all, from the newest", |window| sum(window.reverse())),
    ]
}

fn answers() -> [Benchmark; 7] {
    [
        seen("window_is_empty_batch", "whether it is empty", |window| u64::from(window.is_empty())),
        seen("window_all_batch", "whether all are positive", |window| {
            u64::from(window.all(|value| *value > 0))
        }),
        seen("window_any_batch", "whether one is zero", |window| u64::from(window.any(|value| *value == 0))),
        seen("window_none_batch", "whether none is zero", |window| {
            u64::from(window.none(|value| *value == 0))
        }),
        seen("window_count_batch", "how many are even", |window| window.count(|value| value % 2 == 0) as u64),
        seen("window_fold_batch", "a fold to their sum", |window| {
            window.fold(0, |sum: u64, value| sum.wrapping_add(*value))
        }),
        seen("window_reduce_batch", "a reduction to their sum", |window| window.reduce(0, u64::wrapping_add)),
    ]
}

fn compositions() -> [Benchmark; 4] {
    [
        Batch::new(
            "WindowOps.map_then_window_batch",
            "a map and a window of 16, and its length",
            |circuit, counter| {
                let flow = Flow::new().map(|value: u64| value.wrapping_add(1)).window(16)?;
                ahead(circuit, counter, &flow.map(|window| window.len()))
            },
        )
        .row(),
        Batch::new(
            "WindowOps.filter_then_window_batch",
            "a filter of the even and a window of 16, and its length",
            |circuit, counter| {
                let flow = Flow::new()
                    .filter_map(|value: u64| value.is_multiple_of(2).then_some(value))
                    .window(16)?;
                ahead(circuit, counter, &flow.map(|window| window.len()))
            },
        )
        .arriving(|count| count / 2..=count / 2)
        .row(),
        making("WindowOps.pipe_create_window", "a pipe with a window ahead of another", |circuit| {
            let (sink, flow) =
                (circuit.discard::<usize>()?, Flow::<u64>::new().window(16)?.map(|window| window.len()));
            Ok(move |_: &Circuit| sink.prepend(&flow))
        }),
        making(
            "WindowOps.pipe_create_window_duration",
            "a pipe with a window of a day ahead of another",
            |circuit| {
                let flow = Flow::<u64>::new().window_duration(LONG, 16)?.map(|window| window.len());
                let sink = circuit.discard::<usize>()?;
                Ok(move |_: &Circuit| sink.prepend(&flow))
            },
        ),
    ]
}

/// A lookup in a window of 16 values.
fn seen<F>(name: &str, what: &str, look: F) -> Benchmark
where
    F: FnMut(Window<'_, u64>) -> u64 + Part,
{
    Batch::new(
        format!("WindowOps.{name}"),
        format!("a window of 16 values, and {what}"),
        move |circuit, counter| ahead(circuit, counter, &Flow::<u64>::new().window(16)?.map(look.clone())),
    )
    .row()
}

fn sum(window: Window<'_, u64>) -> u64 {
    let mut sum = 0_u64;
    window.for_each(|value| sum = sum.wrapping_add(*value));
    sum
}
