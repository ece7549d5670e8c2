//! The committer against a model, with a simulated clock and a store that fails.

use super::*;
use crate::counter::Counter;
use crate::store::{self, Batch, Faults, Faulty, Memory, Store};
use crate::{Kind, Move, Promise, Refusal};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Entry {
    name: Vec<u8>,
    counter: Counter,
    timing: Timing,
    is_dirty: Cell<bool>,
}

struct Entries;

thread_local! {
    /// How often the committer has checked a counter.
    static VISITS: Cell<u64> = const { Cell::new(0) };
}

impl Keys for Entries {
    type Key = Rc<Entry>;

    fn place(&self, key: &Rc<Entry>) -> usize {
        Rc::as_ptr(key).addr()
    }

    fn name<'key>(&self, key: &'key Rc<Entry>) -> &'key [u8] {
        &key.name
    }

    fn counter<'key>(&self, key: &'key Rc<Entry>) -> &'key Counter {
        VISITS.set(VISITS.get() + 1);
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

/// A committer with its store, at a time that only the test advances.
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

    /// Does all work that is due at this time.
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

/// Makes a move as callers do, by a commit if necessary. Returns whether it was made before the
/// store was unavailable for too long.
fn add(world: &mut World, entry: &Rc<Entry>, delta: i64) -> bool {
    match entry.counter.add(delta) {
        Ok(()) => {
            world.note(entry);
            if entry.counter.is_due() {
                world.committer.want(entry.clone(), Extent::Net, None);
            }
            true
        }
        Err(Refusal::Unsettled) => {
            let errand = run_errand(world, entry, Move::Add(delta));
            world.run();
            for _ in 0..100 {
                if errand.is_decided() {
                    break;
                }
                world.advance(INTERVAL);
            }
            matches!(leave(&errand), Ok(_) | Err(Error::Unstored { .. }))
        }
        Err(_) => false,
    }
}

fn run_errand(world: &mut World, entry: &Rc<Entry>, how: Move) -> Arc<Errand> {
    let errand = Arc::new(Errand::new(how, None));
    world.committer.run(entry.clone(), errand.clone());
    errand
}

/// Stops waiting, and returns the outcome.
fn leave(errand: &Errand) -> Result<u64, Error> {
    errand.wait(Instant::now(), || Error::Unavailable { waited: SECOND, reason: "gone".into() })
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
    /// Under all faults, the store has what it was acknowledged to have, with or without the batch
    /// in flight; nothing is lost or counted twice.
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
                prop_assert!(entry.is_dirty.get() || is_clean, "no commit is queued for {books:?}");
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
        // Numbers are dense, and a number has one content from which changes are only removed by a
        // rejection.
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
    // Later moves do not change the batch in flight.
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
    // Nothing moves any more, and it is committed nevertheless.
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
    // After going down, it can be stored again.
    assert!(add(&mut world, &full, -3));
    world.advance(2 * SECOND);
    assert_eq!(world.stored(&full), i64::MAX - 2);
}

