//! Values of a narrow type at a target of a wider type. Rust has no subtypes; narrower values are
//! converted.

use tidemark_circuit::{Fiber, Flow};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] =
    &[("VAR-05", "the type system: a pipe of another type is another pipe")];

use super::support::{Trace, circuits};

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

#[test]
fn var_03_a_fiber_of_a_narrow_type_ends_on_a_cell_of_a_wide_one() {
    for circuit in circuits() {
        let cell = circuit.cell(0_i64).expect("open");
        let narrow = Fiber::<i32>::new().diff();
        let head = cell.pipe().prepend(&Flow::from(narrow).map(i64::from)).expect("open");
        [1, 1, 2].into_iter().for_each(|value: i32| head.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(cell.get(), 2_i64);
    }
}

#[test]
fn var_04_a_flow_of_a_narrow_type_ends_on_a_cell_of_a_wide_one() {
    for circuit in circuits() {
        let cell = circuit.cell(None::<String>).expect("open");
        let narrow = Flow::<u32>::new().map(|value| format!("v:{value}"));
        cell.pipe().prepend(&narrow.map(Some)).expect("open").emit(1);
        circuit.settle().expect("outside");
        assert_eq!(cell.get().as_deref(), Some("v:1"));
    }
}
