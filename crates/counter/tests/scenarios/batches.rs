//! Several moves in one call, and partial commits, through the public interface of named counters.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tidemark_counter::counters::{BatchError, Counters, Error, MAX_TOGETHER, Options, Settings};
use tidemark_counter::store::{Faults, Faulty, Memory, Store};
use tidemark_counter::{Kind, Move, Promise};

const SETTINGS: Settings = Settings {
    kind: Kind::Plain,
    promise: Promise::Relaxed { cap: 1_000 },
    high: 500,
    low: 400,
    max_age: Duration::from_hours(1),
};

/// Names that begin with `q` are quotas of 100; names that begin with `x` are exact, with blocks of
/// 10.
fn settings(name: &[u8]) -> Settings {
    match name.first() {
        Some(b'q') => Settings { kind: Kind::Quota { limit: 100 }, ..SETTINGS },
        Some(b'x') => {
            Settings { kind: Kind::Quota { limit: 100 }, promise: Promise::Exact { block: 10 }, ..SETTINGS }
        }
        _ => SETTINGS,
    }
}

fn open(store: impl Store + 'static) -> Counters {
    let patience = Duration::from_mins(1);
    let options =
        Options { writer: "w".into(), settings: Arc::new(settings), patience, ..Options::default() };
    Counters::open(store, options).unwrap()
}

fn stored(store: &Memory, name: &[u8]) -> i64 {
    store.clone().load(&[name]).unwrap()[0].unwrap_or(0)
}

fn positions<const N: usize>(counters: &Counters, names: [&[u8]; N]) -> [i64; N] {
    names.map(|name| counters.state(name).unwrap().position())
}

/// Returns the number of committed batches once it is at least `at_least`: the metric is updated
/// after the reply.
fn batches(counters: &Counters, at_least: u64) -> u64 {
    loop {
        let batches = counters.metrics().batches;
        if batches >= at_least {
            return batches;
        }
        thread::yield_now();
    }
}

#[test]
fn each_for_itself_some_are_made_and_some_are_not() {
    let counters = open(Memory::default());
    let results = counters.batch_each(&[
        (b"q1", Move::Take(90)),
        (b"q1", Move::Take(11)),
        (b"q1", Move::Refund(200)),
        (b"q1", Move::Take(11)),
        (b"likes", Move::Add(-7)),
        (b"likes", Move::Take(u64::MAX)),
    ]);
    let expected = [Ok(90), Err(Error::Exhausted), Ok(90), Ok(11), Ok(7), Err(Error::OutOfRange)];
    assert_eq!(results, expected);
    assert_eq!(positions(&counters, [b"q1", b"likes"]), [11, -7]);
    assert_eq!(counters.batch_each(&[]), []);
}

#[test]
fn commits_that_moves_of_a_batch_need_go_to_the_store_together() {
    let memory = Memory::default();
    let counters = open(memory.clone());
    let names: Vec<_> = (0..50).map(|number| format!("x{number}").into_bytes()).collect();
    // All of the counters are loaded, and none has units reserved.
    names.iter().for_each(|name| assert_eq!(counters.available(name), Ok(Some(100))));
    let moves: Vec<_> = names.iter().map(|name| (&name[..], Move::Take(3))).collect();
    assert!(counters.batch_each(&moves).iter().all(|result| *result == Ok(3)));
    assert_eq!(batches(&counters, 1), 1);
    assert!(names.iter().all(|name| stored(&memory, name) >= 3));

    let more: Vec<_> = names.iter().map(|name| (&name[..], Move::Take(20))).collect();
    assert_eq!(counters.batch_all(&more), Ok(vec![20; 50]));
    assert_eq!(batches(&counters, 2), 2);
    assert!(names.iter().all(|name| stored(&memory, name) >= 23));

    // A refund of more than a block, once with units reserved and once without.
    for (back, batch) in [(11, 3), (12, 4)] {
        let refunds: Vec<_> = names.iter().map(|name| (&name[..], Move::Refund(back))).collect();
        assert!(counters.batch_each(&refunds).iter().all(|result| *result == Ok(back)));
        assert_eq!(batches(&counters, batch), batch);
    }
    assert!(names.iter().all(|name| stored(&memory, name) == 0));
}

