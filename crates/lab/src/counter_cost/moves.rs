//! Moves of one counter.

use super::threads::by_one_and_two;
use crate::micro::benchmark::{Benchmark, each};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tidemark_counter::{Counter, Kind, Promise};

/// Commits are not measured: the cap is out of reach.
const PROMISE: Promise = Promise::Relaxed { cap: 1 << 60 };
const LIMIT: i64 = 1 << 50;
/// Operations between two commits, in rows with commits.
const COMMIT_EVERY: u64 = 1_024;

pub(super) fn plain() -> Counter {
    Counter::new(Kind::Plain, PROMISE, 0)
}

pub(super) fn quota() -> Counter {
    Counter::new(Kind::Quota { limit: LIMIT }, PROMISE, 0)
}

/// Returns a quota in its striped form, which contention causes.
pub(super) fn striped() -> Counter {
    let counter = quota();
    counter.stripe();
    counter
}

pub(super) fn rows() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new(
            "CounterOps.VSA_Update_Uncontended",
            "adding 1 to a cold counter, by one thread",
            |_| {
                let counter = plain();
                each(move |_| counter.add(1))
            },
        )
        .at_most(5.0)
        .in_summary()
        .also(["Update_HotKey"]),
        Benchmark::new("CounterOps.Update_striped", "adding 1 to a striped counter, by one thread", |_| {
            let counter = plain();
            counter.stripe();
            each(move |_| counter.add(1))
        })
        .at_most(1.5)
        .in_summary(),
        Benchmark::new("CounterOps.TryConsume_HotKey", "taking 1 from a cold quota, by one thread", |_| {
            let counter = quota();
            each(move |_| counter.take(1))
        })
        .at_most(7.0)
        .in_summary(),
        Benchmark::new(
            "CounterOps.TryConsume_striped",
            "taking 1 from a striped quota, by one thread",
            |_| {
                let counter = striped();
                each(move |_| counter.take(1))
            },
        )
        .at_most(2.0)
        .in_summary(),
    ];
    all.extend(by_one_and_two("VSA_Update_Concurrent", "adding 1 to a counter", plain, |counter, _| {
        counter.add(1)
    }));
    all.extend(by_one_and_two(
        "AtomicAdd",
        "adding 1 to a word",
        || AtomicI64::new(0),
        |word, _| word.fetch_add(1, Relaxed),
    ));
    all.extend(by_one_and_two(
        "VSA_TryConsume_Concurrent_Success",
        "taking 1 from a quota that always has it",
        quota,
        |counter, _| counter.take(1),
    ));
    all.extend(by_one_and_two(
        "VSA_ConsumeRefund_Concurrent",
        "taking 1 from a quota and giving it back, both together",
        quota,
        |counter, _| (counter.take(1), counter.refund(1)),
    ));
    all.extend(by_one_and_two(
        "VSA_CheckCommitCommit_Concurrent",
        "adding 1 to a counter, which every 1,024th time is sealed and acknowledged, unless another thread is at it",
        || (plain(), Mutex::new(())),
        |(counter, committer), number| {
            let moved = counter.add(1);
            if number % COMMIT_EVERY == 0
                && let Ok(_one) = committer.try_lock()
                && counter.seal().is_some()
            {
                counter.acknowledge();
            }
            moved
        },
    ));
    all
}
