//! Reads of one counter.

use super::moves::{plain, quota};
use super::threads::{OPERATIONS, by_one_and_two};
use crate::micro::benchmark::Benchmark;
use crate::micro::threads::beside;
use tidemark_counter::Counter;

/// Reads between two moves by the same reader.
const MOVE_EVERY: u64 = 64;
/// Numbers of concurrent readers in the original.
const THREADS: [u64; 7] = [1, 2, 4, 8, 16, 20, 32];

/// Adds a unit and takes it back.
fn up_and_down(counter: &Counter) {
    let _ = counter.add(1);
    let _ = counter.add(-1);
}

pub(super) fn rows() -> Vec<Benchmark> {
    let mut all = Vec::new();
    all.extend(by_one_and_two(
        "VSA_Available_Concurrent",
        "asking what a quota has left; every 64th time 1 is taken and given back",
        quota,
        |counter, number| {
            if number % MOVE_EVERY == 0 && counter.take(1).is_ok() {
                let _ = counter.refund(1);
            }
            counter.available()
        },
    ));
    all.extend(by_one_and_two(
        "VSA_State_Concurrent_InLoop",
        "asking for a counter's state; every 64th time it is moved up and down",
        plain,
        |counter, number| {
            if number % MOVE_EVERY == 0 {
                up_and_down(counter);
            }
            counter.state()
        },
    ));
    all.push(Benchmark::new(
        "CounterOps.VSA_Available_Concurrent_BGWriter",
        "asking what a quota has left, by one thread, while another moves it up and down",
        |_| beside(1, OPERATIONS, quota(), |counter, _| counter.available(), up_and_down),
    ));
    all.push(Benchmark::new(
        "CounterOps.VSA_State_Concurrent",
        "asking for a counter's state, by one thread, while another moves it up and down",
        |_| beside(1, OPERATIONS, plain(), |counter, _| counter.state(), up_and_down),
    ));
    all.extend(THREADS.map(|threads| {
        Benchmark::new(
            format!("CounterOps.VSA_currentVector_Parallel_Sweep_P{threads}"),
            format!(
                "asking for a striped counter's position, by {threads} threads at once, while another one moves it up and down"
            ),
            move |_| {
                let counter = plain();
                counter.stripe();
                beside(threads, OPERATIONS, counter, |counter, _| counter.position(), up_and_down)
            },
        )
    }));
    all
}
