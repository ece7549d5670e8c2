//! The committer against a model, with a clock of its own and a store that fails.

use super::*;
use crate::counter::Counter;
use crate::store::{self, Batch, Faults, Faulty, Memory, Store};
use crate::{Kind, Promise, Refusal};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

struct Entry {
    name: Vec<u8>,
    counter: Counter,
    timing: Timing,
    is_dirty: Cell<bool>,
}

struct Entries;

impl Keys for Entries {
    type Key = Rc<Entry>;

    fn name<'key>(&self, key: &'key Rc<Entry>) -> &'key [u8] {
        &key.name
    }

    fn counter<'key>(&self, key: &'key Rc<Entry>) -> &'key Counter {
        &key.counter
    }

    fn timing(&self, key: &Rc<Entry>) -> Timing {
        key.timing
    }

    fn committed(&self, key: &Rc<Entry>) -> bool {
        key.counter.is_due()
    }

    fn rest(&self, key: &Rc<Entry>) {
        key.is_dirty.set(false);
    }

    fn barrier(&self) {}

    fn rouse(&self, key: &Rc<Entry>) -> bool {
        !key.is_dirty.replace(true)
    }
}

fn entry(name: &str, kind: Kind, promise: Promise, timing: Timing) -> Rc<Entry> {
    let counter = Counter::new(kind, promise, 0);
    Rc::new(Entry { name: name.into(), counter, timing, is_dirty: Cell::new(false) })
}

const SECOND: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(10);

/// A committer with its store, at a time that only the test moves on.
struct World {
    committer: Committer<Entries>,
    store: Faulty<Memory>,
    memory: Memory,
    now: Duration,
    sent: Vec<Batch>,
}

impl World {
    fn new(faults: Faults, seed: u64, max_batch: usize) -> Self {
        let memory = Memory::default();
        let claim = memory.clone().claim("w").unwrap();
        let backoff = (Duration::from_millis(5), SECOND);
        let limits = Limits { interval: INTERVAL, max_batch, backoff, seed };
        Self {
            committer: Committer::new("w".into(), claim, limits),
            store: Faulty::new(memory.clone(), faults, seed),
            memory,
            now: Duration::ZERO,
            sent: Vec::new(),
        }
    }

    fn note(&mut self, entry: &Rc<Entry>) {
        if !entry.is_dirty.replace(true) {
            self.committer.note(&Entries, entry.clone(), self.now);
        }
    }

    /// Does what there is to do at this time.
    fn run(&mut self) {
        for _ in 0..1_000 {
            match self.committer.step(&Entries, self.now) {
                Step::Send(batch) => {
                    let answer = self.store.commit(&batch);
                    self.sent.push(batch);
                    self.committer.answered(&Entries, self.now, answer);
                }
                Step::Wait(Some(until)) if until <= self.now => {}
                Step::Wait(_) => return,
                Step::Stopped(error) => panic!("{error}"),
            }
        }
        panic!("it does not come to rest");
    }

    fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while self.now < until {
            self.now = (self.now + INTERVAL / 2).min(until);
            self.run();
        }
    }

    fn stored(&self, entry: &Entry) -> i64 {
        self.memory.clone().load(&[&entry.name]).unwrap()[0].unwrap_or(0)
    }
}

/// Moves it, by commits where that takes any, as callers do. Whether it was moved before the store stopped answering for long.
fn add(world: &mut World, entry: &Rc<Entry>, delta: i64) -> bool {
    for _ in 0..100 {
        match entry.counter.add(delta) {
            Ok(()) => {
                world.note(entry);
                if entry.counter.is_due() {
                    world.committer.want(entry.clone(), None, None);
                }
                return true;
            }
            Err(Refusal::Unsettled) => {
                world.committer.want(entry.clone(), Some(delta), None);
                world.run();
                world.advance(INTERVAL);
            }
            Err(_) => return false,
        }
    }
    false
}

#[derive(Debug, Clone)]
enum Event {
    Add(usize, i64),
    Advance(u64),
    Flush,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..5_usize, -30..30_i64).prop_map(|(entry, delta)| Event::Add(entry, delta)),
        3 => (1..400_u64).prop_map(Event::Advance),
        1 => Just(Event::Flush),
    ];
    prop::collection::vec(event, 1..80)
}

