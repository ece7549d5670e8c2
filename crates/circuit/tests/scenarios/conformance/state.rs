//! State: an immutable set of slots.

use std::sync::Arc;

use tidemark_circuit::{Name, Slot, State, Value, ValueKind, Valued, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("STA-08", "Java: enum constants know their type and name"),
    ("STA-10", "Java: enum constants know their type and name"),
    ("STA-11", "Java: enum constants know their type and name"),
    ("STA-12", "Java: enum constants know their type and name"),
    ("STA-13", "Java: enum constants know their type and name"),
    ("STA-14", "Java: enum constants know their type and name"),
    ("STA-15", "Java: enum constants know their type and name"),
    ("STA-16", "Java: enum constants know their type and name"),
    ("STA-17", "Java: enum constants know their type and name"),
    ("STA-18", "Java: enum constants know their type and name"),
    ("STA-19", "Java: enum constants know their type and name"),
    ("STA-20", "Java: enum constants know their type and name"),
    ("STA-21", "Java: enum constants know their type and name"),
    ("STA-27", "Java: enum constants know their type and name"),
    ("STA-28", "Java: null argument"),
    ("STA-29", "Java: null argument"),
    ("STA-30", "Java: null argument"),
    ("STA-33", "Java: enum constants know their type and name"),
    ("STA-34", "Java: enum constants know their type and name"),
    ("STA-46", "Java: enum constants know their type and name"),
    ("STA-47", "Java: enum constants know their type and name"),
];

fn alpha() -> Name {
    name!("alpha")
}

fn beta() -> Name {
    name!("beta")
}

fn gamma() -> Name {
    name!("gamma")
}

fn names(state: &State) -> Vec<&'static str> {
    state.iter().map(|slot| slot.name().path()).collect()
}

/// Alpha 1, beta 2, gamma 3.
fn three() -> State {
    State::empty().with(alpha(), 1).with(beta(), 2).with(gamma(), 3)
}

fn int(state: &State, name: Name) -> Option<i32> {
    state.get(name)
}

#[test]
fn sta_01_the_newest_slot_is_visited_first() {
    assert_eq!(names(&three()), ["gamma", "beta", "alpha"]);
}

#[test]
fn sta_02_iteration_past_the_last_slot_stays_at_the_end() {
    let state = State::empty().with(alpha(), 1);
    let mut slots = state.iter();
    assert!(slots.next().is_some());
    assert!(slots.next().is_none());
    assert!(slots.next().is_none());
}

#[test]
fn sta_03_a_loop_and_an_iterator_have_the_same_order() {
    let state = State::empty().with(alpha(), 1).with(beta(), 2);
    let mut looped = Vec::new();
    for slot in &state {
        looped.push(slot.clone());
    }
    assert_eq!(looped, state.iter().cloned().collect::<Vec<_>>());
}

#[test]
fn sta_04_a_slot_read_back_is_the_one_written() {
    let state = State::empty().with_slot(Slot::new(name!("n"), 42));
    let slot = state.iter().next().unwrap();
    assert_eq!(slot.name().path(), "n");
    assert_eq!(slot.kind(), ValueKind::I32);
    assert_eq!(*slot.value(), Value::I32(42));
}

#[test]
fn sta_05_the_iterator_knows_how_many_slots_are_left() {
    let state = three();
    let mut slots = state.iter();
    for left in [3, 2, 1, 0] {
        assert_eq!(slots.len(), left);
        assert_eq!(slots.size_hint(), (left, Some(left)));
        slots.next();
    }
    assert_eq!(state.len(), 3);
}

#[test]
fn sta_06_a_value_of_each_type_is_read_back() {
    let state = State::empty()
        .with(name!("i32"), -7_i32)
        .with(name!("i64"), 1_i64 << 40)
        .with(name!("f32"), 1.5_f32)
        .with(name!("f64"), 2.25_f64)
        .with(name!("bool"), true)
        .with(name!("text"), String::from("text"));
    assert_eq!(state.get(name!("i32")), Some(-7_i32));
    assert_eq!(state.get(name!("i64")), Some(1_i64 << 40));
    assert_eq!(state.get(name!("f32")), Some(1.5_f32));
    assert_eq!(state.get(name!("f64")), Some(2.25_f64));
    assert_eq!(state.get(name!("bool")), Some(true));
    assert_eq!(state.get(name!("text")), Some(String::from("text")));
}

#[test]
fn sta_07_a_derived_state_leaves_its_base_alone() {
    let base = State::empty().with(alpha(), 1);
    let derived = base.with(beta(), 2);
    assert_eq!((base.len(), derived.len()), (1, 2));
    assert_eq!(int(&base, beta()), None);
}

