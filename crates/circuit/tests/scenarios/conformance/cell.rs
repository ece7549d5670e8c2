//! Scenarios of cells.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_circuit::{Cell, Fiber, Flow, Kind, Name, Pipe, Receptor, Registrar, Subject};

use super::support::{NoEmit, circuits, has, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] =
    &[("CEL-02", "Java: null arguments"), ("CEL-03", "Java: null arguments")];

#[test]
fn cel_01_a_cell_has_a_subject_and_is_no_receptor_and_no_pipe() {
    assert!(has!(fn(u64), Receptor<u64>), "the check recognises one");
    assert!(!has!(Cell<u64>, Receptor<u64>) && !has!(Cell<u64>, Into<Pipe<u64>>));
    for circuit in circuits() {
        let cell = circuit.named(name("level")).cell(0_u64).expect("open");
        assert_eq!((cell.subject().kind(), cell.subject().name()), (Kind::Cell, name("level")));
        assert_eq!(cell.emit(1), "no pipe");
        let () = cell.pipe().emit(1);
    }
}

#[test]
fn cel_04_namesakes_are_two_cells() {
    for circuit in circuits() {
        let named = circuit.named(name("level"));
        let (first, second) = (named.cell(0).expect("open"), named.cell(0).expect("open"));
        first.pipe().emit(7);
        circuit.settle().expect("outside");
        assert_ne!(first, second);
        assert_ne!(first.subject().id(), second.subject().id());
        assert_eq!((first.get(), second.get()), (7, 0));
    }
}

#[test]
fn cel_05_a_cell_has_the_name_that_was_asked_for() {
    for circuit in circuits() {
        let cell = circuit.named(name("level")).cell(0).expect("open");
        assert_eq!((cell.subject().name(), cell.subject().kind()), (name("level"), Kind::Cell));
        assert_eq!(cell.subject().enclosure(), Some(circuit.subject()));
    }
}

#[test]
fn cel_06_a_cell_of_another_circuit_can_be_fed_through_a_fiber() {
    for (first, second) in circuits().zip(circuits()) {
        let cell = second.cell(0).expect("open");
        let sum = Fiber::<i32>::new().reduce(0, |sum, value| sum + value);
        let target = cell.pipe().prepend(&sum).expect("open");
        let source = first.forward(&target).expect("open");
        source.emit(1);
        source.emit(2);
        first.settle().expect("outside");
        second.settle().expect("outside");
        assert_eq!(cell.get(), 3);
    }
}

#[test]
fn cel_07_a_cell_reads_what_was_emitted() {
    for circuit in circuits() {
        let cell = circuit.cell(0).expect("open");
        cell.pipe().emit(7);
        circuit.settle().expect("outside");
        assert_eq!(cell.get(), 7);
    }
}

#[test]
fn cel_08_a_cell_changes_with_what_is_emitted() {
    for circuit in circuits() {
        let cell = circuit.cell(1).expect("open");
        assert_eq!(cell.get(), 1);
        cell.pipe().emit(2);
        circuit.settle().expect("outside");
        assert_eq!(cell.get(), 2);
    }
}

#[test]
fn cel_09_a_cell_begins_with_its_seed() {
    for circuit in circuits() {
        assert_eq!(circuit.cell(42).expect("open").get(), 42);
    }
}

/// The type says it: reading gives a value, not an option.
#[test]
fn cel_10_reading_always_gives_a_value() {
    for circuit in circuits() {
        let cell = circuit.cell(String::from("seed")).expect("open");
        let before: String = cell.get();
        cell.pipe().emit(String::from("next"));
        circuit.settle().expect("outside");
        let after: String = cell.get();
        assert_eq!((before.as_str(), after.as_str()), ("seed", "next"));
    }
}

#[test]
fn cel_11_a_named_cell_reads_as_any_other() {
    for circuit in circuits() {
        let cell = circuit.named(name("level")).cell(1).expect("open");
        assert_eq!(cell.get(), 1);
        cell.pipe().emit(2);
        circuit.settle().expect("outside");
        assert_eq!(cell.get(), 2);
    }
}