#[test]
fn counters_of_a_batch_that_take_commits_need_not_all_fit_into_memory() {
    let memory = Memory::default();
    let options = Options { settings: Arc::new(settings), max_keys: 10, ..Options::default() };
    let counters = Counters::open(memory.clone(), options).unwrap();
    let names: Vec<_> = (0..30).map(|number| format!("x{number}").into_bytes()).collect();
    let moves: Vec<_> = names.iter().map(|name| (&name[..], Move::Take(20))).collect();
    assert!(counters.batch_each(&moves).iter().all(|result| *result == Ok(20)));
    assert!(names.iter().all(|name| stored(&memory, name) >= 20));
}

#[test]
fn moves_of_one_name_keep_their_order_behind_one_that_waits_for_a_commit() {
    let counters = open(Memory::default());
    // The second take would find 100 units only before the first one, and the last take finds a
    // unit only after the refund.
    let results = counters.batch_each(&[
        (b"x", Move::Take(100)),
        (b"x", Move::Take(1)),
        (b"x", Move::Refund(2)),
        (b"x", Move::Take(1)),
    ]);
    assert_eq!(results, [Ok(100), Err(Error::Exhausted), Ok(2), Ok(1)]);
}

/// More moves than a counter's reference count can count.
#[test]
fn however_many_moves_wait_for_a_counter_it_can_be_put_away_behind_them() {
    let counters = open(Memory::default());
    let mut moves = vec![(&b"n"[..], Move::Add(0)); 70_000];
    moves[0].1 = Move::Add(5_000);
    assert!(counters.batch_each(&moves).iter().all(Result::is_ok));
    counters.flush().unwrap();
    assert_eq!(counters.evict_idle(), Ok(1));
    assert_eq!(positions(&counters, [b"n"]), [5_000]);
}

#[test]
fn together_all_are_made_or_none_is() {
    let counters = open(Memory::default());
    let both = |first, second| {
        counters.batch_all(&[(b"q1", Move::Take(first)), (b"q2", Move::Take(second)), (b"n", Move::Add(1))])
    };
    assert_eq!(both(60, 100), Ok(vec![60, 100, 1]));
    let failed = |index, error| Err(BatchError { index, moves: 3, error });
    assert_eq!(both(40, 1), failed(1, Error::Exhausted));
    assert_eq!(both(41, 1), failed(0, Error::Exhausted));
    assert_eq!(both(0, u64::MAX), failed(1, Error::OutOfRange));
    assert_eq!(positions(&counters, [b"q1", b"q2", b"n"]), [60, 100, 1]);
    assert_eq!(both(40, 0), Ok(vec![40, 0, 1]));
    assert_eq!(
        counters.batch_all(&[(b"q1", Move::Refund(500)), (b"q1", Move::Take(100)), (b"q2", Move::Refund(1))]),
        Ok(vec![100, 100, 1])
    );
    assert_eq!(positions(&counters, [b"q1", b"q2", b"n"]), [100, 99, 2]);
    assert_eq!(counters.batch_all(&[]), Ok(vec![]));
}

#[test]
fn more_than_can_be_moved_together_is_an_error_that_says_so() {
    let counters = open(Memory::default());
    let most = [(&b"n"[..], Move::Add(1)); MAX_TOGETHER];
    assert!(counters.batch_all(&most).is_ok());
    let error = counters.batch_all(&[&most[..], &most[..1]].concat()).unwrap_err();
    assert_eq!(error.error, Error::TooManyMoves { moves: MAX_TOGETHER + 1, max: MAX_TOGETHER });
    assert_eq!(positions(&counters, [b"n"]), [MAX_TOGETHER as i64]);
}

