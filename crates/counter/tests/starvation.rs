//! A thread that moves a counter far succeeds, however busy other threads keep it with small moves.
//!
//! A target of its own: its threads never pause, and would take the processors from tests that wait
//! for a store with a short patience.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tidemark_counter::counters::{Counters, Options, Settings};
use tidemark_counter::store::{Batch, Claim, Error, Memory, Receipt, Store};
use tidemark_counter::{Kind, Move, Promise};

/// A store as distant as one over a network: other threads move while a commit is under way.
struct Distant(Memory);

impl Store for Distant {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        self.0.claim(writer)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        thread::sleep(Duration::from_micros(50));
        self.0.commit(batch)
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        self.0.load(keys)
    }
}

const OTHERS: usize = 32;

/// One thread repeats `far` while other threads move up and down by 1 without a pause. Returns the
/// store's value at the end.
fn among_small_moves(settings: Settings, far: impl Fn(&Counters)) -> i64 {
    let small = |counters: &Counters| {
        counters.add(b"busy", 1).unwrap();
        counters.add(b"busy", -1).unwrap();
    };
    among(settings, small, far)
}

/// As [`among_small_moves`], while other threads repeat `near`.
fn among(settings: Settings, near: impl Fn(&Counters) + Sync, far: impl Fn(&Counters)) -> i64 {
    let memory = Memory::default();
    let options = Options {
        settings: Arc::new(move |_| settings),
        // A limit, in case the thread never gets its move.
        patience: Duration::from_mins(2),
        ..Options::default()
    };
    let counters = Counters::open(Distant(memory.clone()), options).unwrap();
    let (is_over, are_moving) = (AtomicBool::new(false), Barrier::new(OTHERS + 1));
    thread::scope(|threads| {
        for _ in 0..OTHERS {
            threads.spawn(|| {
                near(&counters);
                are_moving.wait();
                while !is_over.load(Ordering::Relaxed) {
                    near(&counters);
                }
            });
        }
        are_moving.wait();
        for _ in 0..20 {
            far(&counters);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    counters.close().unwrap();
    memory.clone().load(&[b"busy"]).unwrap()[0].unwrap_or(0)
}

fn settings(kind: Kind, promise: Promise) -> Settings {
    Settings { kind, promise, ..Settings::default() }
}

#[test]
fn a_refund_of_more_than_the_block() {
    let stored = among_small_moves(settings(Kind::Plain, Promise::Exact { block: 10 }), |counters| {
        counters.add(b"busy", 500).unwrap();
        counters.add(b"busy", -500).unwrap();
    });
    assert_eq!(stored, 0);
}

#[test]
fn a_refund_of_all_of_a_block() {
    let stored = among_small_moves(settings(Kind::Plain, Promise::Exact { block: 10 }), |counters| {
        counters.add(b"busy", 10).unwrap();
        counters.add(b"busy", -10).unwrap();
    });
    assert_eq!(stored, 0);
}

#[test]
fn a_move_by_all_of_the_cap() {
    let stored = among_small_moves(settings(Kind::Plain, Promise::Relaxed { cap: 10 }), |counters| {
        counters.add(b"busy", 10).unwrap();
        counters.add(b"busy", -10).unwrap();
    });
    assert_eq!(stored, 0);
}

#[test]
fn a_move_by_more_than_the_cap() {
    let stored = among_small_moves(settings(Kind::Plain, Promise::Relaxed { cap: 10 }), |counters| {
        counters.add(b"busy", 500).unwrap();
        counters.add(b"busy", -500).unwrap();
    });
    assert_eq!(stored, 0);
}

#[test]
fn a_batch_with_a_move_by_all_of_the_cap() {
    let stored = among_small_moves(settings(Kind::Plain, Promise::Relaxed { cap: 10 }), |counters| {
        counters.batch_all(&[(b"busy", Move::Add(10)), (b"other", Move::Add(1))]).unwrap();
        counters.batch_all(&[(b"busy", Move::Refund(10)), (b"other", Move::Add(-1))]).unwrap();
    });
    assert_eq!(stored, 0);
}

#[test]
fn a_take_of_all_of_the_block_among_takes() {
    for block in [10, 100] {
        let settings = settings(Kind::Plain, Promise::Exact { block });
        among(
            settings,
            |counters| {
                counters.take(b"busy", 1).unwrap();
                // Like callers that have other work too.
                thread::yield_now();
            },
            |counters| counters.take(b"busy", block).unwrap(),
        );
    }
}

#[test]
fn a_commit_among_far_moves() {
    among(
        settings(Kind::Plain, Promise::Exact { block: 10 }),
        |counters| counters.take(b"busy", 50).unwrap(),
        |counters| counters.commit(b"busy").unwrap(),
    );
}
