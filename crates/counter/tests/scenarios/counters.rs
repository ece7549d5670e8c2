//! Named counters through their public interface.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tidemark_counter::counters::{Counters, Error, Options, Settings};
use tidemark_counter::store::{self, Batch, Claim, Faults, Faulty, Memory, Receipt, Store};
use tidemark_counter::{Kind, MAX, Move, Promise};

const LONG: Duration = Duration::from_hours(1);
const LIKES: Settings = Settings {
    kind: Kind::Plain,
    promise: Promise::Relaxed { cap: 1_000 },
    high: 500,
    low: 100,
    max_age: LONG,
};

fn options(settings: Settings) -> Options {
    Options {
        writer: "w".into(),
        settings: Arc::new(move |_| settings),
        patience: Duration::from_mins(1),
        ..Options::default()
    }
}

fn quota(limit: i64, promise: Promise) -> Settings {
    Settings { kind: Kind::Quota { limit }, promise, ..LIKES }
}

fn stored(store: &Memory, name: &[u8]) -> i64 {
    store.clone().load(&[name]).unwrap()[0].unwrap_or(0)
}

fn faulty(memory: &Memory) -> Arc<Mutex<Faulty<Memory>>> {
    Arc::new(Mutex::new(Faulty::new(memory.clone(), Faults::default(), 7)))
}

/// Sets the faults of a store that is in use.
fn set_faults(store: &Mutex<Faulty<Memory>>, faults: Faults) {
    store.lock().unwrap().set_faults(faults);
}

const DOWN: Faults = Faults { lost_requests: 100, lost_answers: 0, refusals: 0 };

#[test]
fn what_is_closed_is_there_when_it_is_opened_again() {
    let store = Memory::default();
    let settings = quota(1_000, Promise::Relaxed { cap: 100 });
    let counters = Counters::open(store.clone(), options(settings)).unwrap();
    (0..1_000).for_each(|_| counters.take(b"tenant:1", 1).unwrap());
    assert_eq!(counters.refund(b"tenant:1", 3), Ok(3));
    counters.close().unwrap();
    assert_eq!(stored(&store, b"tenant:1"), 997);
    assert_eq!(counters.take(b"tenant:1", 1), Err(Error::Closed));
    assert_eq!(counters.get(b"tenant:2").err(), Some(Error::Closed));
    drop(counters);

    let counters = Counters::open(store, options(settings)).unwrap();
    assert_eq!(counters.available(b"tenant:1"), Ok(Some(3)));
    assert_eq!(counters.take(b"tenant:1", 4), Err(Error::Exhausted));
    assert_eq!(counters.refund(b"tenant:1", 2_000), Ok(997));
}

#[test]
fn dropping_commits_what_is_uncommitted() {
    let store = Memory::default();
    let counters = Counters::open(store.clone(), options(LIKES)).unwrap();
    counters.add(b"likes", 7).unwrap();
    counters.add(b"other", -2).unwrap();
    assert_eq!(stored(&store, b"likes"), 0);
    drop(counters);
    assert_eq!((stored(&store, b"likes"), stored(&store, b"other")), (7, -2));
}

#[test]
fn moves_that_were_admitted_while_others_close_are_committed() {
    for _ in 0..20 {
        let store = Memory::default();
        let counters = Counters::open(store.clone(), options(LIKES)).unwrap();
        let admitted = AtomicI64::new(0);
        thread::scope(|threads| {
            for thread in 0..3 {
                let (counters, admitted) = (&counters, &admitted);
                let handle = counters.get(b"likes").unwrap();
                threads.spawn(move || {
                    loop {
                        let moved = if thread == 0 { handle.add(1) } else { counters.add(b"likes", 1) };
                        match moved {
                            Ok(()) => admitted.fetch_add(1, Ordering::Relaxed),
                            Err(error) => return assert_eq!(error, Error::Closed),
                        };
                    }
                });
            }
            while admitted.load(Ordering::Relaxed) < 2_000 {
                thread::yield_now();
            }
            counters.close().unwrap();
        });
        assert_eq!(stored(&store, b"likes"), admitted.into_inner());
    }
}

