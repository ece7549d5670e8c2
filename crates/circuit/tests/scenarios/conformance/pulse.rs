//! Scenarios of pulses, which are among those of circuits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::support::{Gate, Trace, circuits, driven, wait_until};

#[test]
fn cir_54_a_closed_circuit_has_no_pulse() {
    for circuit in circuits() {
        circuit.close_and_settle().expect("outside");
        for _ in 0..6 {
            assert_eq!(circuit.pulse(), Ok(None));
        }
    }
}

#[test]
fn cir_55_a_pulse_waits_behind_a_cascade_and_does_nothing_else() {
    for circuit in driven() {
        let (gate, reached) = (Gate::default(), Gate::default());
        let calls = Arc::new(AtomicU64::new(0));
        let (door, arrived, count) = (gate.clone(), reached.clone(), Arc::clone(&calls));
        let second = circuit
            .pipe(move |()| {
                arrived.open();
                door.pass();
                count.fetch_add(1, Ordering::Relaxed);
            })
            .expect("open");
        let count = Arc::clone(&calls);
        let first = circuit
            .pipe(move |()| {
                count.fetch_add(1, Ordering::Relaxed);
                second.emit(());
            })
            .expect("open");
        let before = (first.subject().clone(), first.subject().state().clone());
        first.emit(());
        reached.pass();
        let (asking, admitted) = (circuit.clone(), circuit.stats().admitted);
        let thread = thread::spawn(move || asking.pulse());
        wait_until(|| circuit.stats().admitted > admitted, "the pulse is in the queue");
        let opened = Instant::now();
        gate.open();
        let pulse = thread.join().unwrap().expect("outside").expect("open");
        assert!(pulse.start() <= opened && opened <= pulse.dequeued(), "it waits for what was before it");
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(first.subject(), &before.0);
        assert!(first.subject().state().same(&before.1));
    }
}

#[test]
fn cir_56_a_receptor_cannot_ask_for_a_pulse() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (inside, seen) = (circuit.clone(), trace.clone());
        let pipe = circuit.pipe(move |()| seen.push(inside.pulse().unwrap_err().to_string())).expect("open");
        pipe.emit(());
        circuit.settle().expect("outside");
        assert_eq!(
            trace.take(),
            [
                "Cannot call Circuit::pulse from within the circuit's context: emit what is to come later, or wait outside of it"
            ]
        );
        circuit.close();
    }
}

#[test]
fn cir_57_the_times_of_a_pulse_are_in_order() {
    for circuit in circuits() {
        let pulse = circuit.pulse().expect("outside").expect("open");
        assert!(pulse.start() <= pulse.enqueued() && pulse.enqueued() <= pulse.stop());
        assert!(pulse.start() <= pulse.dequeued() && pulse.dequeued() <= pulse.stop());
        assert!(pulse.waited() <= pulse.elapsed());
    }
}
