//! Memory that emitting costs: none, however long it continues.
//!
//! `SOAK=1000000000 cargo test --release -p tidemark-circuit --test memory -- --ignored` is the
//! long run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::counting::{allocations_counted, allocations_here, bytes_in_use, count_this_thread};
use crate::limit::wait_until;
use crate::{alone, without_limit};
use tidemark_circuit::{Circuit, Flow, Name, Pipe, Registrar, RunBy, Subject, ThreadPool};

/// Counts this thread's allocations during `run`, after a first, uncounted call.
fn allocations_of(mut run: impl FnMut()) -> u64 {
    (0..3).for_each(|_| run());
    let before = allocations_here();
    run();
    allocations_here() - before
}

fn circuit(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("a thread")
}

fn sum(circuit: &Circuit) -> (Arc<AtomicU64>, Pipe<u64>) {
    let sum = Arc::new(AtomicU64::new(0));
    let added = Arc::clone(&sum);
    let pipe = circuit.pipe(move |value: u64| _ = added.fetch_add(value, Ordering::Relaxed)).expect("open");
    (sum, pipe)
}

/// A conduit's pipe with two subscribers.
fn conduit(circuit: &Circuit, target: &Pipe<u64>) -> Pipe<u64> {
    let conduit = circuit.conduit::<u64>().expect("open");
    for _ in 0..2 {
        let target = target.clone();
        let subscriber = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| registrar.pipe(&target))
            .expect("open");
        conduit.subscribe(&subscriber).expect("open");
    }
    conduit.get(Name::new("steady").expect("valid")).clone()
}

/// Alternates emissions and runs by the owner: the queues are never far from empty.
fn steadily(circuit: &Circuit, mut emit: impl FnMut(u64)) {
    for round in 0..2_000 {
        (0..round % 40).for_each(&mut emit);
        while circuit.run(64) {}
    }
}

#[test]
fn a_pipe_takes_values_without_allocating() {
    let _alone = alone();
    let circuit = circuit(RunBy::Owner);
    let (sum, pipe) = sum(&circuit);
    assert_eq!(allocations_of(|| steadily(&circuit, |value| pipe.emit(value))), 0);
    assert!(sum.load(Ordering::Relaxed) > 0);
}

