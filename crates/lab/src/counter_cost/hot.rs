//! Takes from one hot key.

use super::moves::{quota, striped};
use super::scanned::Scanned;
use super::threads::{OPERATIONS, by_one_and_two};
use crate::baseline::Atomic;
use crate::micro::benchmark::{Benchmark, each};
use crate::micro::threads::together;
use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

const LIMIT: i64 = 1 << 50;
/// Numbers of concurrent threads: each that has a slot of its own has a stripe.
const THREADS: [u64; 5] = [2, 4, 8, 16, 32];

/// A word per thread, in a cache line of its own.
#[repr(align(128))]
struct OwnWord(AtomicI64);

struct OwnWords(Box<[OwnWord; WORDS]>);

/// A power of two.
const WORDS: usize = 64;

thread_local! {
    static PLACE: Cell<u8> = const { Cell::new(0) };
}

impl OwnWords {
    fn new() -> Self {
        Self(Box::new(array::from_fn(|_| OwnWord(AtomicI64::new(0)))))
    }

    #[inline]
    fn add(&self, amount: i64) {
        let word = &self.0[usize::from(PLACE.get()) % WORDS].0;
        word.store(word.load(Relaxed) + amount, Relaxed);
    }
}

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
    all.extend([two.in_summary(), one.in_summary()]);
    all.push(
        Benchmark::new(
            "CounterOps.Own_word",
            "adding 1 to the calling thread's own word among others, by a load and a store, which is the least that a counter in parts can cost",
            |_| {
                let words = OwnWords::new();
                each(move |_| words.add(1))
            },
        )
        .in_summary(),
    );
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
            move |_| together(threads, OPERATIONS, striped(), |counter, _| counter.take(1)),
        )
    }));
    all
}