#[test]
fn a_batch_that_goes_far_and_comes_back_needs_no_commit() {
    let memory = Memory::default();
    let counters = open(memory.clone());
    let there_and_back = [(&b"n"[..], Move::Add(1_000_000)), (b"n", Move::Add(-999_999))];
    assert_eq!(counters.batch_all(&there_and_back), Ok(vec![1_000_000, 999_999]));
    assert_eq!(stored(&memory, b"n"), 0);
    assert_eq!(counters.batch_all(&[(b"n", Move::Add(5_000)), (b"x", Move::Take(99))]), Ok(vec![5_000, 99]));
    assert!(stored(&memory, b"n") >= 4_001, "no more than the cap is uncommitted");
    assert_eq!(positions(&counters, [b"n", b"x"]), [5_001, 99]);
}

#[test]
fn together_an_exact_refund_of_more_than_a_block_is_stored_before_it_is_acknowledged() {
    let memory = Memory::default();
    let counters = open(memory.clone());
    counters.take(b"x", 100).unwrap();
    assert_eq!(counters.batch_all(&[(b"n", Move::Add(1)), (b"x", Move::Refund(80))]), Ok(vec![1, 80]));
    let stored = stored(&memory, b"x");
    assert!((20..=30).contains(&stored), "{stored}");
}

#[test]
fn a_batch_that_needs_a_store_which_does_not_answer_changes_nothing() {
    let store = Faulty::new(Memory::default(), Faults::default(), 3);
    let shared = Arc::new(Mutex::new(store));
    let patience = Duration::from_millis(300);
    let options = Options { settings: Arc::new(settings), patience, ..Options::default() };
    let counters = Counters::open(shared.clone(), options).unwrap();
    // On a busy machine the commit thread may take longer than this short patience.
    while counters.batch_all(&[(b"n", Move::Add(1)), (b"x", Move::Take(1))]).is_err() {}
    shared.lock().unwrap().set_faults(Faults { lost_requests: 100, ..Faults::default() });
    let error = counters.batch_all(&[(b"n", Move::Add(1)), (b"x", Move::Take(90))]).unwrap_err();
    assert!(matches!(error, BatchError { index: 1, error: Error::Unavailable { .. }, .. }), "{error}");
    let results = counters.batch_each(&[(b"n", Move::Add(1)), (b"x", Move::Take(90)), (b"x", Move::Take(1))]);
    assert_eq!(results[0], Ok(1));
    assert!(matches!(results[1..], [Err(Error::Unavailable { .. }), Err(Error::Unavailable { .. })]));
    assert_eq!(positions(&counters, [b"n", b"x"]), [2, 1]);
}

#[test]
fn closed_counters_make_no_batch() {
    let counters = open(Memory::default());
    counters.add(b"n", 1).unwrap();
    counters.close().unwrap();
    assert_eq!(counters.batch_each(&[(b"n", Move::Add(1))]), [Err(Error::Closed)]);
    assert_eq!(counters.batch_all(&[(b"n", Move::Add(1))]).unwrap_err().error, Error::Closed);
}

