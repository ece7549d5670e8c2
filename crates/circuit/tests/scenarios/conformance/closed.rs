//! Scenarios of closed resources that get another request.

use std::time::Duration;

use tidemark_circuit::{Circuit, Error, Fault, Fiber, Registrar, Routing, Subject};

use super::support::{circuits, name};

/// Checks that a closed circuit refuses this, with itself as the subject.
#[track_caller]
fn refuses<T>(operation: &str, make: impl Fn(&Circuit) -> Result<T, Fault>) {
    for circuit in circuits() {
        circuit.close();
        let Err(fault) = make(&circuit) else { panic!("a fault of {operation}") };
        assert_eq!((fault.subject(), fault.operation()), (circuit.subject(), operation));
        assert_eq!(fault.message(), "the circuit is closed");
    }
}

/// The fault in this error.
fn fault(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => fault,
        other => panic!("a fault, not {other:?}"),
    }
}

fn deaf(_: &Subject, _: &mut Registrar<'_, u64>) {}

#[test]
fn clr_01_no_bank() {
    refuses("bank", Circuit::bank::<u64>);
}

#[test]
fn clr_02_no_bank_with_a_routing() {
    refuses("bank", |circuit| circuit.bank_with::<u64>(Routing::Stem));
}

#[test]
fn clr_03_no_cell() {
    refuses("cell", |circuit| circuit.cell(0));
}

#[test]
fn clr_04_no_named_cell() {
    refuses("cell", |circuit| circuit.named(name("level")).cell(0));
}

#[test]
fn clr_05_no_conduit() {
    refuses("conduit", Circuit::conduit::<u64>);
}

#[test]
fn clr_06_no_named_conduit() {
    refuses("conduit", |circuit| circuit.named(name("orders")).conduit::<u64>());
}

#[test]
fn clr_07_no_named_conduit_with_a_routing() {
    refuses("conduit", |circuit| circuit.named(name("orders")).conduit_with::<u64>(Routing::Stem));
}

#[test]
fn clr_08_no_conduit_of_a_bank_that_was_there_before() {
    for circuit in circuits() {
        let bank = circuit.bank::<u64>().expect("open");
        bank.get(name("known")).expect("open");
        circuit.close();
        for path in ["known", "new"] {
            assert_eq!(bank.get(name(path)).unwrap_err().subject(), circuit.subject());
        }
    }
}

#[test]
fn clr_09_no_pipe_that_discards_and_the_operation_is_pipe() {
    refuses("pipe", Circuit::discard::<u64>);
}

#[test]
fn clr_10_no_named_pipe_to_a_receptor() {
    refuses("pipe", |circuit| circuit.named(name("orders")).pipe(drop::<u64>));
}

#[test]
fn clr_11_no_named_fan_out() {
    let open = Circuit::new();
    let targets = [open.discard::<u64>().expect("open"), open.discard().expect("open")];
    refuses("pipe", |circuit| circuit.named(name("orders")).fan_out(&targets));
}

#[test]
fn clr_12_no_pipe_to_a_receptor() {
    refuses("pipe", |circuit| circuit.pipe(drop::<u64>));
}

#[test]
fn clr_13_no_way_to_a_pipe_of_its_own() {
    for circuit in circuits() {
        let own = circuit.discard::<u64>().expect("open");
        circuit.close();
        assert_eq!(circuit.forward(&own).unwrap_err().subject(), circuit.subject());
        assert_eq!(circuit.fan_out(&[own]).unwrap_err().subject(), circuit.subject());
    }
}

#[test]
fn clr_14_no_fan_out_without_targets() {
    refuses("pipe", |circuit| circuit.fan_out::<u64>(&[]));
}

#[test]
fn clr_15_no_sink() {
    let endpoint = Circuit::new().discard().expect("open");
    refuses("sink", |circuit| circuit.sink::<u64>(&endpoint));
}

#[test]
fn clr_16_no_named_sink() {
    let endpoint = Circuit::new().discard().expect("open");
    refuses("sink", |circuit| circuit.named(name("sink")).sink::<u64>(&endpoint));
}

#[test]
fn clr_17_a_closed_conduit_refuses_subscribers_as_itself() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let subscriber = circuit.subscriber(deaf).expect("open");
        conduit.close();
        assert_eq!(conduit.subscribe(&subscriber).unwrap_err().subject(), conduit.subject());
    }
}

#[test]
fn clr_18_a_closed_subscriber_is_refused_by_the_conduit() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let subscriber = circuit.subscriber(deaf).expect("open");
        subscriber.close();
        let fault = conduit.subscribe(&subscriber).unwrap_err();
        assert_eq!((fault.subject(), fault.operation()), (conduit.subject(), "subscribe"));
        assert!(fault.message().contains(&subscriber.subject().to_string()), "{fault}");
    }
}

#[test]
fn clr_19_no_named_subscriber() {
    refuses("subscriber", |circuit| circuit.named(name("observer")).subscriber(deaf));
}

#[test]
fn clr_20_no_named_subscriber_to_a_pool() {
    for circuit in circuits() {
        let pool = circuit.conduit::<u64>().expect("open").pool(&Fiber::new().diff());
        circuit.close();
        let fault = circuit.named(name("mirror")).subscriber_to(pool).expect_err("a fault");
        assert_eq!((fault.subject(), fault.operation()), (circuit.subject(), "subscriber"));
        assert_eq!(fault.message(), "the circuit is closed");
    }
}

#[test]
fn clr_21_no_ticker() {
    let target = Circuit::new().discard().expect("open");
    refuses("ticker", |circuit| circuit.ticker(Duration::from_secs(1), &target).map_err(fault));
}

#[test]
fn clr_22_no_named_ticker() {
    let target = Circuit::new().discard().expect("open");
    refuses("ticker", |circuit| {
        circuit.named(name("beat")).ticker(Duration::from_secs(1), &target).map_err(fault)
    });
}
