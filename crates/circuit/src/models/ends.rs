//! Ends of circuits that other threads still use: no emission is left over, and no thread waits for ever.

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::thread;

use super::tasks::block_on;
use super::{Sum, circuit, explore};
use crate::Circuit;
use crate::CircuitBuilder;
use crate::Overflow;
use crate::Pipe;
use crate::RunBy;
use crate::Subscription;
use crate::ThreadPool;
use crate::sync::Arc;

/// A value that loom reports if it is left over, or dropped twice.
type Counted = Arc<()>;

/// A pipe that only takes values.
fn sink<E: Send + 'static>(circuit: &Circuit) -> Pipe<E> {
    circuit.pipe(|_: E| ()).expect("open")
}

#[test]
fn loom_a_lane_is_used_and_dropped_while_the_circuit_closes() {
    explore(2, || {
        let circuit = circuit(RunBy::Waiters);
        let pipe = sink::<Counted>(&circuit);
        let mut lane = circuit.lane().expect("open");
        let other = thread::spawn(move || {
            lane.emit(&pipe, Counted::new(()));
            drop(lane);
        });
        circuit.close_and_settle().expect("outside");
        other.join().unwrap();
    });
}

#[test]
fn loom_a_lane_is_dropped_last() {
    explore(2, || {
        let circuit = circuit(RunBy::Waiters);
        let sum = Sum::new();
        let pipe = sum.pipe(&circuit);
        let mut lane = circuit.lane().expect("open");
        let other = thread::spawn(move || {
            lane.emit(&pipe, 1);
            drop(pipe);
            drop(lane);
        });
        drop(circuit);
        other.join().unwrap();
        assert_eq!(sum.get(), 1, "handled without a waiter");
    });
}

#[test]
fn loom_a_thread_ends_when_the_last_lane_goes() {
    explore(1, || {
        let circuit = circuit(RunBy::Thread);
        let lane = circuit.lane().expect("open");
        let other = thread::spawn(move || drop(lane));
        drop(circuit);
        other.join().unwrap();
        // That the circuit's thread ends is what is to be proved.
    });
}

