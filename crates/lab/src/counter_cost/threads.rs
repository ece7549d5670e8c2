//! Rows by one thread and by two.

use crate::micro::benchmark::{Benchmark, each};
use crate::micro::threads::together;

/// What each of several threads does in a call: some hundred microseconds or more.
pub(super) const OPERATIONS: u64 = 50_000;

/// An operation by one thread, as `name` with `_1`, and by two at once, as `name`: then the time is that of all operations together
/// over their number, so it halves where threads do not hinder each other.
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
