//! Limiters, by one thread and shared by threads.
//!
//! Rows with given time pass it as an argument instead of reading a clock. Each operation is a
//! millisecond later, in which as many units are restored as are taken: all are admitted.

use super::threads::by_one_and_two;
use crate::micro::benchmark::{Benchmark, Work, each};
use std::hint::black_box;
use std::time::Duration;
use tidemark_counter::limiter::{
    Concurrency, FixedWindow, Gcra, Invalid, LeakyBucket, Limiter, Monotonic, Rate, Shared, SharedGcra,
    SlidingLog, SlidingWindow, Time, TokenBucket,
};

const LIMIT: u64 = 1_000;
const PERIOD: Duration = Duration::from_secs(1);
/// Where a clock is read, no request is refused for lack of units: one is restored per nanosecond,
/// and a request takes longer.
const PLENTY: u64 = 1_000_000_000;

/// A rate with a period's units as burst.
fn rate(limit: u64) -> Rate {
    Rate::new(limit, PERIOD).expect("a rate within its range")
}

fn at(number: u64) -> Time {
    Time::from_millis(number)
}

fn alone<L: Limiter + 'static>(name: &str, what: &str, make: fn() -> Result<L, Invalid>) -> Benchmark {
    let measures = format!("asking {what} for a unit at a given time, by one thread that has its state");
    Benchmark::new(format!("CounterOps.Limiter_{name}"), measures, move |_| checking(make()?))
}

fn checking<L: Limiter + 'static>(rule: L) -> anyhow::Result<Work> {
    let mut state = rule.fresh();
    each(move |number| rule.check(&mut state, at(number), black_box(1)).is_allowed)
}

/// A rule, its clock and a key that threads share.
struct Clocked {
    rule: Gcra,
    clock: Monotonic,
    key: SharedGcra,
}

impl Clocked {
    fn new() -> Self {
        let rule = Gcra::new(PLENTY, rate(PLENTY)).expect("a limit within its range");
        Clocked { rule, clock: Monotonic::new(), key: SharedGcra::default() }
    }
}

fn shared(make: fn() -> (Gcra, SharedGcra)) -> [Benchmark; 2] {
    by_one_and_two(
        "Limiter_gcra_shared",
        "asking a cell rate limiter of one shared word for a unit at a given time",
        make,
        |(rule, key), number| key.check(rule, at(number), 1).is_allowed,
    )
}

pub(super) fn rows() -> Vec<Benchmark> {
    let mut all = vec![
        alone("gcra", "a cell rate limiter", || Gcra::new(LIMIT, rate(LIMIT))),
        alone("token_bucket", "a token bucket", || TokenBucket::new(LIMIT, rate(LIMIT))),
        alone("leaky_bucket", "a leaky bucket", || LeakyBucket::new(LIMIT, rate(LIMIT))),
        alone("fixed_window", "a fixed window", || FixedWindow::new(LIMIT, PERIOD)),
        alone("sliding_window", "a sliding window", || SlidingWindow::new(LIMIT, PERIOD)),
        alone("sliding_log", "a log of the last 1,000 grants", || SlidingLog::new(LIMIT, PERIOD)),
        Benchmark::new(
            "CounterOps.Limiter_concurrency",
            "taking a lease among no others and giving it back, both together, by one thread that has the state",
            |_| {
                let (rule, mut leases) = (Concurrency::new(LIMIT, PERIOD)?, Vec::new());
                each(move |number| {
                    let decision = rule.acquire(&mut leases, at(number), number, 1);
                    (decision.is_allowed, rule.release(&mut leases, at(number), number))
                })
            },
        ),
    ];
    let [two, one] =
        shared(|| (Gcra::new(LIMIT, rate(LIMIT)).expect("a limit within its range"), SharedGcra::default()));
    all.extend([two, one.in_summary()]);
    all.extend(by_one_and_two(
        "Limiter_token_bucket_shared",
        "asking a token bucket behind a lock for a unit at a given time",
        || Shared::new(TokenBucket::new(LIMIT, rate(LIMIT)).expect("a limit within its range")),
        |bucket, number| bucket.check(at(number), 1).is_allowed,
    ));
    all.extend(by_one_and_two(
        "Limiter_gcra_clock",
        "reading the clock and asking a cell rate limiter of one shared word whether a unit is to be had",
        Clocked::new,
        |shared, _| shared.key.is_allowed(&shared.rule, shared.clock.now(), 1),
    ));
    #[cfg(feature = "peers")]
    all.extend(by_one_and_two(
        "Limiter_governor",
        "the same of governor's limiter with the same clock",
        || {
            let quota = governor::Quota::per_second(std::num::NonZeroU32::MAX);
            governor::RateLimiter::direct_with_clock(quota, governor::clock::MonotonicClock)
        },
        |limiter, _| limiter.check().is_ok(),
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::{Clocked, FixedWindow, Gcra, LIMIT, Limiter, PERIOD, SlidingLog, TokenBucket, at, rate};

    fn all_are_admitted<L: Limiter>(rule: &L) {
        let mut state = rule.fresh();
        assert!((0..10_000).all(|number| rule.check(&mut state, at(number), 1).is_allowed));
    }

    #[test]
    fn what_is_asked_for_is_there() {
        all_are_admitted(&Gcra::new(LIMIT, rate(LIMIT)).unwrap());
        all_are_admitted(&TokenBucket::new(LIMIT, rate(LIMIT)).unwrap());
        all_are_admitted(&FixedWindow::new(LIMIT, PERIOD).unwrap());
        all_are_admitted(&SlidingLog::new(LIMIT, PERIOD).unwrap());
        let clocked = Clocked::new();
        assert!((0..10_000).all(|_| clocked.key.is_allowed(&clocked.rule, clocked.clock.now(), 1)));
    }
}