#[test]
fn a_counter_is_committed_when_it_has_reached_its_threshold() {
    let store = Memory::default();
    let counters = Counters::open(store.clone(), options(Settings { low: u64::MAX, ..LIKES })).unwrap();
    counters.add(b"likes", 499).unwrap();
    counters.add(b"likes", 1).unwrap();
    // No other trigger would commit it for an hour.
    while stored(&store, b"likes") < 500 {
        thread::yield_now();
    }
    assert_eq!(counters.metrics().keys, 1);
    for round in 2..10 {
        counters.add(b"likes", 500).unwrap();
        while stored(&store, b"likes") < 500 * round {
            thread::yield_now();
        }
    }
}

#[test]
fn a_counter_below_its_thresholds_is_committed_at_its_age() {
    let store = Memory::default();
    let settings = Settings { max_age: Duration::from_millis(20), ..LIKES };
    let counters = Counters::open(store.clone(), options(settings)).unwrap();
    counters.add(b"likes", 3).unwrap();
    while stored(&store, b"likes") < 3 {
        thread::yield_now();
    }
    while counters.metrics().dirty > 0 {
        thread::yield_now();
    }
    assert_eq!(counters.exposure().unwrap().units, 0);
}

#[test]
fn a_store_that_does_not_answer_stops_no_caller_before_the_cap() {
    let memory = Memory::default();
    let store = faulty(&memory);
    let options = Options { patience: Duration::from_millis(50), ..options(LIKES) };
    let counters = Counters::open(store.clone(), options).unwrap();
    // On a busy machine the commit thread may take longer than this short patience.
    while counters.add(b"likes", 1).is_err() {}
    set_faults(&store, DOWN);
    (0..999).for_each(|_| counters.add(b"likes", 1).unwrap());
    let error = counters.add(b"likes", 1).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(matches!(counters.get(b"another"), Err(Error::Unavailable { .. })));
    assert_eq!(counters.state(b"likes").unwrap().position(), 1_000);
    assert_eq!(counters.exposure().unwrap().units, 1_000);
    set_faults(&store, Faults::default());
    // A caller may have to wait for the store's next try, more than once.
    while counters.add(b"likes", 1).is_err() {}
    while counters.flush().is_err() {}
    assert_eq!(stored(&memory, b"likes"), 1_001);
    while counters.get(b"another").is_err() {}
    assert_eq!(counters.state(b"another").unwrap().position(), 0);
}

#[test]
fn a_crash_never_lets_an_exact_quota_admit_more_than_its_limit() {
    let memory = Memory::default();
    let settings = quota(1_000, Promise::Exact { block: 50 });
    let mut admitted = 0;
    for _ in 0..20 {
        let counters = Counters::open(memory.clone(), options(settings)).unwrap();
        for _ in 0..60 {
            admitted += i64::from(counters.take(b"tenant", 1).is_ok());
            assert!(stored(&memory, b"tenant") >= admitted);
        }
        // Like a crash: nothing is committed any more, because another writer owns the name.
        std::mem::forget(counters);
    }
    assert!((500..=1_000).contains(&admitted), "{admitted}");
}

#[test]
fn an_exact_refund_of_more_than_a_block_is_stored_before_it_is_acknowledged() {
    let memory = Memory::default();
    let settings = quota(10_000, Promise::Exact { block: 50 });
    let counters = Counters::open(memory.clone(), options(settings)).unwrap();
    counters.take(b"tenant", 5_000).unwrap();
    counters.flush().unwrap();
    assert_eq!(counters.refund(b"tenant", 4_000), Ok(4_000));
    let stored = stored(&memory, b"tenant");
    assert!((1_000..=1_050).contains(&stored), "{stored}");
    let tenant = counters.get(b"tenant").unwrap();
    assert_eq!(tenant.refund(5_000), Ok(1_000));
    assert!(self::stored(&memory, b"tenant") <= 50);
}