proptest! {
    /// Whatever goes wrong, what the store has is what it was acknowledged to have, with or without what is on its way; nothing
    /// is lost and nothing is doubled.
    #[test]
    fn the_books_hold_over_a_store_that_fails(
        script in events(), lost_requests in 0..60_u8, lost_answers in 0..60_u8, refusals in 0..30_u8, seed: u64
    ) {
        let mut world = World::new(Faults { lost_requests, lost_answers, refusals }, seed, 3);
        let timing = Timing { max_age: SECOND, low: 10 };
        let entries: Vec<_> = (0..5)
            .map(|number| {
                let promise = match number % 2 {
                    0 => Promise::Relaxed { cap: 40 },
                    _ => Promise::Exact { block: 16 },
                };
                entry(&number.to_string(), Kind::Plain, promise, timing)
            })
            .collect();
        let mut truth = [0_i64; 5];
        for event in script {
            match event {
                Event::Add(at, delta) => {
                    if add(&mut world, &entries[at], delta) {
                        truth[at] += delta;
                    }
                }
                Event::Advance(milliseconds) => world.advance(Duration::from_millis(milliseconds)),
                Event::Flush => {
                    world.committer.flush(Arc::default());
                    world.run();
                }
            }
            for (entry, truth) in entries.iter().zip(truth) {
                let books = entry.counter.books();
                prop_assert_eq!(books.position(), truth);
                let stored = world.stored(entry);
                prop_assert!(stored == books.durable() || stored == books.durable() + books.sealed());
                let is_clean = books.open() == 0 && books.sealed() == 0;
                prop_assert!(entry.is_dirty.get() || is_clean, "nobody will come for {books:?}");
            }
        }
        world.store.set_faults(Faults::default());
        world.advance(5 * SECOND);
        world.committer.flush(Arc::default());
        world.advance(5 * SECOND);
        for (entry, truth) in entries.iter().zip(truth) {
            prop_assert_eq!(world.stored(entry), truth);
            prop_assert!(!entry.is_dirty.get());
        }
        prop_assert_eq!(world.committer.dirty(), 0);
        // Numbers are dense, and a number has one content once nothing of it was refused.
        for pair in world.sent.windows(2) {
            prop_assert!(pair[1].sequence == pair[0].sequence || pair[1].sequence == pair[0].sequence + 1);
        }
    }
}

#[test]
fn an_acknowledgement_that_is_lost_does_not_double_anything() {
    let mut world = World::new(Faults { lost_answers: 100, ..Faults::default() }, 1, 10);
    let likes =
        entry("likes", Kind::Plain, Promise::Relaxed { cap: 100 }, Timing { max_age: SECOND, low: 1 });
    assert!(add(&mut world, &likes, 20));
    world.advance(INTERVAL);
    assert_eq!(world.stored(&likes), 20);
    assert_eq!(likes.counter.books().sealed(), 20);
    // What moves meanwhile does not change what is on its way.
    assert!(add(&mut world, &likes, 3));
    world.advance(SECOND);
    world.store.set_faults(Faults::default());
    world.advance(3 * SECOND);
    assert_eq!(world.stored(&likes), 23);
    assert!(world.sent.len() > 2);
    assert!(world.sent.iter().filter(|batch| batch.sequence == 1).all(|batch| *batch == world.sent[0]));
}

#[test]
fn a_write_error_does_not_keep_a_counter_from_being_committed_later() {
    let mut world = World::new(Faults { lost_requests: 100, ..Faults::default() }, 2, 10);
    let timing = Timing { max_age: SECOND, low: 1 };
    let likes = entry("likes", Kind::Plain, Promise::Relaxed { cap: 100 }, timing);
    assert!(add(&mut world, &likes, 20));
    world.advance(10 * SECOND);
    assert_eq!(world.stored(&likes), 0);
    assert!(world.committer.counts().resends > 5);
    world.store.set_faults(Faults::default());
    // Nothing moves any more, and it comes all the same.
    world.advance(2 * SECOND);
    assert_eq!(world.stored(&likes), 20);
}

