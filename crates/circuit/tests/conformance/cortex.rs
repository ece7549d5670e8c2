//! Cortex: where everything begins. In Rust it needs no handle: circuits are made with [`Circuit::new`] and
//! [`Circuit::builder`], and [`Subject::cortex`] is what encloses them.

use std::collections::HashSet;

use tidemark_circuit::{Circuit, Extent, Kind, Registrar, Subject};

use crate::support::{Trace, circuits, name};

/// Scenarios that make no sense in Rust, and why.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("CTX-08", "Java: absent argument"),
    ("CTX-32", "Java: absent argument"),
    ("CTX-33", "Java: absent argument"),
];

#[test]
fn ctx_01_a_new_circuit_settles_after_one_emission() {
    for circuit in circuits() {
        let trace = Trace::new();
        trace.pipe(&circuit).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn ctx_02_a_subscriber_is_told_of_each_pipe() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let subjects = Trace::new();
        let seen = subjects.clone();
        let subscriber = circuit
            .subscriber(move |subject: &Subject, _: &mut Registrar<'_, u32>| seen.push(subject.clone()));
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        let pipes = ["a", "b", "c"].map(|path| conduit.get(name(path)));
        pipes.iter().for_each(|pipe| pipe.emit(1));
        circuit.settle().expect("outside");
        assert_eq!(subjects.take(), pipes.map(|pipe| pipe.subject().clone()));
    }
}

#[test]
fn ctx_06_a_circuit_is_made_with_a_subject() {
    let circuit = Circuit::new();
    assert_eq!(circuit.subject().enclosure(), Some(Subject::cortex()));
}

#[test]
fn ctx_07_a_circuit_is_made_with_a_name() {
    let circuit = Circuit::builder().name(name("ctx.seven")).build().expect("a thread");
    assert_eq!(circuit.subject().name(), name("ctx.seven"));
}

#[test]
fn ctx_10_a_circuit_may_be_closed_three_times() {
    for circuit in circuits() {
        for _ in 0..3 {
            circuit.close();
            circuit.settle().expect("outside");
        }
        assert!(circuit.is_closed());
    }
}

#[test]
fn ctx_14_a_delivery_tells_the_pipe() {
    let circuit = Circuit::builder().name(name("integration")).build().expect("a thread");
    let conduit = circuit.named(name("events")).conduit::<&'static str>().expect("open");
    let trace = Trace::new();
    let seen = trace.clone();
    let subscriber =
        circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, &'static str>| {
            let (seen, subject) = (seen.clone(), subject.clone());
            registrar.receptor(move |value| seen.push((subject.clone(), value)));
        });
    conduit.subscribe(&subscriber.expect("open")).expect("open");
    conduit.get(name("channel")).emit("integration-test");
    circuit.settle().expect("outside");
    let seen = trace.take();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].0.kind(), seen[0].1), (Kind::Pipe, "integration-test"));
    assert_eq!(&seen[0].0, conduit.get(name("channel")).subject());
}

#[test]
fn ctx_24_a_circuit_is_of_its_kind() {
    assert_eq!(Circuit::new().subject().kind(), Kind::Circuit);
}

#[test]
fn ctx_25_the_cortex_is_of_its_kind() {
    assert_eq!(Subject::cortex().kind(), Kind::Cortex);
}

#[test]
fn ctx_26_the_cortex_has_a_name() {
    assert_eq!(Subject::cortex().name(), name("cortex"));
}

#[test]
fn ctx_27_the_cortex_has_a_subject() {
    assert_eq!(Subject::cortex().enclosure(), None);
    assert_eq!(Extent::depth(Subject::cortex()), 1);
}

#[test]
fn ctx_28_circuits_have_identities() {
    let ids: HashSet<_> = [(); 2].map(|()| Circuit::new().subject().id()).into();
    assert_eq!(ids.len(), 2);
}

#[test]
fn ctx_29_there_is_one_cortex() {
    assert_eq!(Subject::cortex(), Subject::cortex());
    assert_eq!(Subject::cortex().id(), Subject::cortex().id());
}

#[test]
fn ctx_31_a_subscriber_is_of_its_kind() {
    let circuit = Circuit::new();
    let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| ()).expect("open");
    assert_eq!(subscriber.subject().kind(), Kind::Subscriber);
    assert_eq!(subscriber.subject().enclosure(), Some(circuit.subject()));
}

#[test]
fn ctx_34_a_subscriber_has_the_name_that_it_was_given() {
    let circuit = Circuit::new();
    let subscriber = circuit.named(name("listener")).subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| ());
    assert_eq!(subscriber.expect("open").subject().name(), name("listener"));
}