#[test]
fn steady_traffic_beyond_the_lower_threshold_is_committed_as_long_as_it_lasts() {
    // 8,400 moves a second, with more than `low` between any two checks.
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

/// Some never reach a threshold, some are always beyond one, and a batch holds only a few.
#[test]
fn each_of_many_counters_under_steady_traffic_is_committed_within_its_age() {
    const COUNTERS: usize = 60;
    let mut world = World::new(Faults::default(), 9, 7);
    let (quiet, busy) = (Timing { max_age: SECOND, low: 1_000 }, Timing { max_age: SECOND, low: 5 });
    let cap = Promise::Relaxed { cap: 100_000 };
    let entries: Vec<_> = (0..COUNTERS)
        .map(|at| {
            let entry = entry(&at.to_string(), Kind::Plain, cap, if at % 2 == 0 { quiet } else { busy });
            entry.counter.set_alarm(if at % 3 == 0 { 50 } else { 0 });
            entry
        })
        .collect();
    // Position of each counter at every step, to measure the age of what is stored.
    let step = SECOND / 50;
    let mut history: Vec<Vec<i64>> = Vec::new();
    for turn in 0..250 {
        for (at, entry) in entries.iter().enumerate() {
            // Never silent for as long as its age, and never down: what is stored is an earlier
            // position.
            let delta = if at % 2 == 0 { i64::from((turn + at) % 10 == 0) } else { 40 };
            if delta > 0 {
                assert!(add(&mut world, entry, delta));
            }
        }
        history.push(entries.iter().map(|entry| entry.counter.position()).collect());
        world.advance(step);
        // Its age, an interval, and the step itself.
        let age = 50 + 3;
        if let Some(then) = history.len().checked_sub(age) {
            for (entry, position) in entries.iter().zip(&history[then]) {
                let stored = world.stored(entry);
                assert!(stored >= *position, "{stored} is stored of {position} that is too old");
            }
        }
    }
}

/// They become dirty one after the other, and each moves all the time.
#[test]
fn counters_in_steady_use_come_to_be_committed_together() {
    const COUNTERS: usize = 40;
    const SECONDS: usize = 20;
    let mut world = World::new(Faults::default(), 11, 100);
    let timing = Timing { max_age: SECOND, low: 1_000_000 };
    let cap = Promise::Relaxed { cap: 1_000_000 };
    let entries: Vec<_> = (0..COUNTERS).map(|at| entry(&at.to_string(), Kind::Plain, cap, timing)).collect();
    for step in 0..SECONDS * COUNTERS {
        for entry in entries.iter().take(step + 1) {
            assert!(add(&mut world, entry, 1));
        }
        world.advance(SECOND / COUNTERS as u32);
    }
    // One at a time, it would be 40 calls a second.
    assert!((SECONDS - 2..=SECONDS + 4).contains(&world.sent.len()), "{} calls", world.sent.len());
    let changes: usize = world.sent.iter().map(|batch| batch.deltas.len()).sum();
    assert!(changes <= COUNTERS * (SECONDS + 2), "{changes} changes");
}

#[test]
fn a_million_idle_counters_are_not_looked_at() {
    const IDLE: usize = 1_000_000;
    let mut world = World::new(Faults::default(), 10, 100_000);
    let timing = Timing { max_age: SECOND, low: 1 };
    let cap = Promise::Relaxed { cap: 100 };
    let idle: Vec<_> = (0..IDLE).map(|at| entry(&at.to_string(), Kind::Plain, cap, timing)).collect();
    for entry in &idle {
        entry.counter.add(1).unwrap();
        world.note(entry);
    }
    world.advance(2 * SECOND);
    assert_eq!(world.committer.dirty(), 0);
    // Each was sealed, acknowledged and seen clean, and had its age or its threshold checked.
    let visits = VISITS.replace(0);
    assert!(visits <= 10 * IDLE as u64, "{visits}");

    let busy = entry("busy", Kind::Plain, cap, timing);
    for _ in 0..1_000 {
        assert!(add(&mut world, &busy, 1));
        world.advance(INTERVAL);
    }
    let visits = VISITS.get();
    assert!((1_000..20_000).contains(&visits), "{visits}");
    assert_eq!(world.stored(&idle[7]), 1);
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
fn an_unused_reservation_is_returned_when_no_caller_moves_the_counter() {
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
    world.committer.want(likes, Extent::Net, Some(waiter.clone()));
    let Step::Send(batch) = world.committer.step(&Entries, world.now) else { panic!("nothing to be sent") };
    let answer = world.store.commit(&batch);
    world.committer.answered(&Entries, world.now, answer);
    let fenced = Error::Fenced { writer: "w".into(), epoch: 2 };
    assert_eq!(world.committer.step(&Entries, world.now), Step::Stopped(fenced.clone()));
    assert_eq!(waiter.peek(), None);
    world.committer.refuse_all(&fenced);
    assert_eq!(waiter.peek(), Some(Err(fenced)));
}

/// A counter of which the store has 10, of which 8 are used.
fn exact_at_8_of_10(world: &mut World) -> Rc<Entry> {
    let entry =
        entry("exact", Kind::Plain, Promise::Exact { block: 10 }, Timing { max_age: SECOND, low: 10 });
    assert!(add(world, &entry, 5));
    assert_eq!((entry.counter.add(3), entry.counter.books().durable()), (Ok(()), 10));
    entry
}

fn sent(world: &mut World) -> Batch {
    match world.committer.step(&Entries, world.now) {
        Step::Send(batch) => batch,
        other => panic!("{other:?} in place of a batch"),
    }
}

fn answer(world: &mut World, batch: &Batch) {
    let answer = world.store.commit(batch);
    world.committer.answered(&Entries, world.now, answer);
}

#[test]
fn a_caller_gets_the_room_made_for_it_whatever_other_callers_do_meanwhile() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    let errand = run_errand(&mut world, &exact, Move::Take(5));
    let batch = sent(&mut world);
    assert_eq!(exact.counter.add(2), Ok(()), "what was reserved before");
    assert!(!errand.is_decided());
    answer(&mut world, &batch);
    assert_eq!(leave(&errand), Ok(5));
    assert_eq!(exact.counter.position(), 15);

    let relaxed =
        entry("relaxed", Kind::Plain, Promise::Relaxed { cap: 10 }, Timing { max_age: SECOND, low: 10 });
    assert_eq!(relaxed.counter.add(7), Ok(()));
    let errand = run_errand(&mut world, &relaxed, Move::Add(10));
    let batch = sent(&mut world);
    assert_eq!(relaxed.counter.add(3), Ok(()), "as far as the cap allows");
    answer(&mut world, &batch);
    assert_eq!(leave(&errand), Ok(10));
    assert_eq!(relaxed.counter.position(), 20);
}

#[test]
fn moves_that_wait_for_one_counter_keep_their_order() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    let errands =
        [Move::Take(3), Move::Take(9), Move::Take(1)].map(|how| run_errand(&mut world, &exact, how));
    let batch = sent(&mut world);
    // Up to half of a block beyond the first one.
    assert_eq!(batch.deltas[0].amount, 6);
    answer(&mut world, &batch);
    assert_eq!(errands.each_ref().map(|errand| errand.is_decided()), [true, false, false]);
    assert_eq!(exact.counter.add(1), Ok(()), "a move that needs no commit does not wait");
    world.run();
    assert_eq!(errands.map(|errand| leave(&errand)), [Ok(3), Ok(9), Ok(1)]);
    assert_eq!(exact.counter.position(), 8 + 3 + 1 + 9 + 1);
}

