//! What an idle circuit costs: memory, counted by the allocator, and nothing else. The only test of its binary, so that nothing
//! else is counted.
#![allow(unsafe_code, reason = "an allocator is unsafe to write; this one counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidemark_circuit::{Circuit, Pipe};

/// How many circuits there are at once.
const CIRCUITS: usize = 100_000;

/// What a circuit alone may take, in bytes.
const CIRCUIT_BYTES_MAX: usize = 640;

/// What one may take with a pipe that was used: the pipe, and the first part of the queue.
const USED_BYTES_MAX: usize = 1024;

/// How many circuits there are for whose receptors one has to wait.
const SLOW_CIRCUITS: usize = 200;

struct Counting;

/// Bytes that are allocated and not freed.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does what is asked; counting touches no memory but the counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the threads' pool that all circuits share may keep for each circuit that was once waiting in it.
const KEPT_BYTES_MAX: usize = 16;

/// What `make` made this many of, and the bytes that each takes.
fn measured<T>(make: impl Fn() -> T) -> (Vec<T>, usize) {
    let mut all = Vec::with_capacity(CIRCUITS);
    let before = IN_USE.load(Ordering::Relaxed);
    all.extend((0..CIRCUITS).map(|_| make()));
    let after = IN_USE.load(Ordering::Relaxed);
    (all, (after - before) / CIRCUITS)
}

#[test]
fn a_hundred_thousand_idle_circuits_take_little_memory_and_each_does_its_work() {
    // What all circuits share is there before anything is counted.
    let first = Circuit::new();
    let first_pipe: Pipe<u64> = first.pipe(|_| ()).expect("open");
    first_pipe.emit(1);
    first.settle().expect("outside");
    let in_use = IN_USE.load(Ordering::Relaxed);
    let (circuits, alone) = measured(Circuit::new);

    let sum = Arc::new(AtomicU64::new(0));
    let pipe_of = |circuit: &Circuit| -> Pipe<u64> {
        let sum = Arc::clone(&sum);
        circuit.pipe(move |value| _ = sum.fetch_add(value, Ordering::Relaxed)).expect("open")
    };
    let mut pipes = Vec::with_capacity(CIRCUITS);
    let before = IN_USE.load(Ordering::Relaxed);
    pipes.extend(circuits.iter().map(pipe_of));
    let with_pipe = alone + (IN_USE.load(Ordering::Relaxed) - before) / CIRCUITS;
    pipes.iter().zip(0..).for_each(|(pipe, value)| pipe.emit(value));
    circuits.iter().for_each(|circuit| circuit.settle().expect("outside"));
    assert_eq!(sum.load(Ordering::Relaxed), (0..CIRCUITS as u64).sum());
    let after_emission = alone + (IN_USE.load(Ordering::Relaxed) - before) / CIRCUITS;

    println!(
        "bytes of an idle circuit: {alone} alone, {with_pipe} with a pipe, {after_emission} after an emission"
    );
    assert!(
        alone <= CIRCUIT_BYTES_MAX,
        "a circuit alone takes {alone} bytes, of at most {CIRCUIT_BYTES_MAX}"
    );
    assert!(
        after_emission <= USED_BYTES_MAX,
        "a circuit that was used takes {after_emission} bytes, of at most {USED_BYTES_MAX}"
    );

    // Who waits for long is noted in the circuit, and no trace of it is to stay.
    let before = IN_USE.load(Ordering::Relaxed);
    let slow: Vec<(Circuit, Pipe<u64>)> = (0..SLOW_CIRCUITS)
        .map(|_| {
            let circuit = Circuit::new();
            let pipe = circuit.pipe(|_| thread::sleep(Duration::from_millis(1))).expect("open");
            pipe.emit(1);
            circuit.settle().expect("outside");
            (circuit, pipe)
        })
        .collect();
    let waited_for = (IN_USE.load(Ordering::Relaxed) - before) / SLOW_CIRCUITS;
    assert!(waited_for <= USED_BYTES_MAX, "a circuit that was waited for takes {waited_for} bytes");

    // What a circuit's threads still have to do for it, they do now.
    drop((pipes, circuits, sum, slow));
    let end = Instant::now() + Duration::from_mins(1);
    let kept = || IN_USE.load(Ordering::Relaxed).saturating_sub(in_use);
    while kept() > CIRCUITS * KEPT_BYTES_MAX && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(kept() <= CIRCUITS * KEPT_BYTES_MAX, "{} bytes of circuits that are gone", kept());
}
