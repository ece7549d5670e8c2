//! Scenarios of closing and waiting for it.

use std::time::Duration;

use tidemark_circuit::{Circuit, Registrar, Resource, Subject};

use crate::support::{Trace, circuits, driven, name};

fn deaf(_: &Subject, _: &mut Registrar<'_, u64>) {}

/// That closing through the trait does what the method of the same name does.
fn close_and_settle(resource: &dyn Resource) {
    resource.close_and_settle().expect("outside");
    resource.close_and_settle().expect("outside");
}

#[test]
fn res_01_a_circuit_is_closed_and_waited_for() {
    for circuit in circuits() {
        close_and_settle(&circuit);
        circuit.settle().expect("outside");
        assert!(circuit.conduit::<u64>().is_err());
        circuit.close_and_settle().expect("outside");
    }
}

#[test]
fn res_02_a_conduit_is_closed_and_waited_for() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let subscriber = circuit.subscriber(deaf).expect("open");
        close_and_settle(&conduit);
        assert!(conduit.subscribe(&subscriber).is_err());
        conduit.close_and_settle().expect("outside");
    }
}

#[test]
fn res_03_a_receptor_cannot_wait_for_the_end_of_its_circuit() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (inside, seen) = (circuit.clone(), trace.clone());
        let pipe = circuit
            .pipe(move |()| {
                let circuit: &dyn Resource = &inside;
                seen.push(circuit.close_and_settle().is_err());
            })
            .expect("open");
        pipe.emit(());
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [true]);
        circuit.close();
    }
}

#[test]
fn res_04_a_subscriber_is_closed_and_waited_for() {
    for circuit in circuits() {
        let (conduit, trace) = (circuit.conduit().expect("open"), Trace::new());
        let seen = trace.clone();
        let subscriber = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
                registrar.receptor(seen.receptor());
            })
            .expect("open");
        let subscription = conduit.subscribe(&subscriber).expect("open");
        close_and_settle(&subscriber);
        conduit.get(name("late")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), []);
        close_and_settle(&subscription);
    }
}

#[test]
fn res_05_a_subscription_has_ended_when_the_wait_has() {
    for circuit in circuits() {
        let (conduit, trace) = (circuit.conduit().expect("open"), Trace::new());
        let subscriber = circuit.subscriber(deaf).expect("open");
        let seen = trace.clone();
        let subscription = conduit.subscribe_with(&subscriber, move |_| seen.push("ended")).expect("open");
        close_and_settle(&subscription);
        assert_eq!(trace.take(), ["ended"]);
    }
}

#[test]
fn res_06_no_tick_comes_after_the_wait() {
    for circuit in driven() {
        let trace = Trace::new();
        let ticker = circuit.ticker(Duration::from_millis(1), &trace.pipe(&circuit)).expect("open");
        trace.wait_for(2);
        close_and_settle(&ticker);
        let count = trace.len();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(trace.len(), count);
    }
}

#[test]
fn a_resource_says_who_it_is() {
    let circuit = Circuit::new();
    let bank = circuit.bank::<u64>().expect("open");
    let resources: [&dyn Resource; 2] = [&circuit, &bank];
    assert_eq!(resources.map(Resource::subject), [circuit.subject(), bank.subject()]);
}
