//! Threads that move counters concurrently, compared with a ledger of the answers they received.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use tidemark_counter::{Counter, Kind, Promise, Refusal};

/// Small numbers for each thread without a source of randomness.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Takes of any sizes until nothing is left: the units granted are exactly the limit, if some
/// thread always wants one.
#[test]
fn a_quota_is_granted_to_the_last_unit_and_no_further() {
    for round in 0..200u64 {
        let limit = 1 + (round * 37) % 5_000;
        let counter = Counter::new(Kind::Quota { limit: limit as i64 }, Promise::Relaxed { cap: 1 << 40 }, 0);
        if round % 3 != 0 {
            counter.stripe();
        }
        let together = Barrier::new(4);
        let granted: u64 = thread::scope(|threads| {
            let threads: Vec<_> = (0..4u64)
                .map(|thread| {
                    let (counter, together) = (&counter, &together);
                    threads.spawn(move || {
                        let mut dice = Dice(round << 8 | thread);
                        let mut granted = 0;
                        together.wait();
                        loop {
                            let amount = 1 + dice.roll(7);
                            if counter.take(amount).is_ok() {
                                granted += amount;
                            } else if counter.take(1).is_ok() {
                                granted += 1;
                            } else {
                                break granted;
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(granted, limit);
        assert_eq!(counter.available(), Some(0));
        assert_eq!(counter.take(1), Err(Refusal::Exhausted));
    }
}

/// The units held are never above the limit, by an account that counts a take after it and a refund
/// before it.
#[test]
fn churn_at_the_limit_never_admits_more_than_it() {
    for is_striped in [false, true] {
        let limit = 50;
        let counter = Counter::new(Kind::Quota { limit }, Promise::Relaxed { cap: 1 << 40 }, 0);
        if is_striped {
            counter.stripe();
        }
        let (held, refused) = (AtomicI64::new(0), AtomicU64::new(0));
        thread::scope(|threads| {
            for thread in 0..8u64 {
                let (counter, held, refused) = (&counter, &held, &refused);
                threads.spawn(move || {
                    let (mut dice, mut mine) = (Dice(thread), 0u64);
                    for _ in 0..30_000 {
                        if dice.roll(2) == 0 {
                            let amount = 1 + dice.roll(5);
                            if counter.take(amount).is_ok() {
                                assert!(
                                    held.fetch_add(amount as i64, Ordering::SeqCst) + amount as i64 <= limit
                                );
                                mine += amount;
                            } else {
                                refused.fetch_add(1, Ordering::Relaxed);
                            }
                        } else if mine > 0 {
                            let amount = 1 + dice.roll(mine.min(5));
                            held.fetch_sub(amount as i64, Ordering::SeqCst);
                            assert_eq!(counter.refund(amount), Ok(amount));
                            mine -= amount;
                        }
                    }
                    held.fetch_sub(mine as i64, Ordering::SeqCst);
                    assert_eq!(counter.refund(mine), Ok(mine));
                });
            }
        });
        assert!(refused.load(Ordering::Relaxed) > 0, "the limit was reached");
        assert_eq!((counter.position(), counter.available()), (0, Some(limit)));
    }
}

/// Commits run while threads move: what is stored is never further from the truth than the cap, and
/// in the end it is the truth.
#[test]
fn commits_in_the_middle_lose_and_double_nothing() {
    for (is_striped, promise) in [
        (false, Promise::Relaxed { cap: 100 }),
        (true, Promise::Relaxed { cap: 100 }),
        (false, Promise::Exact { block: 64 }),
        (true, Promise::Exact { block: 64 }),
    ] {
        let counter = Counter::new(Kind::Quota { limit: 100_000 }, promise, 0);
        if is_striped {
            counter.stripe();
        }
        let (stored, truth, is_over) = (AtomicI64::new(0), AtomicI64::new(0), AtomicBool::new(false));
        let commit = |delta: i64| {
            if let Some(sealed) = counter.seal_for(delta) {
                stored.fetch_add(sealed, Ordering::SeqCst);
                counter.acknowledge();
            }
            let books = counter.books();
            let (ahead, behind) = promise.slack();
            assert!(books.uncommitted() <= ahead.max(behind), "{books:?}");
        };
        // One commit at a time, as with a writer.
        let committing = std::sync::Mutex::new(());
        thread::scope(|threads| {
            let movers: Vec<_> = (0..4u64)
                .map(|thread| {
                    let (counter, truth, commit, committing) = (&counter, &truth, &commit, &committing);
                    threads.spawn(move || {
                        let mut dice = Dice(77 + thread);
                        for _ in 0..20_000 {
                            let amount = 1 + dice.roll(9) as i64;
                            let delta = if dice.roll(5) < 3 { amount } else { -amount };
                            loop {
                                let answer = match delta {
                                    1.. => counter.take(delta.unsigned_abs()).map(|()| delta),
                                    _ => counter.refund(delta.unsigned_abs()).map(|units| -(units as i64)),
                                };
                                match answer {
                                    Ok(moved) => {
                                        truth.fetch_add(moved, Ordering::SeqCst);
                                        break;
                                    }
                                    Err(Refusal::Unsettled) => {
                                        let _one = committing.lock().unwrap();
                                        commit(delta);
                                    }
                                    Err(_) => break,
                                }
                            }
                        }
                    })
                })
                .collect();
            threads.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    {
                        let _one = committing.lock().unwrap();
                        commit(0);
                    }
                    thread::yield_now();
                }
            });
            movers.into_iter().for_each(|mover| mover.join().unwrap());
            is_over.store(true, Ordering::SeqCst);
        });
        if let Some(sealed) = counter.seal() {
            stored.fetch_add(sealed, Ordering::SeqCst);
            counter.acknowledge();
        }
        assert_eq!(stored.load(Ordering::SeqCst), truth.load(Ordering::SeqCst));
        assert_eq!(counter.books().durable(), truth.load(Ordering::SeqCst));
    }
}

/// While threads only take, and commits and changes of form run, no reader ever sees more left than
/// before, and each thread sees its own takes.
#[test]
fn what_is_left_never_grows_while_there_are_only_takes() {
    for is_striped in [false, true] {
        let counter = Counter::new(Kind::Quota { limit: 40_000 }, Promise::Relaxed { cap: 700 }, 0);
        if is_striped {
            counter.stripe();
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    let mut last = counter.state();
                    while !is_over.load(Ordering::Relaxed) {
                        let state = counter.state();
                        assert!(state.position() >= last.position(), "{state:?} behind {last:?}");
                        assert!(state.durable() >= last.durable(), "{state:?} behind {last:?}");
                        assert_eq!(state.available(), Some(40_000 - state.position()));
                        last = state;
                    }
                });
            }
            let takers: Vec<_> = (0..2)
                .map(|_| {
                    threads.spawn(|| {
                        let mut mine = 0;
                        loop {
                            match counter.take(1) {
                                Ok(()) => mine += 1,
                                Err(Refusal::Unsettled) if counter.seal().is_some() => counter.acknowledge(),
                                Err(Refusal::Unsettled) => thread::yield_now(),
                                Err(refusal) => break assert_eq!(refusal, Refusal::Exhausted),
                            }
                            assert!(counter.position() >= mine);
                        }
                    })
                })
                .collect();
            takers.into_iter().for_each(|taker| taker.join().unwrap());
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(counter.state(), counter.books());
        assert_eq!(counter.available(), Some(0));
    }
}

/// More threads than there are cells start and end: their cells' shares are not lost.
#[test]
fn threads_that_end_leave_nothing_behind() {
    let counter = Counter::new(Kind::Quota { limit: 100_000 }, Promise::Relaxed { cap: 1 << 40 }, 0);
    counter.stripe();
    for _ in 0..5 {
        thread::scope(|threads| {
            for _ in 0..100 {
                threads.spawn(|| (0..200).for_each(|_| counter.take(1).unwrap()));
            }
        });
    }
    assert_eq!(counter.available(), Some(0));
    assert_eq!(counter.take(1), Err(Refusal::Exhausted));
    assert_eq!(counter.refund(u64::MAX >> 2), Ok(100_000));
    assert_eq!(counter.available(), Some(100_000));
}

/// A limit that changes under traffic: the units held never exceed the highest limit, and after the
/// last change only the last limit counts.
#[test]
fn a_limit_can_be_changed_under_traffic() {
    let counter = Counter::new(Kind::Quota { limit: 1000 }, Promise::Relaxed { cap: 1 << 40 }, 0);
    counter.stripe();
    thread::scope(|threads| {
        for thread in 0..4u64 {
            let counter = &counter;
            threads.spawn(move || {
                let mut dice = Dice(thread);
                let mut mine = 0;
                for _ in 0..50_000 {
                    if dice.roll(2) == 0 {
                        mine += u64::from(counter.take(1).is_ok());
                    } else if mine > 0 {
                        assert_eq!(counter.refund(1), Ok(1));
                        mine -= 1;
                    }
                    assert!(counter.position() <= 1000 + 4);
                }
            });
        }
        for limit in (0..500).map(|round| (round * 77) % 1000) {
            counter.set_kind(Kind::Quota { limit });
            thread::yield_now();
        }
        counter.set_kind(Kind::Quota { limit: 10 });
    });
    let position = counter.position();
    let answer = counter.take(1);
    assert_eq!(answer.is_ok(), position < 10, "{position}");
}

#[test]
fn an_alarm_is_not_missed() {
    for is_striped in [false, true] {
        let counter = Counter::new(Kind::Plain, Promise::Relaxed { cap: 1000 }, 0);
        counter.set_alarm(64);
        if is_striped {
            counter.stripe();
        }
        let at = (1..=1000).find(|_| {
            counter.add(1).unwrap();
            counter.is_due()
        });
        assert_eq!(at, Some(64));
        assert_eq!(counter.seal(), Some(64));
        counter.acknowledge();
        assert!(!counter.is_due());
    }
}

#[test]
fn a_cold_counter_is_small() {
    assert_eq!(size_of::<Counter>(), 40);
    // However much it may move without a commit.
    for units in [1, 1 << 30, 10_000_000_000, 1 << 50, u64::MAX] {
        for promise in [Promise::Relaxed { cap: units }, Promise::Exact { block: units }] {
            let counter = Counter::new(Kind::Quota { limit: 1 << 60 }, promise, 1 << 40);
            assert!(!counter.is_striped());
            assert_eq!(counter.promise(), promise);
        }
    }
}