#[test]
fn opening_under_a_name_fences_its_former_owner() {
    let memory = Memory::default();
    let old = Counters::open(memory.clone(), options(LIKES)).unwrap();
    let handle = old.get(b"likes").unwrap();
    handle.add(10).unwrap();
    old.flush().unwrap();
    handle.add(5).unwrap();
    let new = Counters::open(memory.clone(), options(LIKES)).unwrap();
    new.add(b"likes", 100).unwrap();
    new.flush().unwrap();
    let fenced = Error::Fenced { writer: "w".into(), epoch: 2 };
    assert_eq!(old.flush(), Err(fenced.clone()));
    assert_eq!(handle.add(1), Err(fenced.clone()));
    assert_eq!(old.add(b"another", 1), Err(fenced.clone()));
    assert_eq!(old.close(), Err(fenced));
    assert_eq!(stored(&memory, b"likes"), 110);
    // The new writer is not disturbed.
    new.add(b"likes", 1).unwrap();
    new.close().unwrap();
    assert_eq!(stored(&memory, b"likes"), 111);
}

#[test]
fn a_handle_that_is_kept_across_an_eviction_loses_nothing() {
    let memory = Memory::default();
    let counters = Counters::open(memory.clone(), options(LIKES)).unwrap();
    let handle = counters.get(b"likes").unwrap();
    handle.add(10).unwrap();
    counters.add(b"other", 1).unwrap();
    assert_eq!(counters.evict_idle(), Ok(0));
    counters.flush().unwrap();
    assert_eq!(counters.evict_idle(), Ok(1));
    handle.add(500).unwrap();
    // A lookup by name returns the same counter.
    counters.add(b"likes", 1).unwrap();
    assert_eq!(handle.position(), 511);
    drop(handle);
    counters.flush().unwrap();
    assert_eq!(stored(&memory, b"likes"), 511);
    assert_eq!(counters.evict_idle(), Ok(1));
    assert_eq!(counters.metrics().keys, 0);
    counters.add(b"likes", 1).unwrap();
    assert_eq!(counters.state(b"likes").unwrap().position(), 512);
    assert_eq!(counters.metrics().loads, 3);
}

#[test]
fn a_commit_whose_answer_is_lost_is_not_made_again_by_an_eviction() {
    let memory = Memory::default();
    let store = faulty(&memory);
    let counters = Counters::open(store.clone(), options(LIKES)).unwrap();
    counters.add(b"likes", 100).unwrap();
    set_faults(&store, Faults { lost_answers: 100, ..Faults::default() });
    thread::scope(|threads| {
        threads.spawn(|| counters.flush().unwrap());
        while stored(&memory, b"likes") == 0 {
            thread::yield_now();
        }
        assert_eq!(counters.evict_idle(), Ok(0));
        set_faults(&store, Faults::default());
    });
    assert_eq!(counters.evict_idle(), Ok(1));
    assert_eq!(counters.state(b"likes").unwrap().position(), 100);
    counters.close().unwrap();
    assert_eq!(stored(&memory, b"likes"), 100);
}

