//! `StateOps`: slots and states.

use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use tidemark_circuit::{Slot, State, name};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = slots();
    all.extend(adding());
    all.extend(reading());
    all
}

fn slots() -> Vec<Benchmark> {
    let mut all = vec![Benchmark::new("StateOps.slot_type", "the type of a slot's value", |_| {
        let slot = slot();
        each(move |_| black_box(&slot).kind())
    })];
    all.extend(Benchmark::with_batch("StateOps.slot_name", "the name of a slot", |_| {
        let slot = slot();
        each(move |_| black_box(&slot).name())
    }));
    all.extend(Benchmark::with_batch("StateOps.slot_value", "the value of a slot", |_| {
        let slot = slot();
        each(move |_| *black_box(&slot).value())
    }));
    all
}

fn adding() -> Vec<Benchmark> {
    const TO: &str = "added to the empty state, and dropping the result";
    let mut all = vec![
        Benchmark::new("StateOps.state_slot_add_long", format!("an i64 {TO}"), |_| {
            each(|_| State::empty().with(name!("slot2"), black_box(42_i64)))
        }),
        Benchmark::new("StateOps.state_slot_add_string", format!("a text made for it {TO}"), |_| {
            each(|_| State::empty().with(name!("slot3"), black_box("value").to_owned()))
        }),
    ];
    all.extend([
        Benchmark::new(
            "StateOps.state_upsert_head",
            "a text changed that was added last to a state of three",
            |_| {
                let state = state();
                each(move |_| black_box(&state).with(name!("slot3"), black_box("value_next").to_owned()))
            },
        ),
        Benchmark::new(
            "StateOps.state_upsert_tail",
            "an i32 changed that was added first to a state of three",
            |_| {
                let state = state();
                each(move |_| black_box(&state).with(name!("slot1"), black_box(43)))
            },
        ),
    ]);
    all.extend(Benchmark::with_batch("StateOps.state_slot_add_int", &format!("an i32 {TO}"), |_| {
        each(|_| State::empty().with(name!("slot1"), black_box(42)))
    }));
    all.extend(Benchmark::with_batch(
        "StateOps.state_slot_add_object",
        &format!("a slot that is there {TO}"),
        |_| {
            let slot = slot();
            each(move |_| State::empty().with_slot(*black_box(&slot)))
        },
    ));
    all.extend(Benchmark::with_batch(
        "StateOps.state_compact",
        "a state from the slots of another; a state has no two of one name and type, so there is nothing to compact",
        |_| {
            let state = several();
            each(move |_| black_box(&state).iter().cloned().collect::<State>())
        },
    ));
    all
}

fn reading() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new("StateOps.state_iterate_slots", "counting the three slots of a state", |_| {
            let state = several();
            each(move |_| black_box(&state).iter().map(|slot| black_box(slot).name().id()).sum::<u32>())
        }),
        Benchmark::new(
            "StateOps.state_values_stream",
            "counting the slots of a state with a name and a type",
            |_| {
                let (state, wanted) = (several(), slot());
                each(move |_| {
                    let fits = |slot: &&Slot| slot.name() == wanted.name() && slot.kind() == wanted.kind();
                    black_box(&state).iter().filter(fits).count()
                })
            },
        ),
    ];
    all.extend(Benchmark::with_batch(
        "StateOps.state_value_read",
        "the value of a name and a type in a state",
        |_| {
            let (state, slot) = (several(), slot());
            each(move |_| black_box(&state).value(black_box(&slot)))
        },
    ));
    all
}

fn slot() -> Slot<i32> {
    Slot::new(name!("slot1"), 42)
}

/// Three slots, one of which was changed.
fn several() -> State {
    state().with(name!("slot1"), 43)
}

/// Three slots.
fn state() -> State {
    State::empty().with_slot(slot()).with(name!("slot2"), 42_i64).with(name!("slot3"), "value".to_owned())
}