#[test]
fn no_move_is_made_for_a_caller_that_gave_up() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    let [before, meanwhile] = [(); 2].map(|()| run_errand(&mut world, &exact, Move::Take(5)));
    assert!(matches!(leave(&before), Err(Error::Unavailable { .. })));
    let batch = sent(&mut world);
    assert!(matches!(leave(&meanwhile), Err(Error::Unavailable { .. })));
    answer(&mut world, &batch);
    world.advance(SECOND * 3);
    assert_eq!(exact.counter.position(), 8);
    assert_eq!(world.stored(&exact), 8, "an abandoned reservation is returned");
}

#[test]
fn an_exact_refund_applies_immediately_and_is_acknowledged_when_stored() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    assert!(add(&mut world, &exact, 92));
    let errand = run_errand(&mut world, &exact, Move::Refund(60));
    let batch = sent(&mut world);
    assert_eq!((exact.counter.position(), errand.is_decided()), (40, false));
    assert_eq!(exact.counter.take(1), Err(Refusal::Unsettled), "nothing is admitted ahead of the store");
    answer(&mut world, &batch);
    assert_eq!(world.stored(&exact), 40);
    assert_eq!(leave(&errand), Ok(60));

    // The move stays, even if no caller waits for it.
    let errand = run_errand(&mut world, &exact, Move::Refund(30));
    let batch = sent(&mut world);
    assert!(matches!(leave(&errand), Err(Error::Unstored { .. })));
    answer(&mut world, &batch);
    assert_eq!((exact.counter.position(), world.stored(&exact)), (10, 10));
}

#[test]
fn closing_leaves_no_store_below_an_acknowledged_position() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    assert!(add(&mut world, &exact, 92));
    let take = run_errand(&mut world, &exact, Move::Take(50));
    let refund = run_errand(&mut world, &exact, Move::Refund(60));
    let batch = sent(&mut world);
    // No counter moves any more, and all is committed.
    exact.counter.set_promise(Promise::Relaxed { cap: 0 });
    world.committer.refuse_moves(&Error::Closed);
    let flushed = Arc::<Ticket<_>>::default();
    world.committer.flush(flushed.clone());
    answer(&mut world, &batch);
    assert_eq!((leave(&take), leave(&refund)), (Ok(50), Err(Error::Closed)));
    world.run();
    assert_eq!(flushed.peek(), Some(Ok(())));
    assert_eq!((exact.counter.position(), world.stored(&exact)), (150, 150));
}

