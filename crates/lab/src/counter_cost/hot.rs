//! One key that everybody takes from.

use super::moves::{quota, striped};
use super::rivals::{Scanned, Word};
use super::threads::by_one_and_two;
use crate::micro::benchmark::Benchmark;

const LIMIT: i64 = 1 << 50;

pub(super) fn rows() -> Vec<Benchmark> {
    let [two, one] =
        by_one_and_two("HotKey_VSA_FastPath", "taking 1 from a striped quota", striped, |counter, _| {
            counter.take(1)
        });
    let mut all = vec![two.also(["HotKey_VSA_FastPath_PerP"]), one];
    all.extend(by_one_and_two(
        "HotKey_VSA_After",
        "taking 1 from a quota that is cold at first",
        quota,
        |counter, _| counter.take(1),
    ));
    all.extend(by_one_and_two(
        "HotKey_Atomic",
        "taking 1 from a word, if it has it",
        || Word::new(LIMIT),
        |word, _| word.take(1),
    ));
    all.extend(by_one_and_two(
        "HotKey_VSA_BeforeScan",
        "taking 1 from eight parts that are added up under a lock",
        || Scanned::new(LIMIT),
        |scanned, number| scanned.take(1, number as usize),
    ));
    all
}