#[test]
fn values_of_several_slots_are_taken_without_allocating() {
    let _alone = alone();
    let circuit = circuit(RunBy::Owner);
    let (sum, next) = sum(&circuit);
    let pipe = circuit.pipe(move |value: [u64; 9]| next.emit(value[8])).expect("open");
    assert_eq!(allocations_of(|| steadily(&circuit, |value| pipe.emit([value; 9]))), 0);
    assert!(sum.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_lane_takes_values_without_allocating() {
    let _alone = alone();
    let circuit = circuit(RunBy::Owner);
    let (sum, pipe) = sum(&circuit);
    let mut lane = circuit.lane().expect("open");
    assert_eq!(allocations_of(|| steadily(&circuit, |value| lane.emit(&pipe, value))), 0);
    assert!(sum.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_circuit_sends_itself_values_without_allocating() {
    let _alone = alone();
    let circuit = circuit(RunBy::Owner);
    let (sum, pipe) = sum(&circuit);
    let next = pipe.clone();
    let spread = circuit.pipe(move |value: u64| (0..value).for_each(|value| next.emit(value))).expect("open");
    assert_eq!(allocations_of(|| steadily(&circuit, |value| spread.emit(value))), 0);
    assert!(sum.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_conduit_and_operators_pass_values_on_without_allocating() {
    let _alone = alone();
    let circuit = circuit(RunBy::Owner);
    let (sum, pipe) = sum(&circuit);
    let source = conduit(&circuit, &pipe).prepend(&Flow::new().map(|value: u64| value + 1)).expect("open");
    assert_eq!(allocations_of(|| steadily(&circuit, |value| source.emit(value))), 0);
    assert!(sum.load(Ordering::Relaxed) > 0);
    circuit.close();
}

/// As [`sum`]; the thread that runs the circuit is counted.
fn counted_sum(circuit: &Circuit) -> (Arc<AtomicU64>, Pipe<u64>) {
    let (sum, next) = sum(circuit);
    let pipe = circuit.pipe(move |value: u64| {
        count_this_thread();
        next.emit(value);
    });
    (sum, pipe.expect("open"))
}

#[test]
fn circuits_that_waiters_run_take_values_without_allocating() {
    let _alone = alone();
    let circuit = circuit(RunBy::Waiters);
    let (sum, pipe) = sum(&circuit);
    let run = || {
        for _ in 0..2_000 {
            (0..3).for_each(|value| pipe.emit(value));
            circuit.settle().expect("outside");
        }
    };
    assert_eq!(allocations_of(run), 0);
    assert!(sum.load(Ordering::Relaxed) > 0);
}

/// A circuit without work soon gives memory back, and allocates it again: so these circuits always
/// have work. The circuit holds each value until the next one is there.
#[test]
fn busy_circuits_with_other_drivers_take_values_without_allocating() {
    /// Rounds that are not counted; after them, every segment of the queue is allocated.
    const WARM_UP: u64 = 5_000;
    const ROUNDS: u64 = 10_000;
    let _alone = alone();
    let pool = ThreadPool::new(1).expect("a thread");
    for run_by in [RunBy::Thread, RunBy::Pool(pool)] {
        let circuit = circuit(run_by);
        let (sum, values) = counted_sum(&circuit);
        let [emitted, handled] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let (until, round) = (Arc::clone(&emitted), Arc::clone(&handled));
        let hold = circuit.pipe(move |number: u64| {
            wait_until(|| until.load(Ordering::Acquire) > number, "the next round is emitted");
            round.store(number + 1, Ordering::Release);
        });
        let hold = hold.expect("open");
        count_this_thread();
        let mut before = 0;
        for number in 0..=ROUNDS {
            if number == WARM_UP {
                before = allocations_counted();
            }
            wait_until(|| handled.load(Ordering::Acquire) + 1 >= number, "the circuit is one round behind");
            hold.emit(number);
            (0..3).for_each(|value| values.emit(value));
            emitted.store(number, Ordering::Release);
        }
        let allocations = allocations_counted() - before;
        emitted.store(u64::MAX, Ordering::Release);
        circuit.settle().expect("outside");
        assert_eq!(sum.load(Ordering::Relaxed), (ROUNDS + 1) * 3);
        // The system's own calls may allocate now and then, but nothing allocates for each value.
        assert!(allocations < 10, "{allocations} allocations for {} values", (ROUNDS - WARM_UP) * 4);
    }
}

#[test]
fn waiting_for_a_circuit_that_is_done_allocates_nothing() {
    let _alone = alone();
    let pool = ThreadPool::new(1).expect("a thread");
    for run_by in [RunBy::Thread, RunBy::Waiters, RunBy::Pool(pool)] {
        let circuit = circuit(run_by);
        let (_, pipe) = sum(&circuit);
        pipe.emit(1);
        let wait = || (0..1_000).for_each(|_| circuit.settle().expect("outside"));
        assert_eq!(allocations_of(wait), 0);
    }
}

/// Limit, in bytes, of the growth after a flood, or after any number of values: what a circuit
/// keeps for the next ones.
const KEPT_BYTES_MAX: usize = 512 << 10;

#[test]
fn the_memory_of_a_flood_comes_back() {
    const FLOOD: u64 = 1_000_000;
    let _alone = alone();
    let pool = ThreadPool::new(1).expect("a thread");
    for run_by in [RunBy::Thread, RunBy::Pool(pool)] {
        let circuit = circuit(run_by);
        let (sum, pipe) = sum(&circuit);
        let [(shut, door), (sent, sending)] = [(); 2].map(|()| {
            let door = Arc::new(AtomicU64::new(0));
            (Arc::clone(&door), door)
        });
        let flood = pipe.clone();
        let hold = circuit.pipe(move |()| {
            // Floods both queues: values emitted inside wait until this call ends.
            (0..FLOOD).for_each(|_| flood.emit(1));
            sent.store(1, Ordering::Release);
            wait_until(|| shut.load(Ordering::Acquire) == 1, "the door is opened");
        });
        let hold = hold.expect("open");
        pipe.emit(0);
        circuit.settle().expect("outside");
        let before = bytes_in_use();
        hold.emit(());
        (0..FLOOD).for_each(|_| pipe.emit(1));
        wait_until(|| sending.load(Ordering::Acquire) == 1, "the circuit has flooded itself");
        let flooded = bytes_in_use();
        assert!(flooded - before > FLOOD as usize * 16, "both queues are full: {} bytes", flooded - before);
        door.store(1, Ordering::Release);
        circuit.settle().expect("outside");
        assert_eq!(sum.load(Ordering::Relaxed), 2 * FLOOD);
        wait_until(|| bytes_in_use() <= before + KEPT_BYTES_MAX, "the memory is given back");
    }
}

/// The resident memory of this process in pages, if the system reports it.
fn resident_pages() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok())
}

#[test]
fn memory_does_not_grow_while_three_million_values_come() {
    let _alone = alone();
    for run_by in [RunBy::Thread, RunBy::SharedPool, RunBy::Waiters] {
        soak(run_by, 1_000_000);
    }
}

#[test]
#[ignore = "takes minutes; SOAK says how many values"]
fn memory_does_not_grow_however_many_values_come() {
    let _alone = without_limit();
    let count: u64 = std::env::var("SOAK").map_or(100_000_000, |count| count.parse().expect("a number"));
    for run_by in [RunBy::Thread, RunBy::SharedPool, RunBy::Waiters] {
        let before = resident_pages();
        soak(run_by, count / 3);
        if let (Some(before), Some(after)) = (before, resident_pages()) {
            let grown = after.saturating_sub(before);
            // Some megabytes are noise of allocators, and the stack of a thread.
            assert!(grown < 2048, "{grown} pages more after {count} values");
        }
    }
}

/// Makes a circuit handle `count` values; compares the memory after a tenth of them with that after
/// all.
fn soak(run_by: RunBy, count: u64) {
    let circuit = circuit(run_by);
    let (sum, pipe) = sum(&circuit);
    let source = conduit(&circuit, &pipe);
    let mut lane = circuit.lane().expect("open");
    let mut emitted = 0_u64;
    let mut emit_to = |until: u64| {
        while emitted < until {
            // Through the shared queue, a lane, and the transit queue; never more than this many at
            // the same time.
            for _ in 0..1_000 {
                pipe.emit(1);
                lane.emit(&pipe, 1);
                source.emit(1);
            }
            emitted += 4_000;
            circuit.settle().expect("outside");
        }
        emitted
    };
    emit_to(count / 10);
    let after_warm_up = bytes_in_use();
    let emitted = emit_to(count);
    let grown = bytes_in_use().saturating_sub(after_warm_up);
    assert_eq!(sum.load(Ordering::Relaxed), emitted);
    assert!(grown < KEPT_BYTES_MAX, "{grown} bytes more after {emitted} values");
    println!("{emitted} values, {grown} bytes more");
    circuit.close_and_settle().expect("outside");
}
