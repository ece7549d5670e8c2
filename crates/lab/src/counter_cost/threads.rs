//! Rows by one thread and by two.

use crate::micro::benchmark::{Benchmark, each};
use crate::micro::threads::together;

/// Operations of each thread per call: a hundred microseconds or more.
pub(super) const OPERATIONS: u64 = 50_000;

/// Rows of an operation by one thread, `name` with `_1`, and by two at once, `name`. The latter
/// divides the time by the operations of both threads, so it halves if the threads do not contend.
pub(super) fn by_one_and_two<T: Sync + 'static, R: 'static>(
    name: &str,
    measures: &str,
    make: fn() -> T,
    act: fn(&T, u64) -> R,
) -> [Benchmark; 2] {
    [
        Benchmark::new(
            format!("CounterOps.{name}"),
            format!("{measures}, by two threads at once"),
            move |_| together(2, OPERATIONS, make(), act),
        ),
        Benchmark::new(format!("CounterOps.{name}_1"), format!("{measures}, by one thread"), move |_| {
            let shared = make();
            each(move |number| act(&shared, number))
        }),
    ]
}