#[test]
fn what_the_store_refuses_is_open_again_and_does_not_keep_the_others_back() {
    let mut world = World::new(Faults::default(), 3, 10);
    let timing = Timing { max_age: SECOND, low: 1 };
    let cap = Promise::Relaxed { cap: 100 };
    let (full, likes) = (entry("full", Kind::Plain, cap, timing), entry("likes", Kind::Plain, cap, timing));
    let other = store::Delta { key: (*b"full").into(), amount: i64::MAX };
    let claim = world.memory.claim("other").unwrap();
    let batch = Batch { writer: "other".into(), epoch: claim.epoch, sequence: 1, deltas: vec![other] };
    world.memory.commit(&batch).unwrap();
    assert!(add(&mut world, &full, 1) && add(&mut world, &likes, 5));
    world.advance(INTERVAL);
    assert_eq!((world.stored(&full), world.stored(&likes)), (i64::MAX, 5));
    assert_eq!((full.counter.books().open(), full.counter.books().sealed()), (1, 0));
    // What it goes back to can be stored again.
    assert!(add(&mut world, &full, -3));
    world.advance(2 * SECOND);
    assert_eq!(world.stored(&full), i64::MAX - 2);
}

#[test]
fn steady_traffic_beyond_the_lower_threshold_is_committed_as_long_as_it_lasts() {
    // 8,400 moves a second, of which more than `low` come between any two looks.
    let mut world = World::new(Faults::default(), 4, 10);
    let timing = Timing { max_age: SECOND, low: 25 };
    let likes = entry("likes", Kind::Plain, Promise::Relaxed { cap: 200 }, timing);
    likes.counter.set_alarm(50);
    for step in 0..16_860_i64 {
        world.now = Duration::from_nanos(step as u64 * 119_047);
        assert!(add(&mut world, &likes, 1));
        world.run();
        let uncommitted = likes.counter.books().uncommitted();
        assert!(uncommitted <= 50, "{uncommitted} after {step}");
    }
    assert!(world.committer.counts().batches >= 16_860 / 50);
}

#[test]
fn steady_traffic_below_all_thresholds_is_committed_at_its_age() {
    let mut world = World::new(Faults::default(), 5, 10);
    let timing = Timing { max_age: SECOND, low: 1_000 };
    let likes = entry("likes", Kind::Plain, Promise::Relaxed { cap: 10_000 }, timing);
    for step in 1..=50_i64 {
        // It is never silent for as long as its age.
        assert!(add(&mut world, &likes, 1));
        world.advance(SECOND / 5);
        assert!(world.stored(&likes) >= step - 6, "{} of {step}", world.stored(&likes));
    }
}

#[test]
fn ups_and_downs_that_cancel_cost_the_store_nothing() {
    let mut world = World::new(Faults::default(), 6, 10);
    let timing = Timing { max_age: 10 * SECOND, low: 5 };
    let likes = entry("likes", Kind::Plain, Promise::Relaxed { cap: 100 }, timing);
    for _ in 0..100 {
        assert!(add(&mut world, &likes, 1));
        world.advance(SECOND / 100);
        assert!(add(&mut world, &likes, -1));
    }
    world.advance(20 * SECOND);
    assert_eq!(world.sent, []);
    assert_eq!(world.committer.dirty(), 0);
    assert!(world.committer.counts().absorbed >= 1);
}

#[test]
fn what_is_unused_of_a_reservation_is_given_back_when_nobody_moves() {
    let mut world = World::new(Faults::default(), 7, 10);
    let timing = Timing { max_age: SECOND, low: 1 };
    let quota = entry("quota", Kind::Quota { limit: 1_000 }, Promise::Exact { block: 100 }, timing);
    assert!(add(&mut world, &quota, 1));
    assert!(world.stored(&quota) > 1);
    world.advance(4 * SECOND);
    assert_eq!(world.stored(&quota), 1);
    assert!(!quota.is_dirty.get());
}

#[test]
fn a_writer_that_is_fenced_stops_and_says_so() {
    let mut world = World::new(Faults::default(), 8, 10);
    let timing = Timing { max_age: SECOND, low: 1 };
    let likes = entry("likes", Kind::Plain, Promise::Relaxed { cap: 100 }, timing);
    assert!(add(&mut world, &likes, 20));
    world.memory.claim("w").unwrap();
    let waiter = Arc::<Ticket<_>>::default();
    world.committer.want(likes, None, Some(waiter.clone()));
    let Step::Send(batch) = world.committer.step(&Entries, world.now) else { panic!("nothing to be sent") };
    let answer = world.store.commit(&batch);
    world.committer.answered(&Entries, world.now, answer);
    let fenced = Error::Fenced { writer: "w".into(), epoch: 2 };
    assert_eq!(world.committer.step(&Entries, world.now), Step::Stopped(fenced.clone()));
    assert_eq!(waiter.peek(), None);
    world.committer.refuse_all(&fenced);
    assert_eq!(waiter.peek(), Some(Err(fenced)));
}
