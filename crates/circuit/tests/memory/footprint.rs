//! What an idle circuit costs: memory, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::alone;
use crate::counting::bytes_in_use;
use crate::limit::wait_until;
use tidemark_circuit::{Circuit, Pipe};

/// How many circuits there are at once.
const CIRCUITS: usize = 100_000;

/// What a circuit alone may take, in bytes.
const CIRCUIT_BYTES_MAX: usize = 640;

/// What one may take with a pipe that was used: the pipe, and the first part of the queue.
const USED_BYTES_MAX: usize = 1024;

/// How many circuits there are for whose receptors one has to wait.
const SLOW_CIRCUITS: usize = 200;

/// What the threads' pool that all circuits share may keep for each circuit that was once waiting in it.
const KEPT_BYTES_MAX: usize = 16;

/// What `make` made this many of, and the bytes that each takes.
fn measured<T>(make: impl Fn() -> T) -> (Vec<T>, usize) {
    let mut all = Vec::with_capacity(CIRCUITS);
    let before = bytes_in_use();
    all.extend((0..CIRCUITS).map(|_| make()));
    let after = bytes_in_use();
    (all, (after - before) / CIRCUITS)
}

#[test]
fn a_hundred_thousand_idle_circuits_take_little_memory_and_each_does_its_work() {
    let _alone = alone();
    // What all circuits share is there before anything is counted.
    let first = Circuit::new();
    let first_pipe: Pipe<u64> = first.pipe(|_| ()).expect("open");
    first_pipe.emit(1);
    first.settle().expect("outside");
    let in_use = bytes_in_use();
    let (circuits, alone) = measured(Circuit::new);

    let sum = Arc::new(AtomicU64::new(0));
    let pipe_of = |circuit: &Circuit| -> Pipe<u64> {
        let sum = Arc::clone(&sum);
        circuit.pipe(move |value| _ = sum.fetch_add(value, Ordering::Relaxed)).expect("open")
    };
    let mut pipes = Vec::with_capacity(CIRCUITS);
    let before = bytes_in_use();
    pipes.extend(circuits.iter().map(pipe_of));
    let with_pipe = alone + (bytes_in_use() - before) / CIRCUITS;
    pipes.iter().zip(0..).for_each(|(pipe, value)| pipe.emit(value));
    circuits.iter().for_each(|circuit| circuit.settle().expect("outside"));
    assert_eq!(sum.load(Ordering::Relaxed), (0..CIRCUITS as u64).sum());
    let after_emission = alone + (bytes_in_use() - before) / CIRCUITS;

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
    let before = bytes_in_use();
    let slow: Vec<(Circuit, Pipe<u64>)> = (0..SLOW_CIRCUITS)
        .map(|_| {
            let circuit = Circuit::new();
            let pipe = circuit.pipe(|_| thread::sleep(Duration::from_millis(1))).expect("open");
            pipe.emit(1);
            circuit.settle().expect("outside");
            (circuit, pipe)
        })
        .collect();
    let waited_for = (bytes_in_use() - before) / SLOW_CIRCUITS;
    assert!(waited_for <= USED_BYTES_MAX, "a circuit that was waited for takes {waited_for} bytes");

    // What a circuit's threads still have to do for it, they do now.
    drop((pipes, circuits, sum, slow));
    let kept = || bytes_in_use().saturating_sub(in_use);
    wait_until(|| kept() <= CIRCUITS * KEPT_BYTES_MAX, "the memory of circuits that are gone is given back");
}