#[test]
fn evictions_lose_nothing_of_what_goes_on_at_the_same_time() {
    const NAMES: usize = 20;
    let memory = Memory::default();
    let store = faulty(&memory);
    set_faults(&store, Faults { lost_answers: 10, lost_requests: 10, refusals: 0 });
    let options = Options { backoff: (Duration::ZERO, Duration::from_millis(1)), ..options(LIKES) };
    let counters = loop {
        if let Ok(counters) = Counters::open(store.clone(), options.clone()) {
            break counters;
        }
    };
    let is_over = AtomicBool::new(false);
    let sums: Vec<AtomicI64> = (0..NAMES).map(|_| AtomicI64::new(0)).collect();
    thread::scope(|threads| {
        let movers: Vec<_> = (0..3_usize)
            .map(|thread| {
                let (counters, sums) = (&counters, &sums);
                threads.spawn(move || {
                    for step in 0_usize.. {
                        // Enough steps for evictions to have happened.
                        if step >= 20_000 && counters.metrics().evictions > 0 {
                            return;
                        }
                        if step % 100 == 0 {
                            thread::yield_now();
                        }
                        let at = step * (thread + 1) % NAMES;
                        let name = format!("likes:{at}");
                        let delta = (step % 7) as i64 - 2;
                        match step % 50 {
                            0 => counters.get(name.as_bytes()).unwrap().add(delta).unwrap(),
                            _ => counters.add(name.as_bytes(), delta).unwrap(),
                        }
                        sums[at].fetch_add(delta, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                counters.flush().unwrap();
                counters.evict_idle().unwrap();
            }
        });
        movers.into_iter().for_each(|mover| mover.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    set_faults(&store, Faults::default());
    counters.close().unwrap();
    for (at, sum) in sums.iter().enumerate() {
        assert_eq!(stored(&memory, format!("likes:{at}").as_bytes()), sum.load(Ordering::Relaxed));
    }
}

#[test]
fn a_new_name_evicts_an_unused_one() {
    let memory = Memory::default();
    let options = Options { max_keys: 10, ..options(LIKES) };
    let counters = Counters::open(memory.clone(), options).unwrap();
    // All of them are dirty, so each is committed before it is evicted.
    for number in 0..100_i64 {
        counters.add(number.to_string().as_bytes(), number + 1).unwrap();
        assert!(counters.metrics().keys <= 10);
    }
    counters.flush().unwrap();
    assert!((0..100_i64).all(|number| stored(&memory, number.to_string().as_bytes()) == number + 1));

    let held: Vec<_> =
        (0..10).map(|number| counters.get(format!("held{number}").as_bytes()).unwrap()).collect();
    assert_eq!(counters.add(b"one more", 1), Err(Error::Full { max_keys: 10 }));
    drop(held);
    counters.add(b"one more", 1).unwrap();
}

#[test]
fn an_idle_counter_is_put_away_and_one_that_is_used_is_not() {
    let idle = Some(Duration::from_millis(300));
    let counters = Counters::open(Memory::default(), Options { idle, ..options(LIKES) }).unwrap();
    counters.available(b"idle").unwrap();
    counters.set_limit(b"its own", 5).unwrap();
    while counters.metrics().evictions == 0 {
        thread::yield_now();
    }
    assert_eq!(counters.metrics().evictions, 1);
    assert_eq!(counters.available(b"its own"), Ok(Some(5)));
    assert_eq!(counters.metrics().loads, 2);
}

#[test]
fn limits_and_promises_change_while_a_counter_is_in_use() {
    let memory = Memory::default();
    let settings = quota(10, Promise::Relaxed { cap: 100 });
    let counters = Counters::open(memory.clone(), options(settings)).unwrap();
    let tenant = counters.get(b"tenant").unwrap();
    tenant.take(10).unwrap();
    assert_eq!(tenant.take(1), Err(Error::Exhausted));
    tenant.set_limit(11).unwrap();
    tenant.take(1).unwrap();
    tenant.set_limit(5).unwrap();
    assert_eq!((tenant.available(), tenant.take(1)), (Some(0), Err(Error::Exhausted)));
    assert_eq!(stored(&memory, b"tenant"), 0);
    tenant.set_settings(quota(20, Promise::Exact { block: 4 })).unwrap();
    assert!(stored(&memory, b"tenant") >= 11);
    tenant.take(1).unwrap();
    assert!(stored(&memory, b"tenant") >= 12);
    counters.refresh(b"tenant").unwrap();
    assert_eq!(tenant.take(1), Err(Error::Exhausted));
}

#[test]
fn names_and_amounts_beyond_their_ranges_are_errors() {
    let options = Options { max_name: 4, ..options(LIKES) };
    let counters = Counters::open(Memory::default(), options).unwrap();
    assert_eq!(counters.add(b"", 1), Ok(()));
    assert_eq!(counters.add(b"12345", 1), Err(Error::NameTooLong { length: 5, max_name: 4 }));
    assert_eq!(counters.take(b"a", u64::MAX), Err(Error::OutOfRange));
    assert_eq!(counters.add(b"a", i64::MIN), Err(Error::OutOfRange));
    assert_eq!(counters.add(b"a", tidemark_counter::MAX), Ok(()));
    assert_eq!(counters.add(b"a", 1), Err(Error::OutOfRange));
    counters.close().unwrap();
}

/// A store that panics when it commits.
struct Panicking(Memory);

impl Store for Panicking {
    fn claim(&mut self, writer: &str) -> Result<Claim, store::Error> {
        self.0.claim(writer)
    }

    fn commit(&mut self, _batch: &Batch) -> Result<Receipt, store::Error> {
        panic!("as the test wants it")
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, store::Error> {
        self.0.load(keys)
    }
}

#[test]
fn a_store_that_panics_is_an_error_for_all_waiting_callers() {
    let counters = Counters::open(Panicking(Memory::default()), options(LIKES)).unwrap();
    counters.add(b"likes", 1).unwrap();
    assert!(matches!(counters.flush(), Err(Error::Broken { .. })));
    assert!(matches!(counters.add(b"likes", 1), Err(Error::Broken { .. })));
    assert!(matches!(counters.close(), Err(Error::Broken { .. })));
}

#[test]
fn threads_that_wait_for_commits_share_them() {
    let memory = Memory::default();
    let settings = quota(100_000, Promise::Exact { block: 100 });
    let counters = Counters::open(memory.clone(), options(settings)).unwrap();
    thread::scope(|threads| {
        for thread in 0..4 {
            let counters = &counters;
            threads.spawn(move || {
                (0..5_000).for_each(|_| counters.take(b"hot", 1).unwrap());
                (0..500).for_each(|step| counters.take(format!("{thread}:{step}").as_bytes(), 1).unwrap());
            });
        }
    });
    assert_eq!(counters.available(b"hot"), Ok(Some(80_000)));
    counters.close().unwrap();
    assert_eq!(stored(&memory, b"hot"), 20_000);
}

/// A refund beyond the block is made before it is stored; whatever the store does, no answer says
/// that it was not made.
#[test]
fn a_move_that_was_made_is_never_called_one_that_was_not() {
    let memory = Memory::default();
    let settings = quota(100, Promise::Exact { block: 10 });
    let counters = Counters::open(memory.clone(), options(settings)).unwrap();
    counters.take(b"seats", 50).unwrap();
    counters.take(b"tables", 50).unwrap();
    counters.close().unwrap();

    let store = faulty(&memory);
    let counters = Counters::open(store.clone(), options(settings)).unwrap();
    let available =
        |counters: &Counters| [b"seats".as_slice(), b"tables"].map(|name| counters.available(name));
    assert_eq!(available(&counters), [Ok(Some(50)), Ok(Some(50))]);
    set_faults(&store, Faults { refusals: 100, ..Faults::default() });
    let answer = counters.refund(b"seats", 25);
    assert!(matches!(&answer, Err(Error::Unstored { .. })), "{answer:?}");

    let answer = counters.batch_all(&[(b"tables", Move::Refund(20)), (b"tables", Move::Refund(5))]);
    let error = answer.unwrap_err();
    assert!(matches!(&error.error, Error::Unstored { .. }), "{error:?}");
    assert!(error.to_string().starts_with("of 2 moves all were made and not all are stored"), "{error}");

    assert_eq!(available(&counters), [Ok(Some(75)), Ok(Some(75))]);

    set_faults(&store, Faults::default());
    counters.close().unwrap();
    assert_eq!((stored(&memory, b"seats"), stored(&memory, b"tables")), (25, 25));
}

#[test]
fn what_moves_further_than_any_promise_reaches_is_out_of_range_in_a_batch() {
    let counters = Counters::open(Memory::default(), options(LIKES)).unwrap();
    counters.add(b"likes", 10).unwrap();
    counters.commit(b"likes").unwrap();
    let error = counters.batch_all(&[(b"likes", Move::Add(-(MAX + 5)))]).unwrap_err();
    assert_eq!(error.error, Error::OutOfRange);
}

#[test]
fn a_patience_without_end_is_one() {
    let memory = Memory::default();
    let settings = quota(100, Promise::Exact { block: 10 });
    let options = Options { patience: Duration::MAX, ..options(settings) };
    let counters = Counters::open(memory.clone(), options).unwrap();
    counters.take(b"tenant", 50).unwrap();
    assert_eq!(counters.refund(b"tenant", 40), Ok(40));
    counters.close().unwrap();
    assert_eq!(stored(&memory, b"tenant"), 10);
}