/// Says that it was dropped.
struct Dropped(StdArc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn loom_a_second_closer_that_waits_sees_the_end() {
    explore(2, || {
        let circuit = circuit(RunBy::Waiters);
        let is_dropped: StdArc<AtomicBool> = StdArc::default();
        let dropped = Dropped(StdArc::clone(&is_dropped));
        let _pipe = circuit.pipe(move |_: u64| _ = &dropped).expect("open");
        let other = thread::spawn({
            let circuit = circuit.clone();
            move || circuit.close()
        });
        circuit.close_and_settle().expect("outside");
        assert!(is_dropped.load(Ordering::Relaxed), "the waiter relies on it");
        other.join().unwrap();
    });
}

#[test]
fn loom_a_thread_that_closes_a_subscription_of_a_closing_circuit_and_waits_sees_its_end() {
    explore(2, || {
        let circuit = circuit(RunBy::Waiters);
        let conduit = circuit.conduit::<u64>().expect("open");
        let subscriber = circuit.subscriber(|_, _| ()).expect("open");
        let has_ended: StdArc<AtomicBool> = StdArc::default();
        let ended = StdArc::clone(&has_ended);
        let on_close = move |_: &Subscription<u64>| ended.store(true, Ordering::Relaxed);
        let subscription = conduit.subscribe_with(&subscriber, on_close).expect("open");
        let other = thread::spawn({
            let circuit = circuit.clone();
            move || circuit.close()
        });
        subscription.close_and_settle().expect("outside");
        assert!(has_ended.load(Ordering::Relaxed), "the waiter relies on it");
        other.join().unwrap();
    });
}

fn close(circuit: Circuit) {
    circuit.close_and_settle().expect("outside");
}

/// Emits a value that keeps its circuit while another thread ends it.
fn bring_something_late(preemptions: usize, run_by: fn() -> RunBy, end: fn(Circuit)) {
    explore(preemptions, move || {
        let circuit = circuit(run_by());
        let pipe = sink::<(Counted, Pipe<()>)>(&circuit);
        let held = sink::<()>(&circuit);
        let other = thread::spawn(move || pipe.emit((Counted::new(()), held)));
        end(circuit);
        other.join().unwrap();
    });
}

#[test]
fn loom_an_owner_drops_a_circuit_that_others_emit_to() {
    bring_something_late(2, || RunBy::Owner, drop);
}

#[test]
fn loom_a_waiter_ends_a_circuit_that_other_threads_emit_to() {
    bring_something_late(2, || RunBy::Waiters, close);
}

#[test]
fn loom_a_thread_ends_a_circuit_that_others_emit_to() {
    bring_something_late(1, || RunBy::Thread, close);
}

#[test]
fn loom_a_pool_ends_a_circuit_that_others_emit_to() {
    bring_something_late(1, || RunBy::Pool(ThreadPool::new(1).expect("a thread")), close);
}

#[test]
fn loom_an_owner_drops_a_circuit_with_a_lane_in_use() {
    explore(2, || {
        let circuit = circuit(RunBy::Owner);
        let pipe = sink::<(Counted, Pipe<()>)>(&circuit);
        let held = sink::<()>(&circuit);
        let mut lane = circuit.lane().expect("open");
        let other = thread::spawn(move || {
            lane.emit(&pipe, (Counted::new(()), held));
            drop(lane);
        });
        drop(circuit);
        other.join().unwrap();
    });
}

#[test]
fn loom_two_owners_drop_a_circuit_that_a_task_waits_for() {
    explore(2, || {
        let circuit = circuit(RunBy::Owner);
        let pipe = sink::<Counted>(&circuit);
        pipe.emit(Counted::new(()));
        let settled = circuit.settled().expect("outside");
        let owners = [circuit.clone(), circuit].map(|circuit| thread::spawn(move || drop(circuit)));
        block_on(settled);
        owners.into_iter().for_each(|owner| owner.join().unwrap());
    });
}

/// Tries to emit a value of so many words while another thread closes the circuit: what is taken is handled or counted before the
/// end.
fn try_to_emit_meanwhile<const WORDS: usize>(preemptions: usize, builder: fn() -> CircuitBuilder) {
    explore(preemptions, move || {
        let circuit = builder().build().expect("valid");
        let sum = Sum::new();
        let end = sum.clone();
        let pipe = circuit.pipe(move |value: [u64; WORDS]| end.add(value[WORDS - 1])).expect("open");
        let other = thread::spawn(move || u64::from(pipe.try_emit([1; WORDS]).is_ok()));
        circuit.close_and_settle().expect("outside");
        let taken = other.join().unwrap();
        assert_eq!(sum.get() + circuit.dropped(), taken, "what is taken is not lost");
    });
}

fn run_by_waiters() -> CircuitBuilder {
    Circuit::builder().run_by(RunBy::Waiters)
}

fn run_by_a_thread() -> CircuitBuilder {
    Circuit::builder().run_by(RunBy::Thread)
}

#[test]
fn loom_a_waiting_caller_handles_what_try_emit_takes_at_the_close() {
    try_to_emit_meanwhile::<1>(2, run_by_waiters);
}

#[test]
fn loom_a_waiting_caller_handles_a_large_value_that_try_emit_takes_at_the_close() {
    try_to_emit_meanwhile::<4>(2, run_by_waiters);
}

#[test]
fn loom_a_thread_handles_what_try_emit_takes_at_the_close() {
    try_to_emit_meanwhile::<1>(1, run_by_a_thread);
}

#[test]
fn loom_a_pool_handles_what_try_emit_takes_at_the_close() {
    try_to_emit_meanwhile::<1>(1, || {
        Circuit::builder().run_by(RunBy::Pool(ThreadPool::new(1).expect("a thread")))
    });
}

#[test]
fn loom_a_bound_that_rejects_loses_nothing_that_try_emit_takes_at_the_close() {
    try_to_emit_meanwhile::<1>(2, || run_by_waiters().bounded(1, Overflow::Reject));
}

#[test]
fn loom_a_bound_that_drops_the_oldest_loses_nothing_that_try_emit_takes_at_the_close() {
    try_to_emit_meanwhile::<1>(2, || run_by_waiters().bounded(1, Overflow::DropOldest));
}

#[test]
fn loom_a_bound_that_blocks_loses_nothing_that_try_emit_takes_at_the_close() {
    try_to_emit_meanwhile::<1>(1, || run_by_a_thread().bounded(1, Overflow::Block));
}
