//! Scenarios of pipes that lead to several others.

use tidemark_circuit::{Circuit, FanOut, Kind, Pipe};

use super::support::{Trace, circuits, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("FAN-09", "the type system: there are no pipes of another implementation"),
    ("FAN-11", "Java: null arguments"),
    ("FAN-13", "Java: null arguments"),
    ("FAN-14", "Java: null arguments"),
    ("FAN-16", "Java: null arguments"),
];

/// A pipe that notes its inputs with this letter.
fn noting(circuit: &Circuit, trace: &Trace<(char, i32)>, letter: char) -> Pipe<i32> {
    let trace = trace.clone();
    circuit.pipe(move |value| trace.push((letter, value))).expect("open")
}

#[test]
fn fan_01_targets_may_be_of_several_circuits() {
    for (first, second) in circuits().zip(circuits()) {
        let trace = Trace::new();
        let targets = [noting(&first, &trace, 'a'), noting(&second, &trace, 'b')];
        first.fan_out(&targets).expect("open").emit(5);
        first.settle().expect("outside");
        second.settle().expect("outside");
        let mut seen = trace.take();
        seen.sort_unstable();
        assert_eq!(seen, [('a', 5), ('b', 5)]);
    }
}

#[test]
fn fan_02_a_target_is_given_the_value_as_often_as_it_is_listed() {
    for circuit in circuits() {
        let trace = Trace::new();
        let target = noting(&circuit, &trace, 'a');
        circuit.fan_out(&[target.clone(), target.clone(), target]).expect("open").emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [('a', 1); 3]);
    }
}

#[test]
fn fan_03_each_value_goes_to_all_before_the_next() {
    for circuit in circuits() {
        let trace = Trace::new();
        let targets = ['a', 'b'].map(|letter| noting(&circuit, &trace, letter));
        let pipe = circuit.fan_out(&targets).expect("open");
        pipe.emit(1);
        pipe.emit(2);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [('a', 1), ('b', 1), ('a', 2), ('b', 2)]);
    }
}

#[test]
fn fan_04_the_order_is_that_of_the_list() {
    for circuit in circuits() {
        let trace = Trace::new();
        let targets = ['a', 'b', 'c'].map(|letter| noting(&circuit, &trace, letter));
        circuit.fan_out(&targets).expect("open").emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [('a', 1), ('b', 1), ('c', 1)]);
    }
}

#[test]
fn fan_05_a_named_one_keeps_the_order_too() {
    for circuit in circuits() {
        let trace = Trace::new();
        let targets = ['a', 'b', 'c'].map(|letter| noting(&circuit, &trace, letter));
        let pipe = circuit.named(name("all")).fan_out(&targets).expect("open");
        assert_eq!(pipe.subject().name(), name("all"));
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [('a', 1), ('b', 1), ('c', 1)]);
    }
}

#[test]
fn fan_06_later_changes_of_the_list_change_nothing() {
    for circuit in circuits() {
        let trace = Trace::new();
        let mut targets: Vec<_> =
            ['a', 'b'].into_iter().map(|letter| noting(&circuit, &trace, letter)).collect();
        let pipe = circuit.fan_out(&targets).expect("open");
        targets.push(noting(&circuit, &trace, 'c'));
        targets.remove(0);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [('a', 1), ('b', 1)]);
    }
}

#[test]
fn fan_07_a_target_that_fails_keeps_no_other_from_its_value() {
    for circuit in circuits() {
        let trace = Trace::new();
        let times = |factor: i32| {
            let trace = trace.clone();
            move |value: i32| {
                assert!(factor != 0, "no");
                trace.push(factor * value);
            }
        };
        let targets = [1, 0, 10].map(|factor| circuit.pipe(times(factor)).expect("open"));
        circuit.fan_out(&targets).expect("open").emit(10);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [10, 100]);
        assert_eq!(circuit.failures(), 1);

        circuit.pipe(FanOut([1, 0, 10].map(times))).expect("open").emit(10);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [10, 100]);
        assert_eq!(circuit.failures(), 2);
    }
}

#[test]
fn fan_08_a_fan_out_to_no_target_is_a_pipe() {
    for circuit in circuits() {
        let pipe = circuit.fan_out::<i32>(&[]).expect("open");
        assert_eq!(pipe.subject().kind(), Kind::Pipe);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(circuit.failures(), 0);
    }
}

#[test]
fn fan_10_a_named_fan_out_to_no_target_has_the_name() {
    for circuit in circuits() {
        let pipe = circuit.named(name("nobody")).fan_out::<i32>(&[]).expect("open");
        assert_eq!(pipe.subject().name(), name("nobody"));
        pipe.emit(1);
        circuit.settle().expect("outside");
    }
}

#[test]
fn fan_12_a_named_one_to_a_single_target_is_a_pipe_of_its_own() {
    for circuit in circuits() {
        let trace = Trace::new();
        let target = noting(&circuit, &trace, 'a');
        let pipe = circuit.named(name("alone")).fan_out(std::slice::from_ref(&target)).expect("open");
        assert_ne!(pipe, target);
        assert_eq!(pipe.subject().name(), name("alone"));
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [('a', 1)]);
    }
}

#[test]
fn fan_15_an_unnamed_one_to_a_single_target_is_the_target() {
    for (circuit, other) in circuits().zip(circuits()) {
        let target = circuit.discard::<i32>().expect("open");
        assert_eq!(circuit.fan_out(std::slice::from_ref(&target)).expect("open"), target);
        assert_ne!(other.fan_out(std::slice::from_ref(&target)).expect("open"), target);
    }
}

#[test]
fn fan_17_an_unnamed_one_is_called_as_its_circuit() {
    for circuit in circuits() {
        let target = circuit.discard::<i32>().expect("open");
        let pipe = circuit.fan_out(&[target.clone(), target]).expect("open");
        assert_eq!(pipe.subject().name(), circuit.subject().name());
        assert_eq!(pipe.subject().enclosure(), Some(circuit.subject()));
    }
}