#[test]
fn sta_09_the_empty_state_has_no_slots() {
    assert_eq!(State::empty().iter().next(), None);
    assert!(State::empty().is_empty());
    assert_eq!(State::default(), State::empty());
}

#[test]
fn sta_22_the_same_slot_again_gives_the_same_state() {
    let slot = Slot::new(alpha(), 1);
    let state = State::empty().with_slot(slot).with(beta(), 2);
    assert!(state.with_slot(slot).same(&state));
}

#[test]
fn sta_23_an_equal_value_gives_the_same_state_and_another_one_a_new_state() {
    let first = State::empty().with(alpha(), 5);
    let second = first.with(alpha(), 5);
    let third = second.with(alpha(), 6);
    assert!(second.same(&first));
    assert!(!third.same(&first));
    assert_eq!(int(&third, alpha()), Some(6));
}

#[test]
fn sta_24_floating_point_numbers_keep_their_bits() {
    let not_a_number = f32::from_bits(0x7FC0_1234);
    let f32s = [
        f32::MIN,
        f32::MAX,
        f32::MIN_POSITIVE,
        1.0_f32.next_up(),
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        not_a_number,
    ];
    for value in f32s {
        let state = State::empty().with(alpha(), value);
        assert_eq!(state.get::<f32>(alpha()).map(f32::to_bits), Some(value.to_bits()));
        assert!(state.with(alpha(), value).same(&state), "{value} is itself");
    }
    let not_a_number = f64::from_bits(0x7FF8_0000_1234_5678);
    let f64s = [
        f64::MIN,
        f64::MAX,
        f64::MIN_POSITIVE,
        1.0_f64.next_up(),
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        not_a_number,
    ];
    for value in f64s {
        let state = State::empty().with(alpha(), value);
        assert_eq!(state.get::<f64>(alpha()).map(f64::to_bits), Some(value.to_bits()));
        assert!(state.with(alpha(), value).same(&state), "{value} is itself");
    }
    let zero = State::empty().with(alpha(), 0.0);
    assert!(!zero.with(alpha(), -0.0).same(&zero), "zero has two representations");
}

#[test]
fn sta_25_the_extreme_integers_are_exact() {
    fn exact<T: Valued + PartialEq + std::fmt::Debug>(value: T) {
        assert_eq!(State::empty().with(alpha(), value.clone()).get(alpha()), Some(value));
    }
    exact(i32::MIN);
    exact(i32::MAX);
    exact(i64::MIN);
    exact(i64::MAX);
}

#[test]
fn sta_26_a_later_write_replaces_an_earlier_one() {
    let state = State::empty().with(alpha(), 1).with(beta(), 10).with(alpha(), 2).with(gamma(), 3);
    assert_eq!(state.len(), 3);
    assert_eq!([alpha(), beta(), gamma()].map(|name| int(&state, name)), [Some(2), Some(10), Some(3)]);
}

#[test]
fn sta_31_primitives_under_different_names_are_exact() {
    let state = State::empty()
        .with(name!("a"), 1_i32)
        .with(name!("b"), 2_i64)
        .with(name!("c"), 3.5_f32)
        .with(name!("d"), 4.5_f64)
        .with(name!("e"), false);
    assert_eq!(state.get(name!("a")), Some(1_i32));
    assert_eq!(state.get(name!("b")), Some(2_i64));
    assert_eq!(state.get(name!("c")), Some(3.5_f32));
    assert_eq!(state.get(name!("d")), Some(4.5_f64));
    assert_eq!(state.get(name!("e")), Some(false));
}

#[test]
fn sta_32_names_and_nested_states_are_read_back() {
    let inner = three();
    let state = State::empty().with(alpha(), name!("a.name")).with(beta(), inner.clone());
    assert_eq!(state.get(alpha()), Some(name!("a.name")));
    assert!(state.get::<State>(beta()).is_some_and(|state| state.same(&inner)));
}

#[test]
fn sta_35_many_writes_of_one_key_leave_one_slot() {
    let state = (1..=5).fold(State::empty(), |state, value| state.with(alpha(), value));
    assert_eq!(state.len(), 1);
    assert_eq!(int(&state, alpha()), Some(5));
}

#[test]
fn sta_36_a_changed_slot_moves_to_the_front() {
    let state = State::empty().with(alpha(), 1).with(beta(), 2).with(alpha(), 99);
    assert_eq!(names(&state), ["alpha", "beta"]);
    assert_eq!([alpha(), beta()].map(|name| int(&state, name)), [Some(99), Some(2)]);
}