#[test]
fn cel_12_the_cell_encloses_its_pipe() {
    for circuit in circuits() {
        let cell = circuit.cell(0).expect("open");
        assert_eq!(cell.pipe().subject().enclosure(), Some(cell.subject()));
        assert_eq!(cell.pipe().subject().kind(), Kind::Pipe);
    }
}

#[test]
fn cel_13_a_running_sum_feeds_a_cell() {
    for circuit in circuits() {
        let cell = circuit.cell(0).expect("open");
        let sum = cell.pipe().prepend(&Fiber::new().reduce(0, |sum, value| sum + value)).expect("open");
        [2, 3, 5].into_iter().for_each(|value| sum.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(cell.get(), 10);
    }
}

#[test]
fn cel_14_a_cell_has_one_pipe() {
    for circuit in circuits() {
        let cell = circuit.cell(0).expect("open");
        assert_eq!(cell.pipe(), cell.clone().pipe());
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Drawdown {
    equity: f64,
    peak: f64,
    loss: f64,
}

impl Drawdown {
    const START: Self = Self { equity: 1.0, peak: 1.0, loss: 0.0 };
    const AFTER: Self = Self { equity: 0.880_000_000_000_000_1, peak: 1.1, loss: -0.199_999_999_999_999_96 };

    fn after(&mut self, gain: f64) {
        let equity = self.equity * (1.0 + gain);
        let peak = self.peak.max(equity);
        *self = Self { equity, peak, loss: equity / peak - 1.0 };
    }
}

#[test]
fn cel_15_a_scan_feeds_a_cell() {
    for circuit in circuits() {
        let cell = circuit.cell(Drawdown::START).expect("open");
        let scan = Flow::<f64>::new().scan(|| Drawdown::START, |state, gain| state.after(*gain));
        let gains = cell.pipe().prepend(&scan).expect("open");
        gains.emit(0.1);
        gains.emit(-0.2);
        circuit.settle().expect("outside");
        assert_eq!(cell.get(), Drawdown::AFTER);
    }
}

type Board = Arc<BTreeMap<Name, i32>>;

#[test]
fn cel_16_a_subscriber_folds_a_conduit_into_a_cell_of_another_circuit() {
    for (first, second) in circuits().zip(circuits()) {
        let conduit = first.conduit::<i32>().expect("open");
        let cell = second.cell(Board::default()).expect("open");
        let fold = Flow::<(Name, i32)>::new().scan(Board::default, |board, (name, value)| {
            *Arc::make_mut(board).entry(*name).or_default() += value;
        });
        let patches = cell.pipe().prepend(&fold).expect("open");
        let subscriber = first
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, i32>| {
                let (name, patches) = (subject.name(), patches.clone());
                registrar.receptor(move |value| patches.emit((name, value)));
            })
            .expect("open");
        conduit.subscribe(&subscriber).expect("open");
        for (path, value) in [("left", 1), ("right", 2), ("left", 3)] {
            conduit.get(name(path)).emit(value);
        }
        first.settle().expect("outside");
        second.settle().expect("outside");
        assert_eq!(*cell.get(), BTreeMap::from([(name("left"), 4), (name("right"), 2)]));
    }
}

#[test]
fn cel_17_a_scan_with_a_projection_feeds_a_cell() {
    for circuit in circuits() {
        let cell = circuit.cell(Drawdown::START).expect("open");
        let scan = Flow::<f64>::new().scan_map(
            || Drawdown::START,
            |state, gain| state.after(*gain),
            |state, _| *state,
        );
        let gains = cell.pipe().prepend(&scan).expect("open");
        gains.emit(0.1);
        gains.emit(-0.2);
        circuit.settle().expect("outside");
        assert_eq!(cell.get(), Drawdown::AFTER);
    }
}

#[test]
fn cel_18_an_unnamed_cell_is_called_as_its_circuit() {
    for circuit in circuits() {
        let subject = circuit.cell(0).expect("open").subject().clone();
        assert_eq!((subject.name(), subject.kind()), (circuit.subject().name(), Kind::Cell));
        assert_eq!(subject.enclosure(), Some(circuit.subject()));
    }
}
