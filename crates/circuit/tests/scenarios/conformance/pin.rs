//! Scenarios of pins.

use tidemark_circuit::{Circuit, ContextError, Kind, Pin, Pipe, Receptor};

use super::support::{NoEmit, Trace, circuits, has, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] =
    &[("PIN-11", "Java: null arguments"), ("PIN-18", "Java: null arguments")];

/// The result of `act` for a pin that starts at 42, in the context of this circuit.
fn inside<T: Send + 'static>(
    circuit: &Circuit,
    pin: &Pin<u64>,
    act: impl Fn(&Pin<u64>) -> T + Send + 'static,
) -> T {
    let trace = Trace::new();
    let (pin, seen) = (pin.clone(), trace.clone());
    let pipe = circuit.pipe(move |()| seen.push(act(&pin))).expect("open");
    pipe.emit(());
    circuit.settle().expect("outside");
    trace.take().pop().expect("it ran")
}

fn refused() -> String {
    "Cannot use a pin outside of its circuit's context".to_owned()
}

fn text<T: std::fmt::Debug>(outcome: Result<T, ContextError>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn pin_01_the_handle_travels_through_a_pipe() {
    for circuit in circuits() {
        let (pin, trace) = (circuit.pin(42_u64).expect("open"), Trace::new());
        trace.pipe(&circuit).emit(pin.clone());
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [pin]);
    }
}

#[test]
fn pin_02_a_receptor_of_the_owner_reads_and_writes_at_once() {
    for circuit in circuits() {
        let pin = circuit.pin(1).expect("open");
        let seen = inside(&circuit, &pin, |pin| {
            let first = pin.get()?;
            pin.set(first + 5)?;
            Ok::<_, ContextError>((first, pin.get()?))
        });
        assert_eq!(seen, Ok((1, 6)));
        assert_eq!(inside(&circuit, &pin, |pin| pin.with(|value| std::mem::replace(value, 7))), Ok(6));
    }
}

#[test]
fn pin_03_the_handle_comes_back_from_another_circuit() {
    for (owner, other) in circuits().zip(circuits()) {
        let (pin, trace) = (owner.pin(11_u64).expect("open"), Trace::new());
        let seen = trace.clone();
        let home = owner.pipe(move |pin: Pin<u64>| seen.push(pin.get())).expect("open");
        let abroad = other.pipe(move |pin| home.emit(pin)).expect("open");
        abroad.emit(pin);
        other.settle().expect("outside");
        owner.settle().expect("outside");
        assert_eq!(trace.take(), [Ok(11)]);
    }
}

#[test]
fn pin_04_a_pin_begins_with_its_seed() {
    for circuit in circuits() {
        let pin = circuit.pin(42).expect("open");
        assert_eq!(inside(&circuit, &pin, Pin::get), Ok(42));
    }
}

#[test]
fn pin_05_another_circuit_cannot_open_a_handle_that_it_was_given() {
    for (owner, other) in circuits().zip(circuits()) {
        let (pin, trace) = (owner.pin(42_u64).expect("open"), Trace::new());
        let seen = trace.clone();
        let abroad = other.pipe(move |pin: Pin<u64>| seen.push(text(pin.get()))).expect("open");
        abroad.emit(pin);
        other.settle().expect("outside");
        assert_eq!(trace.take(), [refused()]);
    }
}

#[test]
fn pin_06_a_thread_cannot_read() {
    for circuit in circuits() {
        let pin = circuit.pin(42_u64).expect("open");
        assert_eq!(text(pin.get()), refused());
        assert_eq!(text(pin.with(|value| *value)), refused());
    }
}

#[test]
fn pin_07_a_receptor_of_another_circuit_cannot_read() {
    for (owner, other) in circuits().zip(circuits()) {
        let pin = owner.pin(42).expect("open");
        assert_eq!(text(inside(&other, &pin, Pin::get)), refused());
    }
}

#[test]
fn pin_08_a_closed_circuit_makes_no_pin() {
    for circuit in circuits() {
        circuit.close();
        let fault = circuit.pin(42).unwrap_err();
        assert_eq!((fault.subject(), fault.operation()), (circuit.subject(), "pin"));
    }
}

#[test]
fn pin_09_a_pin_is_no_pipe_and_no_receptor() {
    assert!(has!(fn(u64), Receptor<u64>) && has!(Pipe<u64>, Into<Pipe<u64>>), "the check recognises one");
    assert!(!has!(Pin<u64>, Receptor<u64>) && !has!(Pin<u64>, Into<Pipe<u64>>));
    let pin = Circuit::new().pin(1_u64).expect("open");
    assert_eq!(pin.emit(1), "no pipe");
}

#[test]
fn pin_10_a_closed_circuit_makes_no_named_pin() {
    for circuit in circuits() {
        circuit.close();
        assert_eq!(circuit.named(name("pin")).pin(42).unwrap_err().subject(), circuit.subject());
    }
}

#[test]
fn pin_12_namesakes_are_two_pins() {
    for circuit in circuits() {
        let named = circuit.named(name("pin"));
        let (first, second) = (named.pin(1).expect("open"), named.pin(1).expect("open"));
        assert_ne!(first, second);
        assert_ne!(first.subject().id(), second.subject().id());
    }
}

#[test]
fn pin_13_a_pin_has_the_name_that_was_asked_for() {
    for circuit in circuits() {
        assert_eq!(circuit.named(name("a.pin")).pin(1).expect("open").subject().name(), name("a.pin"));
    }
}

#[test]
fn pin_14_an_unnamed_pin_is_called_as_its_circuit() {
    for circuit in circuits() {
        let subject = circuit.pin(1).expect("open").subject().clone();
        assert_eq!((subject.name(), subject.kind()), (circuit.subject().name(), Kind::Pin));
        assert_eq!(subject.enclosure(), Some(circuit.subject()));
    }
}

#[test]
fn pin_15_a_thread_cannot_write() {
    for circuit in circuits() {
        let pin = circuit.pin(42).expect("open");
        assert_eq!(text(pin.set(1)), refused());
        assert_eq!(inside(&circuit, &pin, Pin::get), Ok(42));
    }
}

#[test]
fn pin_16_a_receptor_of_another_circuit_cannot_write() {
    for (owner, other) in circuits().zip(circuits()) {
        let pin = owner.pin(42).expect("open");
        assert_eq!(text(inside(&other, &pin, |pin| pin.set(1))), refused());
        assert_eq!(inside(&owner, &pin, Pin::get), Ok(42));
    }
}

#[test]
fn pin_17_what_was_written_is_read_on_the_next_line() {
    for circuit in circuits() {
        let pin = circuit.pin(42).expect("open");
        let seen = inside(&circuit, &pin, |pin| pin.set(99).and_then(|()| pin.get()));
        assert_eq!(seen, Ok(99));
    }
}

#[test]
fn a_pin_is_not_opened_while_it_is_open() {
    for circuit in circuits() {
        let pin = circuit.pin(42).expect("open");
        let seen = inside(&circuit, &pin, |pin| pin.with(|_| (text(pin.get()), text(pin.set(1)))));
        let refused = "Cannot use a pin from within Pin::with of the same pin".to_owned();
        assert_eq!(seen, Ok((refused.clone(), refused)));
        assert_eq!(inside(&circuit, &pin, Pin::get), Ok(42));
    }
}