#[test]
fn sta_37_several_slots_can_be_changed() {
    let state = three().with(beta(), 20).with(alpha(), 10);
    assert_eq!(state.len(), 3);
    assert_eq!([alpha(), beta(), gamma()].map(|name| int(&state, name)), [Some(10), Some(20), Some(3)]);
}

#[test]
fn sta_38_a_slot_can_go_back_to_an_old_value() {
    let first = Slot::new(alpha(), 1);
    let state = State::empty()
        .with_slot(first)
        .with_slot(Slot::new(alpha(), 2))
        .with_slot(Slot::new(alpha(), 3))
        .with_slot(first);
    assert_eq!(state.len(), 1);
    assert_eq!(int(&state, alpha()), Some(1));
}

#[test]
fn sta_39_a_name_is_replaced_per_type() {
    let state = State::empty()
        .with(alpha(), 1_i32)
        .with(alpha(), 1.0_f32)
        .with(alpha(), 2_i32)
        .with(alpha(), 2.0_f32);
    assert_eq!(state.len(), 2);
    assert_eq!(state.get(alpha()), Some(2_i32));
    assert_eq!(state.get(alpha()), Some(2.0_f32));
}

#[test]
fn sta_40_a_text_and_a_number_are_read_by_their_names() {
    let state = State::empty().with(name!("name"), String::from("Alice")).with(name!("age"), 30);
    assert_eq!(state.get::<String>(name!("name")).as_deref(), Some("Alice"));
    assert_eq!(state.get(name!("age")), Some(30));
}

#[test]
fn sta_41_a_slot_replaces_a_slot_of_its_key() {
    let state = State::empty().with_slot(Slot::new(alpha(), 10)).with_slot(Slot::new(alpha(), 20));
    assert_eq!(state.len(), 1);
    assert_eq!(int(&state, alpha()), Some(20));
}

#[test]
fn sta_42_a_number_and_a_text_share_a_name() {
    let state = State::empty().with(alpha(), 1).with(alpha(), String::from("one"));
    assert_eq!(int(&state, alpha()), Some(1));
    assert_eq!(state.get::<String>(alpha()).as_deref(), Some("one"));
}

#[test]
fn sta_43_base_and_derived_state_read_their_own_values() {
    let base = State::empty().with(alpha(), 1).with(beta(), 2);
    let derived = base.with(alpha(), 99);
    assert_eq!([alpha(), beta()].map(|name| int(&base, name)), [Some(1), Some(2)]);
    assert_eq!([alpha(), beta()].map(|name| int(&derived, name)), [Some(99), Some(2)]);
}

#[test]
fn sta_44_collected_slots_are_newest_first() {
    let (first, second) = (Slot::new(name!("first"), 1), Slot::new(name!("second"), 2));
    let state = State::empty().with_slot(first).with_slot(second);
    let slots: Vec<Slot> = state.iter().cloned().collect();
    assert_eq!(slots, [second.untyped(), first.untyped()]);
}

#[test]
fn sta_45_templates_stand_in_for_what_an_empty_state_lacks() {
    assert_eq!(State::empty().value(&Slot::new(name!("n"), 999)), 999);
    assert_eq!(State::empty().value(&Slot::new(name!("n"), String::from("default"))), "default");
}

#[test]
fn sta_48_text_name_and_state_slots_are_read_by_templates() {
    let inner = three();
    let text: Arc<str> = "shared".into();
    let state = State::empty()
        .with_slot(Slot::new(name!("text"), Arc::clone(&text)))
        .with_slot(Slot::new(name!("name"), name!("a.b")))
        .with_slot(Slot::new(name!("state"), inner.clone()));
    assert_eq!(state.value(&Slot::new(name!("text"), String::new())), "shared");
    assert!(Arc::ptr_eq(&state.value(&Slot::new(name!("text"), Arc::from(""))), &text), "not copied");
    assert_eq!(state.value(&Slot::new(name!("name"), name!("x"))), name!("a.b"));
    assert_eq!(state.value(&Slot::new(name!("state"), State::empty())), inner);
}

#[test]
fn sta_49_three_types_under_one_name_are_three_slots() {
    let state = State::empty().with(alpha(), 10_i32).with(alpha(), 20_i64).with(alpha(), 30.0_f32);
    assert_eq!(state.len(), 3);
    assert_eq!(state.get(alpha()), Some(10_i32));
    assert_eq!(state.get(alpha()), Some(20_i64));
    assert_eq!(state.get(alpha()), Some(30.0_f32));
}
