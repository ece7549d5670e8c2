//! Scenarios of ports.

use tidemark_circuit::{Circuit, Fiber, Flow, Kind, Pipe, Port, Receptor};

use super::support::{Trace, circuits, has, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("POR-03", "the type system: there are no pipes of another implementation"),
    ("POR-05", "Java: null arguments"),
    ("POR-10", "Java: null arguments"),
    ("POR-16", "Java: null arguments"),
    ("POR-21", "Java: null arguments"),
];

/// The current value of the port.
fn value<T: Clone + Send + 'static>(circuit: &Circuit, port: &Port<T>) -> T {
    let trace = Trace::new();
    port.emit(&trace.pipe(circuit));
    circuit.settle().expect("outside");
    trace.take().pop().expect("one value")
}

#[test]
fn por_01_each_replaced_value_can_be_emitted() {
    for circuit in circuits() {
        let (port, total) = (circuit.port(0).expect("open"), circuit.cell(0).expect("open"));
        let sum = Fiber::new().reduce(0, |sum, value| sum + value);
        let target = total.pipe().prepend(&sum).expect("open");
        for value in 1..=3 {
            port.replace(value);
            port.emit(&target);
        }
        circuit.settle().expect("outside");
        assert_eq!(total.get(), 6);
    }
}

#[test]
fn por_02_a_value_is_emitted_through_operators() {
    for circuit in circuits() {
        let (port, trace) = (circuit.port(5).expect("open"), Trace::new());
        let text = Flow::new().map(|value: i32| format!("value={value}"));
        port.emit(&trace.pipe(&circuit).prepend(&text).expect("open"));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), ["value=5"]);
    }
}

#[test]
fn por_04_the_value_of_the_moment_is_emitted() {
    for circuit in circuits() {
        let (port, trace) = (circuit.port(42).expect("open"), Trace::new());
        port.replace(13);
        port.emit(&trace.pipe(&circuit));
        port.replace(14);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [13]);
    }
}

#[test]
fn por_06_after_the_close_nothing_is_done() {
    for circuit in circuits() {
        let (port, trace) = (circuit.port(1).expect("open"), Trace::new());
        let (target, ran) = (trace.pipe(&circuit), trace.clone());
        circuit.close_and_settle().expect("outside");
        port.replace(2);
        let seen = ran.clone();
        port.update(move |value| {
            seen.push(*value);
            3
        });
        port.update_with(4, move |value, more| {
            ran.push(*value);
            more
        });
        port.emit(&target);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), []);
    }
}

#[test]
fn por_07_a_closed_circuit_makes_no_port() {
    for circuit in circuits() {
        circuit.close();
        let fault = circuit.port(1).unwrap_err();
        assert_eq!((fault.subject(), fault.operation()), (circuit.subject(), "port"));
    }
}

/// Its `emit` takes a pipe, and emits the port's value to it.
#[test]
fn por_08_a_port_is_no_pipe_and_no_receptor() {
    assert!(has!(fn(u64), Receptor<u64>) && has!(Pipe<u64>, Into<Pipe<u64>>), "the check recognises one");
    assert!(!has!(Port<u64>, Receptor<u64>) && !has!(Port<u64>, Into<Pipe<u64>>));
    let _: fn(&Port<u64>, &Pipe<u64>) = Port::emit;
}

#[test]
fn por_09_a_closed_circuit_makes_no_named_port() {
    for circuit in circuits() {
        circuit.close();
        assert_eq!(circuit.named(name("port")).port(1).unwrap_err().subject(), circuit.subject());
    }
}

#[test]
fn por_11_namesakes_are_two_ports() {
    for circuit in circuits() {
        let named = circuit.named(name("port"));
        let (first, second) = (named.port(1).expect("open"), named.port(1).expect("open"));
        first.replace(2);
        assert_ne!(first, second);
        assert_eq!((value(&circuit, &first), value(&circuit, &second)), (2, 1));
    }
}

#[test]
fn por_12_a_port_has_the_name_that_was_asked_for() {
    for circuit in circuits() {
        assert_eq!(circuit.named(name("a.port")).port(1).expect("open").subject().name(), name("a.port"));
    }
}

