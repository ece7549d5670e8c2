//! All interleavings of two or three threads at a striped counter, explored by loom.
//! `./check models` runs them.

use crate::counter::Counter;
use crate::promise::Promise;
use crate::{Kind, Refusal};
use loom::sync::Arc;
use loom::sync::atomic::AtomicI64;
use loom::thread;
use std::sync::atomic::Ordering;

/// Moves with an explicit slot: loom's threads are not system threads.
impl Counter {
    fn take_as(&self, slot: usize, amount: u64) -> Result<(), Refusal> {
        self.carry_out_as(slot, crate::ledger::Move::Take(amount)).map(|_| ())
    }

    fn refund_as(&self, slot: usize, amount: u64) -> Result<u64, Refusal> {
        self.carry_out_as(slot, crate::ledger::Move::Refund(amount))
    }
}

fn quota(limit: i64) -> Arc<Counter> {
    let counter = Counter::new(Kind::Quota { limit }, Promise::Relaxed { cap: 1000 }, 0);
    counter.stripe();
    Arc::new(counter)
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    explore_with(None, model);
}

/// Explores with at most `preemptions` preemptions, for models that are too large otherwise.
fn explore_with(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// All of what is left is admitted, and no more, whichever thread's piece it is in.
#[test]
fn loom_takes_of_two_threads_are_admitted_up_to_the_limit() {
    explore(|| {
        let counter = quota(5);
        // Opens a piece for slot 0: half of the four units that are left.
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let other = counter.clone();
        let thread = thread::spawn(move || u32::from(other.take_as(1, 3).is_ok()) * 3);
        let mine = u32::from(counter.take_as(0, 1).is_ok()) + u32::from(counter.take_as(0, 1).is_ok());
        let theirs = thread.join().unwrap();
        // Any order but the one in which the large take is last admits four.
        assert!([(1, 3), (2, 0)].contains(&(mine, theirs)), "{mine} and {theirs}");
        assert_eq!(counter.books().position(), i64::from(1 + mine + theirs));
    });
}

/// A refusal is correct: the free units did not suffice, even with a concurrent take under way.
#[test]
fn loom_nothing_is_refused_while_units_are_free() {
    explore(|| {
        let counter = quota(5);
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let other = counter.clone();
        let thread = thread::spawn(move || other.take_as(1, 3));
        let mine = counter.take_as(0, 1);
        let theirs = thread.join().unwrap();
        assert_eq!((mine, theirs), (Ok(()), Ok(())));
        assert_eq!(counter.books().available(), Some(0));
        assert_eq!(counter.take_as(0, 1), Err(Refusal::Exhausted));
    });
}

/// A thread that refunds what it took makes room for one take, not for two.
#[test]
fn loom_refunds_make_room_for_as_much_as_was_given_back() {
    explore(|| {
        let counter = quota(2);
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let held = Arc::new(AtomicI64::new(1));
        let (other, theirs) = (counter.clone(), held.clone());
        let thread = thread::spawn(move || {
            if other.take_as(1, 1).is_ok() {
                assert!(theirs.fetch_add(1, Ordering::SeqCst) < 2);
            }
        });
        held.fetch_sub(1, Ordering::SeqCst);
        assert_eq!(counter.refund_as(0, 1), Ok(1));
        if counter.take_as(0, 1).is_ok() {
            assert!(held.fetch_add(1, Ordering::SeqCst) < 2);
        }
        thread.join().unwrap();
        assert_eq!(counter.books().position(), held.load(Ordering::SeqCst));
        assert_eq!(held.load(Ordering::SeqCst), 2, "both takes fit");
    });
}

/// Sealed and open units add up to what was admitted, at whatever point a commit cuts.
#[test]
fn loom_a_commit_cuts_between_moves() {
    explore(|| {
        let counter = quota(100);
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let other = counter.clone();
        let thread = thread::spawn(move || {
            let sealed = other.seal().unwrap_or(0);
            other.acknowledge();
            sealed
        });
        assert_eq!(counter.take_as(0, 3), Ok(()));
        assert_eq!(counter.refund_as(0, 2), Ok(2));
        let sealed = thread.join().unwrap();
        let books = counter.books();
        assert!([1, 2, 4].contains(&sealed), "{sealed}");
        assert_eq!((books.durable(), books.sealed(), books.open()), (sealed, 0, 2 - sealed));
    });
}

/// A lowered limit holds for every take that begins after the change.
#[test]
fn loom_a_limit_that_is_lowered_holds_from_then_on() {
    explore(|| {
        let counter = quota(10);
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let other = counter.clone();
        let thread = thread::spawn(move || {
            other.set_kind(Kind::Quota { limit: 1 });
            let after = other.take_as(1, 1);
            (after, other.books().position())
        });
        let mine = counter.take_as(0, 2);
        let (after, seen) = thread.join().unwrap();
        assert_eq!(after, Err(Refusal::Exhausted));
        // A take that was accepted before the change is visible after it.
        assert_eq!(seen, if mine.is_ok() { 3 } else { 1 });
    });
}

/// A cold counter becomes striped during a concurrent move.
#[test]
fn loom_no_move_is_lost_while_the_form_changes() {
    explore(|| {
        let counter = Arc::new(Counter::new(Kind::Quota { limit: 3 }, Promise::Relaxed { cap: 1000 }, 0));
        let other = counter.clone();
        let thread = thread::spawn(move || other.stripe());
        assert_eq!(counter.take_as(0, 1), Ok(()));
        assert_eq!(counter.take_as(0, 2), Ok(()));
        assert_eq!(counter.take_as(0, 1), Err(Refusal::Exhausted));
        thread.join().unwrap();
        assert_eq!(counter.books().position(), 3);
    });
}

/// Of three threads, one is refused only if the others have all units.
#[test]
fn loom_three_threads_share_what_is_left() {
    explore_with(Some(3), || {
        let counter = quota(3);
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|slot| {
                let counter = counter.clone();
                thread::spawn(move || u32::from(counter.take_as(slot, 1).is_ok()))
            })
            .collect();
        let mine = u32::from(counter.take_as(0, 1).is_ok());
        let theirs: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(mine + theirs, 2);
    });
}

/// An optimistic reader sees all moves that have ended, and each unit exactly once while pieces
/// change hands.
#[test]
fn loom_a_glance_sees_all_units_of_which_each_is_in_one_place() {
    explore(|| {
        let counter = quota(5);
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let other = counter.clone();
        let thread = thread::spawn(move || {
            assert_eq!(other.take_as(1, 1), Ok(()));
            other.seal();
        });
        let state = counter.state();
        assert!([1, 2].contains(&state.position()), "{state:?}");
        assert!([0, 1, 2].contains(&state.sealed()), "{state:?}");
        thread.join().unwrap();
        assert_eq!(counter.state(), counter.books());
    });
}

/// As above, for a reader that also moves the counter: it sees its own move.
#[test]
fn loom_a_glance_sees_the_own_moves() {
    explore_with(Some(3), || {
        let counter = quota(9);
        assert_eq!(counter.take_as(0, 1), Ok(()));
        let other = counter.clone();
        let thread = thread::spawn(move || other.acknowledge());
        assert_eq!(counter.take_as(0, 1), Ok(()));
        assert_eq!(counter.state().position(), 2);
        thread.join().unwrap();
    });
}
