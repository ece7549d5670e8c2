//! One key that everybody takes from.

use super::moves::{quota, striped};
use super::scanned::Scanned;
use super::threads::by_one_and_two;
use crate::micro::benchmark::Benchmark;
use crate::micro::threads::together;
use tidemark_counter::variant::Atomic;

const LIMIT: i64 = 1 << 50;
/// By how many threads at once: each that has a slot of its own has a stripe.
const THREADS: [u64; 5] = [2, 4, 8, 16, 32];

pub(super) fn rows() -> Vec<Benchmark> {
    let [two, one] =
        by_one_and_two("HotKey_VSA_FastPath", "taking 1 from a striped quota", striped, |counter, _| {
            counter.take(1)
        });
    let mut all = vec![two.also(["HotKey_VSA_FastPath_PerP"]).in_summary(), one];
    all.extend(by_one_and_two(
        "HotKey_VSA_After",
        "taking 1 from a quota that is cold at first",
        quota,
        |counter, _| counter.take(1),
    ));
    let [two, one] = by_one_and_two(
        "HotKey_Atomic",
        "taking 1 from a word, if it has it",
        || Atomic::new(LIMIT),
        |word, _| word.take(1),
    );
    all.extend([two.in_summary(), one]);
    all.extend(by_one_and_two(
        "HotKey_VSA_BeforeScan",
        "taking 1 from eight parts that are added up under a lock",
        || Scanned::new(LIMIT),
        |scanned, number| scanned.take(1, number as usize),
    ));
    all.extend(THREADS.map(|threads| {
        Benchmark::new(
            format!("CounterOps.TryConsume_striped_P{threads}"),
            format!("taking 1 from a striped quota, by {threads} threads at once"),
            move |_| together(threads, striped(), |counter, _| counter.take(1)),
        )
    }));
    all
}
