//! Scenarios of sinks.

use tidemark_circuit::{Capture, Current, Fiber};

use super::support::{Trace, circuits, emissions, name};

#[test]
fn snk_01_a_capture_says_where_the_value_was_emitted() {
    for circuit in circuits() {
        let trace = Trace::<Capture<u64>>::new();
        let sink = circuit.sink(&trace.pipe(&circuit)).expect("open");
        let pipe = sink.get(name("channel"));
        assert_eq!(pipe, sink.get(name("channel")));
        pipe.emit(7);
        circuit.settle().expect("outside");
        let captures = trace.take();
        assert_eq!(emissions(&captures), [7]);
        assert_eq!(captures[0].subject(), pipe.subject());
        assert_eq!(captures[0].name(), name("channel"));
        assert!(captures[0].state().same(pipe.subject().state()));
        assert_eq!(pipe.subject().enclosure(), Some(sink.subject()));
    }
}

#[test]
fn snk_02_sinks_may_share_an_endpoint() {
    for circuit in circuits() {
        let trace = Trace::<Capture<u64>>::new();
        let endpoint = trace.pipe(&circuit);
        for value in [1, 2] {
            circuit.sink(&endpoint).expect("open").get(name("channel")).emit(value);
        }
        circuit.settle().expect("outside");
        assert_eq!(emissions(&trace.take()), [1, 2]);
    }
}

#[test]
fn snk_03_values_pass_operators_before_they_are_captured() {
    for circuit in circuits() {
        let trace = Trace::<Capture<u64>>::new();
        let sink = circuit.sink(&trace.pipe(&circuit)).expect("open");
        let pool = sink.pool(&Fiber::new().diff());
        for value in [1, 1, 2] {
            pool.get(name("channel")).unwrap().emit(value);
        }
        circuit.settle().expect("outside");
        let captures = trace.take();
        assert_eq!(emissions(&captures), [1, 2]);
        for capture in captures {
            assert_eq!(capture.subject(), sink.get(name("channel")).subject());
            assert_eq!(capture.current(), circuit.current());
        }
        circuit.close();
        assert_eq!(pool.get(name("late")).unwrap_err().subject(), circuit.subject());
    }
}

#[test]
fn snk_04_an_endpoint_of_another_circuit_hears_of_the_first_caller() {
    for (first, second) in circuits().zip(circuits()) {
        let trace = Trace::<Capture<u64>>::new();
        let sink = first.sink(&trace.pipe(&second)).expect("open");
        sink.get(name("channel")).emit(7);
        second.settle().expect("outside");
        assert_eq!(*trace.take()[0].current(), Current::of_thread());
    }
}

#[test]
fn snk_05_a_capture_names_the_caller() {
    for circuit in circuits() {
        let trace = Trace::<Capture<u64>>::new();
        let sink = circuit.sink(&trace.pipe(&circuit)).expect("open");
        sink.get(name("channel")).emit(7);
        circuit.settle().expect("outside");
        let captures = trace.take();
        assert_eq!(*captures[0].current(), Current::of_thread());
        assert_ne!(captures[0].current(), circuit.current());
    }
}

#[test]
fn snk_06_in_a_cascade_the_caller_is_the_circuit() {
    for circuit in circuits() {
        let trace = Trace::<Capture<u64>>::new();
        let sink = circuit.sink(&trace.pipe(&circuit)).expect("open");
        let target = sink.get(name("channel")).clone();
        circuit.pipe(move |value: u64| target.emit(value + 1)).expect("open").emit(10);
        circuit.settle().expect("outside");
        let captures = trace.take();
        assert_eq!((emissions(&captures), captures[0].current()), (vec![11], circuit.current()));
    }
}

#[test]
fn snk_07_a_sink_has_the_name_that_was_asked_for() {
    for circuit in circuits() {
        let endpoint = circuit.discard::<Capture<u64>>().expect("open");
        let sink = circuit.named(name("a.sink")).sink(&endpoint).expect("open");
        assert_eq!(sink.subject().name(), name("a.sink"));
        assert_eq!(sink.subject().enclosure(), Some(circuit.subject()));
    }
}

#[test]
fn snk_08_a_subscriber_captures_under_the_names_of_the_source() {
    for circuit in circuits() {
        let trace = Trace::<Capture<u64>>::new();
        let sink = circuit.sink(&trace.pipe(&circuit)).expect("open");
        let conduit = circuit.conduit().expect("open");
        conduit.subscribe(&circuit.subscriber_to(sink.clone()).expect("open")).expect("open");
        conduit.get(name("first")).emit(1);
        conduit.get(name("second")).emit(2);
        circuit.settle().expect("outside");
        let captures = trace.take();
        assert_eq!(emissions(&captures), [1, 2]);
        for (capture, path) in captures.iter().zip(["first", "second"]) {
            assert_eq!(capture.name(), name(path));
            assert_eq!(capture.subject(), sink.get(name(path)).subject());
            assert_eq!(capture.current(), circuit.current());
        }
    }
}
