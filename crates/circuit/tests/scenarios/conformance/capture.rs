//! Scenarios of captures.

use std::time::Duration;

use tidemark_circuit::Current;

use super::support::{Captured, Trace, circuits, driven, name};

#[test]
fn cap_01_what_is_captured_in_a_cascade_names_the_circuit() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        conduit.get(name("answer")).emit(42);
        let captures = captured.drain();
        let [capture] = &captures[..] else { panic!("one capture, not {}", captures.len()) };
        assert_eq!((*capture.emission(), capture.name()), (42, name("answer")));
        assert_eq!(capture.current(), circuit.current());
        assert_ne!(*capture.current(), Current::of_thread());
        assert!(capture.state().is_empty(), "nothing is said about the pipe");
    }
}

#[test]
fn cap_02_ticks_are_captured_in_the_circuit() {
    for circuit in driven() {
        let conduit = circuit.conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        let ticks = Trace::new();
        let targets = [conduit.get(name("ticks")).clone(), ticks.pipe(&circuit)];
        let target = circuit.fan_out(&targets).expect("open");
        let ticker = circuit.ticker(Duration::from_millis(5), &target).expect("open");
        ticks.wait_for(1);
        ticker.close_and_settle().expect("outside");
        assert_eq!(captured.drain()[0].current(), circuit.current());
    }
}

#[test]
fn cap_03_what_a_receptor_emits_is_captured_in_the_circuit() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        let target = conduit.get(name("next")).clone();
        let pipe = circuit.pipe(move |value: u64| target.emit(value + 1)).expect("open");
        pipe.emit(10);
        circuit.settle().expect("outside");
        let captures = captured.drain();
        assert_eq!(captures.len(), 1);
        assert_eq!((*captures[0].emission(), captures[0].current()), (11, circuit.current()));
    }
}