#[test]
fn a_commit_is_answered_among_far_moves() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    let mut line: VecDeque<_> = (0..3).map(|_| run_errand(&mut world, &exact, Move::Take(50))).collect();
    let waiter = Arc::<Ticket<_>>::default();
    world.committer.want(exact.clone(), Extent::Net, Some(waiter.clone()));
    for _ in 0..3 {
        let batch = sent(&mut world);
        answer(&mut world, &batch);
        // After each move, the next one.
        for _ in 0..line.len() {
            let one = line.pop_front().unwrap();
            let is_decided = one.is_decided();
            line.push_back(if is_decided { run_errand(&mut world, &exact, Move::Take(50)) } else { one });
        }
    }
    assert_eq!(waiter.peek(), Some(Ok(())));
}

#[test]
fn a_refund_is_stored_though_its_caller_has_gone() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    assert!(add(&mut world, &exact, 992));
    let take = run_errand(&mut world, &exact, Move::Take(50));
    let refund = run_errand(&mut world, &exact, Move::Refund(600));
    let batch = sent(&mut world);
    answer(&mut world, &batch);
    assert_eq!(leave(&take), Ok(50));
    assert!(matches!(leave(&refund), Err(Error::Unstored { .. })));
    world.run();
    assert_eq!(world.stored(&exact), 450);
}

#[test]
fn a_reservation_for_a_caller_that_gave_up_is_returned() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    let take = run_errand(&mut world, &exact, Move::Take(500));
    let batch = sent(&mut world);
    assert!(leave(&take).is_err());
    answer(&mut world, &batch);
    // Also for a counter in constant use, which is never checked at its age.
    assert!(add(&mut world, &exact, 1));
    world.run();
    assert!(exact.counter.books().is_settled());
}

#[test]
fn a_large_take_succeeds_among_small_takes() {
    for amount in [6, 10, 11, 500] {
        let mut world = World::new(Faults::default(), 1, 10);
        let exact = exact_at_8_of_10(&mut world);
        let errand = run_errand(&mut world, &exact, Move::Take(amount));
        let batch = sent(&mut world);
        while exact.counter.add(1).is_ok() {}
        answer(&mut world, &batch);
        assert_eq!(leave(&errand), Ok(amount));
        assert!(exact.counter.books().is_settled());
    }
}

#[test]
fn refunds_by_little_never_leave_more_than_a_block_uncommitted() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    assert!(add(&mut world, &exact, 92));
    while exact.counter.add(-1).is_ok() {}
    for back in [1, 4, 5] {
        let errand = run_errand(&mut world, &exact, Move::Refund(back));
        let batch = sent(&mut world);
        while exact.counter.add(-1).is_ok() {}
        assert!(!errand.is_decided() && exact.counter.books().uncommitted() <= 10);
        answer(&mut world, &batch);
        assert_eq!(leave(&errand), Ok(back));
        assert!(exact.counter.books().uncommitted() <= 10);
        while exact.counter.add(-1).is_ok() {}
    }
}

#[test]
fn a_refund_of_nearly_a_block_does_not_wait_for_a_second_commit_to_make_room() {
    let mut world = World::new(Faults::default(), 1, 10);
    let exact = exact_at_8_of_10(&mut world);
    assert!(add(&mut world, &exact, 92));
    let errand = run_errand(&mut world, &exact, Move::Refund(10));
    let batch = sent(&mut world);
    while exact.counter.add(-1).is_ok() {}
    let others = exact.counter.position();
    answer(&mut world, &batch);
    assert!(!errand.is_decided());
    assert_eq!(exact.counter.position(), others - 10);
    let batch = sent(&mut world);
    answer(&mut world, &batch);
    assert_eq!((leave(&errand), world.stored(&exact)), (Ok(10), others - 10));
}