#[test]
fn por_13_an_unnamed_port_is_called_as_its_circuit() {
    for circuit in circuits() {
        let subject = circuit.port(1).expect("open").subject().clone();
        assert_eq!((subject.name(), subject.kind()), (circuit.subject().name(), Kind::Port));
        assert_eq!(subject.enclosure(), Some(circuit.subject()));
    }
}

#[test]
fn por_14_a_replaced_value_is_emitted() {
    for circuit in circuits() {
        let port = circuit.port(0).expect("open");
        port.replace(7);
        assert_eq!(value(&circuit, &port), 7);
    }
}

#[test]
fn por_15_the_last_replacement_stays() {
    for circuit in circuits() {
        let port = circuit.port(0).expect("open");
        (1..=3).for_each(|value| port.replace(value));
        assert_eq!(value(&circuit, &port), 3);
    }
}

#[test]
fn por_17_a_port_begins_with_its_seed() {
    for circuit in circuits() {
        assert_eq!(value(&circuit, &circuit.port(42).expect("open")), 42);
    }
}

#[test]
fn por_18_a_request_inside_of_the_circuit_waits_too() {
    for circuit in circuits() {
        let (port, trace) = (circuit.port(0).expect("open"), Trace::new());
        let (inside, seen, ran) = (port.clone(), trace.clone(), Trace::new());
        let runs = ran.clone();
        let pipe = circuit
            .pipe(move |()| {
                let ran = ran.clone();
                inside.update(move |_| {
                    ran.push(());
                    99
                });
                seen.push(runs.len());
            })
            .expect("open");
        pipe.emit(());
        circuit.settle().expect("outside");
        assert_eq!((trace.take(), value(&circuit, &port)), (vec![0], 99));
    }
}

#[test]
fn por_19_transforms_have_arguments() {
    for circuit in circuits() {
        let port = circuit.port(String::new()).expect("open");
        for letter in ["a", "b", "c"] {
            port.update_with(letter, |text, letter| text.clone() + letter);
        }
        assert_eq!(value(&circuit, &port), "abc");
    }
}

#[test]
fn por_20_transforms_are_applied_in_order() {
    for circuit in circuits() {
        let port = circuit.port(0).expect("open");
        port.update(|value| value + 1);
        port.update(|value| value * 10);
        port.update(|value| value + 5);
        assert_eq!(value(&circuit, &port), 15);
    }
}

#[test]
fn por_22_transforms_that_give_nothing_or_fail_are_passed_over() {
    for circuit in circuits() {
        let port = circuit.port(1).expect("open");
        port.update(|value| value + 1);
        port.filter_update(|_| None);
        port.update(|_| panic!("no"));
        port.update(|value| value * 10);
        assert_eq!(value(&circuit, &port), 20);
    }
}

#[test]
fn por_23_a_transform_that_gives_nothing_leaves_the_value() {
    for circuit in circuits() {
        let port = circuit.port(7).expect("open");
        port.filter_update(|_| None);
        assert_eq!(value(&circuit, &port), 7);
        port.filter_update(|value| Some(value + 1));
        assert_eq!(value(&circuit, &port), 8);
    }
}

#[test]
fn por_24_a_transform_that_fails_leaves_the_value() {
    for circuit in circuits() {
        let port = circuit.port(7).expect("open");
        port.update(|_| panic!("no"));
        assert_eq!((value(&circuit, &port), circuit.failures()), (7, 1));
    }
}

#[test]
fn por_25_a_transform_sees_the_value() {
    for circuit in circuits() {
        let (port, trace) = (circuit.port(42).expect("open"), Trace::new());
        let seen = trace.clone();
        port.update(move |value| {
            seen.push(*value);
            *value
        });
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [42]);
    }
}

#[test]
fn por_26_arguments_are_used_one_after_the_other() {
    for circuit in circuits() {
        let port = circuit.port(0).expect("open");
        port.update_with(5, |value, more| value + more);
        port.update_with(3, |value, more| value + more);
        assert_eq!(value(&circuit, &port), 8);
    }
}
