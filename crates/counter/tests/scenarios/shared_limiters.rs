//! Limiters that threads share, and several limiters for one request.

use proptest::prelude::*;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tidemark_counter::limiter::{
    Ask, FixedWindow, Gcra, LeakyBucket, Limiter, Lock, Monotonic, Rate, Request, Shared, SharedGcra,
    SlidingLog, Time, Verdict, check_all, check_all_shared,
};

const THREADS: u64 = 4;
const SECOND: Duration = Duration::from_secs(1);

fn per_second(limit: u64, count: u64) -> Gcra {
    Gcra::new(limit, Rate::new(count, SECOND).unwrap()).unwrap()
}

/// Runs the closure in all threads at the same time and concatenates their answers.
fn in_threads<T: Send>(run: impl Fn(u64) -> Vec<T> + Sync) -> Vec<T> {
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        let begin = |thread| {
            barrier.wait();
            run(thread)
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || begin(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn at_one_moment_threads_are_admitted_exactly_the_limit() {
    let rule = per_second(10_000, 7);
    let key = SharedGcra::default();
    let now = Time::from_secs(1000);
    let admitted = in_threads(|thread| {
        let is_allowed = |turn| match (thread + turn) % 2 {
            0 => key.check(&rule, now, 1).is_allowed,
            _ => key.is_allowed(&rule, now, 1),
        };
        (0..10_000).filter(|turn| is_allowed(*turn)).collect()
    });
    assert_eq!(admitted.len(), 10_000);
    assert_eq!(key.peek(&rule, now, 1).remaining, 0);
}

#[test]
fn no_interval_has_more_than_the_rate_whatever_threads_ask() {
    // A thousandth of a second between two units, and a clock that advances by a ten-thousandth at
    // every read.
    let rule = per_second(50, 1000);
    let key = SharedGcra::default();
    let clock = AtomicU64::new(0);
    let mut ledger = in_threads(|thread| {
        let mut admitted = Vec::new();
        for turn in 0..5000 {
            let now = Time::from_micros(clock.fetch_add(100, Ordering::Relaxed));
            let amount = 1 + (thread + turn) % 3;
            if key.check(&rule, now, amount).is_allowed {
                admitted.push((now, amount));
            }
        }
        admitted
    });
    ledger.sort();
    let total: u64 = ledger.iter().map(|(_, amount)| amount).sum();
    assert!(total >= 1900, "2 s at 1000 a second, for a caller that always asks: {total}");
    for first in 0..ledger.len() {
        let mut units = 0;
        for (time, amount) in &ledger[first..] {
            units += amount;
            let length = time.since(ledger[first].0);
            assert!(units <= 50 + length.as_millis() as u64, "{units} in {length:?}");
        }
    }
}

#[test]
fn what_is_refunded_can_be_taken_again() {
    let rule = per_second(8, 1);
    let key = SharedGcra::default();
    let now = Time::from_secs(1000);
    in_threads(|_| {
        for _ in 0..5000 {
            // Eight units for four threads with at most two each: no thread is ever refused.
            assert!(key.is_allowed(&rule, now, 2));
            key.refund(&rule, now, 2);
        }
        Vec::<()>::new()
    });
    assert_eq!(key.peek(&rule, now, 1).remaining, 8);
}

#[test]
fn a_key_goes_on_from_a_state_that_was_stored() {
    let rule = per_second(8, 1);
    let key = SharedGcra::default();
    key.check(&rule, Time::from_secs(1000), 5);
    let again = SharedGcra::new(key.state());
    assert_eq!(again.peek(&rule, Time::from_secs(1001), 1).remaining, 4);
    let other = Shared::with_state(rule, key.state());
    assert_eq!(other.check(Time::from_secs(1001), 4).remaining, 0);
    other.refund(Time::from_secs(1001), 3);
    assert_eq!(other.peek(Time::from_secs(1001), 4).retry_after, Some(SECOND));
}

#[test]
fn the_monotonic_clock_goes_forward() {
    let clock = Monotonic::new();
    let times: Vec<_> = (0..1000).map(|_| clock.now()).collect();
    assert!(times.is_sorted());
}

/// Two keys that threads lock in opposite orders, and one that refuses at times: a deadlock would
/// hang here.
#[test]
fn threads_that_name_limits_in_any_order_count_all_or_none() {
    let now = Time::from_secs(1000);
    let window = |limit| Shared::new(FixedWindow::new(limit, SECOND).unwrap());
    let (tenant, user) = (window(20_000), window(15_000));
    let route = Shared::new(SlidingLog::new(9000, SECOND).unwrap());
    let admitted = in_threads(|thread| {
        let mut admitted = Vec::new();
        for turn in 0..6000 {
            let verdict = match (thread + turn) % 3 {
                0 => check_all_shared(now, [(&tenant, 1), (&user, 1), (&route, 1)]),
                1 => check_all_shared(now, [(&route, 1), (&user, 1), (&tenant, 1)]),
                _ => check_all_shared(now, [(&user, 1), (&tenant, 1)]),
            };
            if verdict.is_allowed() {
                admitted.push((thread + turn) % 3 < 2);
            }
        }
        admitted
    });
    let all = admitted.len() as u64;
    let routed = admitted.iter().filter(|with_route| **with_route).count() as u64;
    assert_eq!((tenant.state().used, user.state().used), (all, all));
    assert_eq!(route.state().iter().map(|entry| entry.units).sum::<u64>(), routed);
    assert_eq!(routed, 9000, "more asked for it than it has");
}

#[test]
fn a_limit_that_is_named_twice_is_asked_for_both_together() {
    let now = Time::from_secs(1000);
    let key = Shared::new(FixedWindow::new(10, SECOND).unwrap());
    assert!(check_all_shared(now, [(&key, 3), (&key, 4)]).is_allowed());
    let refused = check_all_shared(now, [(&key, 2), (&key, 2)]);
    assert_eq!((refused.decisive, refused.retry_after, refused.remaining), (Some(0), Some(SECOND), 3));
    assert_eq!(check_all_shared(now, [(&key, u64::MAX), (&key, 2)]).retry_after, None);
    assert_eq!(key.state().used, 7);
}

#[test]
fn no_limit_allows_everything() {
    assert!(check_all(Time::ZERO, &mut []).is_allowed());
    assert!(check_all_shared(Time::ZERO, []).is_allowed());
}

#[test]
fn the_verdict_says_which_limit_decides() {
    let now = Time::from_secs(1000);
    let (slow, fast) = (per_second(4, 1), per_second(6, 2));
    let (mut of_slow, mut of_fast) = (slow.fresh(), fast.fresh());
    let mut ask = |first, second| {
        let mut first = Request { limiter: &slow, state: &mut of_slow, amount: first };
        let mut second = Request { limiter: &fast, state: &mut of_fast, amount: second };
        check_all(now, &mut [&mut first, &mut second])
    };
    let verdict =
        |decisive, retry_after, remaining| Verdict { decisive: Some(decisive), retry_after, remaining };
    assert_eq!(ask(1, 3), verdict(0, Some(Duration::ZERO), 3), "equals: the first");
    assert_eq!(ask(1, 2), verdict(1, Some(Duration::ZERO), 1));
    assert_eq!(ask(3, 2), verdict(0, Some(SECOND), 1), "one second is longer than half of one");
    assert_eq!(ask(3, 6), verdict(1, Some(SECOND * 5 / 2), 1));
    assert_eq!(ask(5, 7), verdict(0, None, 1), "neither ever: the first");
    assert_eq!(ask(4, 7), verdict(1, None, 1));
    assert_eq!(ask(0, 1), verdict(1, Some(Duration::ZERO), 0), "nothing asked of the first");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The model asks each limiter alone, and restores all at the first refusal; the waits are
    /// compared too.
    #[test]
    fn all_count_or_none_does(
        steps in prop::collection::vec((0..1500_u64, 0..12_u64, 0..12_u64, 0..12_u64), 1..40),
    ) {
        let window = FixedWindow::new(9, SECOND * 2).unwrap();
        let bucket = LeakyBucket::new(10, Rate::new(3, SECOND).unwrap()).unwrap();
        let log = SlidingLog::new(8, SECOND).unwrap();
        let shared = (Shared::new(window.clone()), Shared::new(bucket.clone()), Shared::new(log.clone()));
        let mut states = (window.fresh(), bucket.fresh(), log.fresh());
        let mut now = Time::from_secs(1000);
        for (millis, first, second, third) in steps {
            now = now + Duration::from_millis(millis);
            let mut model = states.clone();
            let single = [
                window.check(&mut model.0, now, first),
                bucket.check(&mut model.1, now, second),
                log.check(&mut model.2, now, third),
            ];
            let is_allowed = single.iter().all(|decision| decision.is_allowed);
            let expected = if is_allowed { model } else { states.clone() };

            let verdict = check_all(now, &mut [
                &mut Request { limiter: &window, state: &mut states.0, amount: first },
                &mut Request { limiter: &bucket, state: &mut states.1, amount: second },
                &mut Request { limiter: &log, state: &mut states.2, amount: third },
            ]);
            prop_assert_eq!(verdict.is_allowed(), is_allowed);
            prop_assert_eq!(&states, &expected);
            let waits = single.map(|decision| decision.retry_after);
            let longest = waits.iter().copied().reduce(|a, b| Some(a?.max(b?))).flatten();
            prop_assert_eq!(verdict.retry_after, longest);
            prop_assert!(is_allowed || waits[verdict.decisive.unwrap()] == longest);
            if let Some(wait) = verdict.retry_after.filter(|wait| !wait.is_zero()) {
                let ask_at = |at| {
                    let mut states = states.clone();
                    let mut requests = (
                        Request { limiter: &window, state: &mut states.0, amount: first },
                        Request { limiter: &bucket, state: &mut states.1, amount: second },
                        Request { limiter: &log, state: &mut states.2, amount: third },
                    );
                    let requests: &mut [&mut dyn Ask] = &mut [&mut requests.0, &mut requests.1, &mut requests.2];
                    check_all(at, requests).is_allowed()
                };
                prop_assert!(ask_at(now + wait));
                prop_assert!(!ask_at(now + wait - Duration::from_nanos(1)));
            }

            let limits: [(&dyn Lock, u64); 3] = [(&shared.0, first), (&shared.1, second), (&shared.2, third)];
            prop_assert_eq!(check_all_shared(now, limits), verdict);
            prop_assert_eq!((shared.0.state(), shared.1.state(), shared.2.state()), states.clone());
        }
    }
}

/// Prints the cost of a check:
/// `cargo test --release -p tidemark-counter --test scenarios cost_of -- --ignored --nocapture`.
#[test]
#[ignore = "it measures, and judges nothing"]
fn cost_of_a_check() {
    const ROUNDS: u32 = 500;
    const CHECKS: u32 = 20_000;
    // The quickest round is the one in which nothing else ran.
    fn report(name: &str, check: impl Fn(Time) -> bool) {
        let round = |round: u32| {
            let clock = Monotonic::new();
            let turns = round * CHECKS..(round + 1) * CHECKS;
            let admitted = turns.filter(|turn| check(Time::from_nanos(u64::from(*turn)))).count();
            assert_eq!(admitted, CHECKS as usize);
            clock.now().as_nanos() as f64 / f64::from(CHECKS)
        };
        let nanos = (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min);
        println!("{name}: {nanos:.2} ns a check");
    }
    let rule = per_second(u64::from(ROUNDS * CHECKS), 1_000_000_000);
    let key = SharedGcra::default();
    report("one word, whether it is allowed", |now| key.is_allowed(&rule, now, 1));
    let key = SharedGcra::default();
    report("one word, all that is to be said", |now| black_box(key.check(&rule, now, 1)).is_allowed);
    let key = Shared::new(rule);
    report("behind a lock", |now| black_box(key.check(now, 1)).is_allowed);
}
