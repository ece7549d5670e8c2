//! Cost of an idle circuit: memory, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::alone;
use crate::counting::bytes_in_use;
use crate::limit::wait_until;
use tidemark_circuit::{Circuit, Pipe};

/// Number of circuits that exist at the same time.
const CIRCUITS: usize = 100_000;

/// Limit for a circuit alone, in bytes.
const CIRCUIT_BYTES_MAX: usize = 640;

/// Limit for a circuit with a used pipe, in bytes: the pipe, and the first part of the queue.
const USED_BYTES_MAX: usize = 1024;

/// Number of circuits whose receptors a caller has to wait for.
const SLOW_CIRCUITS: usize = 200;

/// Limit, in bytes, of what the shared thread pool may keep for each circuit that once waited in
/// it.
const KEPT_BYTES_MAX: usize = 16;

/// Makes `CIRCUITS` values; returns them, and the bytes that each takes.
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
    // Allocates what all circuits share before anything is counted.
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

    // The circuit notes a caller that waits for long; no trace of that note may stay.
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

    // The circuits' threads do their remaining work now.
    drop((pipes, circuits, sum, slow));
    let kept = || bytes_in_use().saturating_sub(in_use);
    wait_until(|| kept() <= CIRCUITS * KEPT_BYTES_MAX, "the memory of circuits that are gone is given back");
}
