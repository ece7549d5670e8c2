//! Values of a narrow type that end where a wider one is taken. Rust has no subtypes; what is narrower converts.

use tidemark_circuit::{Fiber, Flow};

use crate::support::{Trace, circuits};

#[test]
fn var_01_a_fiber_of_a_narrow_type_ends_on_a_pipe_of_a_wide_one() {
    for circuit in circuits() {
        let trace = Trace::<i64>::new();
        let narrow = Fiber::<i32>::new().diff();
        let head = trace.pipe(&circuit).prepend(&Flow::from(narrow).map(i64::from)).expect("open");
        [1, 1, 2].into_iter().for_each(|value: i32| head.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1_i64, 2]);
    }
}

#[test]
fn var_02_a_flow_of_a_narrow_type_ends_on_a_pipe_of_a_wide_one() {
    for circuit in circuits() {
        let trace = Trace::<Option<String>>::new();
        let narrow = Flow::<u32>::new().map(|value| format!("v:{value}"));
        let head = trace.pipe(&circuit).prepend(&narrow.map(Some)).expect("open");
        [1, 2].into_iter().for_each(|value| head.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), ["v:1", "v:2"].map(|text| Some(text.to_owned())));
    }
}

#[test]
fn var_06_a_pipe_of_a_wide_type_receives_narrow_values() {
    for circuit in circuits() {
        let trace = Trace::<f64>::new();
        let wide = trace.pipe(&circuit);
        let narrow = wide.prepend(&Flow::<f32>::new().map(f64::from)).expect("open");
        narrow.emit(1.5);
        wide.emit(2.5);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1.5, 2.5]);
    }
}