/// Threads name the counters in different orders, while other threads move single counters, striped
/// and not.
#[test]
fn threads_never_get_more_together_than_there_is_and_all_of_it() {
    let memory = Memory::default();
    let settings = |name: &[u8]| {
        let limit = if name == b"tenant" { 6_000 } else { 3_500 };
        Settings { kind: Kind::Quota { limit }, ..SETTINGS }
    };
    let options = Options { settings: Arc::new(settings), ..Options::default() };
    let counters = Counters::open(memory.clone(), options).unwrap();
    let names: [&[u8]; 3] = [b"tenant", b"user:1", b"user:2"];
    let sums = [(); 3].map(|()| AtomicI64::new(0));
    thread::scope(|threads| {
        for thread in 0..4_usize {
            let (counters, sums) = (&counters, &sums);
            threads.spawn(move || {
                for turn in 0..4_000 {
                    let user = 1 + (thread + turn) % 2;
                    let is_refund = turn % 5 == 1;
                    let how = if is_refund { Move::Refund(1) } else { Move::Take(1) };
                    let mut pair = [0, user];
                    if turn % 3 == 0 {
                        pair.reverse();
                    }
                    let asked = if turn % 5 == 0 { &pair[..1] } else { &pair[..] };
                    let moves: Vec<_> = asked.iter().map(|at| (names[*at], how)).collect();
                    let Ok(units) = counters.batch_all(&moves) else { continue };
                    for (at, units) in asked.iter().zip(units) {
                        let units = units as i64;
                        sums[*at].fetch_add(if is_refund { -units } else { units }, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let [tenant, first, second] = sums.map(AtomicI64::into_inner);
    assert!(tenant <= 6_000 && first <= 3_500 && second <= 3_500);
    assert_eq!(positions(&counters, names), [tenant, first, second]);
    // One batch can take all that is left of both.
    let left = (6_000 - tenant).min(3_500 - first) as u64;
    assert!(counters.batch_all(&[(b"tenant", Move::Take(left)), (b"user:1", Move::Take(left))]).is_ok());
    counters.close().unwrap();
    assert_eq!(stored(&memory, b"tenant"), tenant + left as i64);
}

#[test]
fn a_peek_says_what_a_take_would_and_changes_nothing() {
    let counters = open(Memory::default());
    counters.take(b"q", 40).unwrap();
    assert_eq!(counters.peek(b"q", 60), Ok(true));
    assert_eq!(counters.peek(b"q", 61), Ok(false));
    assert_eq!(counters.peek(b"q", u64::MAX), Err(Error::OutOfRange));
    assert_eq!(counters.peek(b"x", 100), Ok(true), "by a commit");
    assert_eq!(counters.peek(b"n", 1 << 40), Ok(true), "a plain one has no limit");
    assert_eq!((positions(&counters, [b"q", b"x", b"n"]), counters.metrics().batches), ([40, 0, 0], 0));
}

#[test]
fn a_part_of_what_is_open_is_committed_and_never_what_is_not_open_any_more() {
    let memory = Memory::default();
    let counters = open(memory.clone());
    let likes = counters.get(b"likes").unwrap();
    assert_eq!(likes.check_commit(0), None, "nothing is no commit");
    likes.add(60).unwrap();
    assert_eq!((likes.check_commit(60), counters.check_commit(b"likes", 61)), (Some(60), Ok(None)));
    counters.commit_up_to(b"likes", 25).unwrap();
    assert_eq!((stored(&memory, b"likes"), likes.state().open()), (25, 35));

    // The uncommitted amount has fallen since it was read: the commit writes no more than there is.
    likes.add(-30).unwrap();
    likes.commit_up_to(35).unwrap();
    assert_eq!((stored(&memory, b"likes"), likes.state().open()), (30, 0));
    likes.add(-10).unwrap();
    likes.commit_up_to(35).unwrap();
    assert_eq!((stored(&memory, b"likes"), likes.state().open()), (30, -10), "it went to the other side");
    likes.commit_up_to(i64::MIN).unwrap();
    assert_eq!((stored(&memory, b"likes"), likes.state().open()), (20, 0));
    likes.commit_up_to(i64::MAX).unwrap();
    assert_eq!(stored(&memory, b"likes"), 20);
}

#[test]
fn a_counter_at_its_threshold_is_due_until_it_is_committed() {
    let memory = Memory::default();
    let counters = open(memory.clone());
    let likes = counters.get(b"likes").unwrap();
    likes.add(499).unwrap();
    assert!(!likes.is_due());
    likes.add(1).unwrap();
    // It is no longer due once its commit is under way.
    while likes.is_due() || likes.state().sealed() != 0 {
        thread::yield_now();
    }
    assert_eq!(likes.state().durable(), 500);
}

#[test]
fn parts_of_a_reservation_are_given_back() {
    let memory = Memory::default();
    let counters = open(memory.clone());
    counters.take(b"x", 1).unwrap();
    let reserved = stored(&memory, b"x");
    assert!(reserved > 2);
    assert_eq!(counters.check_commit(b"x", 1), Ok(Some(1 - reserved)));
    counters.commit_up_to(b"x", -1).unwrap();
    assert_eq!(stored(&memory, b"x"), reserved - 1);
    counters.commit_up_to(b"x", 100).unwrap();
    assert_eq!(stored(&memory, b"x"), reserved - 1);
}
