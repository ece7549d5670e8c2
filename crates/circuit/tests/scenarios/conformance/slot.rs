//! Slot: a name with a value of one type.

use std::collections::HashSet;
use std::sync::Arc;

use tidemark_circuit::{Name, Slot, State, Value, ValueKind, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("SLO-01", "Java: enum constants know their type and name"),
    ("SLO-02", "Java: enum constants know their type and name"),
    ("SLO-03", "Java: enum constants know their type and name"),
    ("SLO-04", "Java: enum constants know their type and name"),
    ("SLO-05", "Java: enum constants know their type and name"),
    ("SLO-06", "Java: enum constants know their type and name"),
    ("SLO-07", "Java: enum constants know their type and name"),
    ("SLO-08", "Java: enum constants know their type and name"),
    ("SLO-09", "Java: null argument"),
    ("SLO-10", "Java: enum constants know their type and name"),
    ("SLO-19", "Java: null argument"),
    ("SLO-20", "Java: null argument"),
];

#[test]
fn slo_11_a_template_gives_its_value_where_a_state_has_none() {
    assert_eq!(State::empty().value(&Slot::new(name!("missing"), 999)), 999);
}

/// Checks name, type and value of a slot, typed and untyped.
macro_rules! displays {
    ($($test:ident: $kind:ident, $value:expr;)*) => {$(
        #[test]
        #[allow(clippy::float_cmp, reason = "a value is read as it was written")]
        fn $test() {
            let slot = Slot::new(name!("slot"), $value);
            assert_eq!(slot.name().path(), "slot");
            assert_eq!(slot.kind(), ValueKind::$kind);
            assert_eq!(*slot.value(), $value);

            let untyped = slot.clone().untyped();
            assert_eq!(untyped.name(), slot.name());
            assert_eq!(untyped.kind(), ValueKind::$kind);
            assert_eq!(*untyped.value(), Value::from($value));
        }
    )*};
}

displays! {
    slo_12_a_slot_holds_a_bool: Bool, true;
    slo_13_a_slot_holds_an_f64: F64, 2.5_f64;
    slo_14_a_slot_holds_an_f32: F32, 1.5_f32;
    slo_15_a_slot_holds_an_i32: I32, 42_i32;
    slo_16_a_slot_holds_an_i64: I64, 1_i64 << 40;
    slo_17_a_slot_holds_a_name: Name, name!("some.name");
    slo_28_a_slot_holds_a_state: State, State::empty().with(name!("inner"), 1);
    slo_29_a_slot_holds_a_text: Text, String::from("text");
}

#[test]
fn slo_18_the_name_of_a_slot_is_the_very_name_it_was_made_with() {
    let name = Name::new("slot.name").unwrap();
    assert_eq!(Slot::new(name, 1).name(), name);
    assert_eq!(Slot::new(Name::from_parts(["slot", "name"]).unwrap(), 1).name().id(), name.id());
}

#[test]
fn slo_21_the_primitive_types_are_five() {
    let n = name!("n");
    let kinds = HashSet::from([
        Slot::new(n, true).kind(),
        Slot::new(n, 1_i32).kind(),
        Slot::new(n, 1_i64).kind(),
        Slot::new(n, 1.0_f32).kind(),
        Slot::new(n, 1.0_f64).kind(),
    ]);
    assert_eq!(kinds.len(), 5);
}

#[test]
fn slo_22_text_name_and_state_are_three_types() {
    let n = name!("n");
    let text = Slot::new(n, String::new()).kind();
    let kinds = HashSet::from([text, Slot::new(n, n).kind(), Slot::new(n, State::empty()).kind()]);
    assert_eq!(kinds.len(), 3);
    assert_eq!(Slot::new(n, Arc::<str>::from("")).kind(), text, "shared text is text");
}

#[test]
fn slo_23_templates_read_names_and_states() {
    let inner = State::empty().with(name!("x"), 1);
    let state = State::empty().with(name!("a"), name!("stored")).with(name!("b"), inner.clone());
    assert_eq!(state.value(&Slot::new(name!("a"), name!("fallback"))), name!("stored"));
    assert!(state.value(&Slot::new(name!("b"), State::empty())).same(&inner));
}

#[test]
fn slo_24_reading_a_value_does_not_change_it() {
    let slot = Slot::new(name!("n"), String::from("text"));
    for _ in 0..3 {
        assert_eq!(slot.value(), "text");
    }
}

#[test]
fn slo_25_slots_of_one_name_and_type_keep_their_own_values() {
    let (first, second) = (Slot::new(name!("n"), 100), Slot::new(name!("n"), 200));
    assert_eq!((*first.value(), *second.value()), (100, 200));
    assert_ne!(first.untyped(), second.untyped());
}

#[test]
fn slo_26_one_name_holds_one_value_per_type() {
    let state = State::empty().with(name!("n"), 100_i32).with(name!("n"), 200_i64);
    assert_eq!(state.value(&Slot::new(name!("n"), 0_i32)), 100);
    assert_eq!(state.value(&Slot::new(name!("n"), 0_i64)), 200);
}

#[test]
fn slo_27_slots_of_one_name_and_two_types_are_distinct() {
    let number = Slot::new(name!("n"), 1).untyped();
    let text = Slot::new(name!("n"), String::from("1")).untyped();
    assert_eq!(number.name(), text.name());
    assert_ne!(number.kind(), text.kind());
    assert_ne!(number.value(), text.value());
    assert_ne!(number, text);
}

#[test]
fn slo_30_the_last_write_is_read() {
    let counter = name!("counter");
    let state = State::empty().with(counter, 10).with(counter, 20);
    assert_eq!(state.value(&Slot::new(counter, 0)), 20);
}
