//! What emitting costs in memory: nothing, however long it goes on.
//!
//! `SOAK=1000000000 cargo test --release --test soak -- --ignored` is the long one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tidemark_circuit::{Circuit, Flow, Name, Pipe, Registrar, RunBy, Subject, ThreadPool};

/// The system's allocator, which counts what it is asked for.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator.
#[allow(unsafe_code, reason = "an allocator is unsafe to write")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        OF_THREAD.set(OF_THREAD.get() + 1);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations are counted for the whole process, so these tests come one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many allocations this thread makes while this runs, once it has run before.
fn allocations_of(mut run: impl FnMut()) -> u64 {
    (0..3).for_each(|_| run());
    let before = OF_THREAD.get();
    run();
    OF_THREAD.get() - before
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

/// Emits, lets the owner run some, emits more: the queues are never far from empty.
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

#[test]
fn circuits_with_other_drivers_take_values_without_allocating() {
    let _alone = alone();
    let pool = ThreadPool::new(1).expect("a thread");
    for (run_by, limit) in [(RunBy::Waiters, 1), (RunBy::Thread, 6_000), (RunBy::Pool(pool), 6_000)] {
        let circuit = circuit(run_by);
        let (sum, pipe) = sum(&circuit);
        let run = || {
            for _ in 0..2_000 {
                (0..3).for_each(|value| pipe.emit(value));
                circuit.settle().expect("outside");
            }
        };
        run();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        run();
        // Fewer than values, where a circuit gives memory back when it has had nothing to do for a moment; none otherwise.
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert!(allocations < limit, "{allocations} allocations for 6000 values");
        assert!(sum.load(Ordering::Relaxed) > 0);
    }
}

/// The resident memory of this process, in pages.
fn resident_pages() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages")
}

#[test]
#[ignore = "takes minutes; SOAK says how many values"]
fn memory_does_not_grow_however_many_values_come() {
    let _alone = alone();
    let count: u64 = std::env::var("SOAK").map_or(100_000_000, |count| count.parse().expect("a number"));
    for run_by in [RunBy::Thread, RunBy::SharedPool, RunBy::Waiters] {
        let circuit = circuit(run_by);
        let (sum, pipe) = sum(&circuit);
        let source = conduit(&circuit, &pipe);
        let mut lane = circuit.lane().expect("open");
        let share = count / 3;
        let mut emitted = 0_u64;
        let mut after_warm_up = 0;
        let mut emit_to = |until: u64| {
            while emitted < until {
                // Through the shared queue, a lane, and the transit queue; never more than so many at once.
                for _ in 0..1_000 {
                    pipe.emit(1);
                    lane.emit(&pipe, 1);
                    source.emit(1);
                }
                emitted += 4_000;
                circuit.settle().expect("outside");
            }
            thread::yield_now();
            emitted
        };
        for part in 1..=10 {
            emit_to(share / 10 * part);
            if part == 1 {
                after_warm_up = resident_pages();
            }
        }
        let grown = resident_pages().saturating_sub(after_warm_up);
        let emitted = emit_to(share);
        assert_eq!(sum.load(Ordering::Relaxed), emitted);
        // A megabyte is noise of allocators.
        assert!(grown < 256, "{grown} pages more after {emitted} values");
        println!("{emitted} values, {grown} pages more");
        circuit.close_and_settle().expect("outside");
    }
}
