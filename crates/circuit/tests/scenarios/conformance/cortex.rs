//! Cortex: the root of everything. In Rust it needs no handle: circuits are made with
//! [`Circuit::new`] and [`Circuit::builder`] as well, and [`Subject::cortex`] encloses them.

use std::collections::HashSet;

use tidemark_circuit::{Circuit, Extent, Kind, Registrar, Subject, cortex};

use super::support::{Captured, Trace, circuits, emissions, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("CTX-08", "Java: absent argument"),
    ("CTX-23", "Java: absent argument"),
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
fn ctx_02_a_subscriber_is_notified_of_each_pipe() {
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
fn ctx_14_a_delivery_names_the_pipe() {
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

// Captures.

#[test]
fn ctx_03_what_a_conduit_emits_can_be_captured() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        assert!(Captured::of(&circuit, &conduit).drain().is_empty());
    }
}

#[test]
fn ctx_04_each_drain_gives_what_came_since_the_last() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        for text in ["first", "second"] {
            conduit.get(name("channel")).emit(text);
            assert_eq!(emissions(&captured.drain()), [text]);
        }
    }
}

#[test]
fn ctx_05_captures_keep_the_order() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        [10, 20, 30].into_iter().for_each(|value| conduit.get(name("channel")).emit(value));
        assert_eq!(emissions(&captured.drain()), [10, 20, 30]);
    }
}

// Scopes.

#[test]
fn ctx_09_scopes_may_be_closed_from_the_inside_out() {
    let root = cortex().scope();
    let child = root.scope().expect("open");
    let circuits = [&root, &child].map(|scope| scope.register(cortex().circuit()).expect("open"));
    child.close();
    assert_eq!(circuits.each_ref().map(Circuit::is_closed), [false, true]);
    root.close();
    assert!(circuits[0].is_closed());
}

#[test]
fn ctx_11_a_scope_closes_all_its_circuits() {
    let scope = cortex().scope();
    let circuits = circuits().map(|circuit| scope.register(circuit).expect("open"));
    let circuits: Vec<_> = circuits.collect();
    assert_eq!(circuits.len(), 3);
    scope.close();
    assert!(circuits.iter().all(Circuit::is_closed));
}

#[test]
fn ctx_12_a_scope_may_be_closed_twice() {
    let scope = cortex().scope();
    let circuit = scope.register(cortex().circuit()).expect("open");
    scope.close();
    scope.close();
    assert!(circuit.is_closed());
}

#[test]
fn ctx_13_a_resource_has_one_closure_at_a_time() {
    let (scope, circuit) = (cortex().scope(), cortex().circuit());
    let first = scope.closure(&circuit).expect("open");
    assert_eq!(scope.closure(&circuit).expect("open"), first);
    assert_eq!(first.consume(|_| ()), Some(()));
    assert_ne!(scope.closure(&circuit).expect("open"), first);
}

#[test]
fn ctx_15_a_scope_knows_what_encloses_it() {
    let root = cortex().scope();
    let child = root.scope().expect("open");
    let grandchild = child.scope().expect("open");
    assert_eq!((child.enclosure(), grandchild.enclosure()), (Some(&root), Some(&child)));
    let mut visited = 0;
    child.enclosure().inspect(|enclosure| {
        assert_eq!(*enclosure, &root);
        visited += 1;
    });
    assert!(root.enclosure().inspect(|_| visited += 1).is_none());
    assert_eq!(visited, 1);
}

#[test]
fn ctx_16_registering_gives_the_resource_back() {
    let (scope, conduit) = (cortex().scope(), Circuit::new().conduit::<u32>().expect("open"));
    assert_eq!(scope.register(conduit.clone()).expect("open"), conduit);
}

#[test]
fn ctx_17_a_closed_scope_refuses() {
    let (scope, circuit) = (cortex().scope(), Circuit::new());
    scope.close();
    assert!(scope.scope().is_err());
    assert!(scope.register(circuit.clone()).is_err());
    assert!(scope.closure(&circuit).is_err());
}

#[test]
fn ctx_18_a_scope_within_has_a_subject() {
    let root = cortex().scope();
    let child = root.scope().expect("open");
    assert_eq!(child.subject().enclosure(), Some(root.subject()));
}

#[test]
fn ctx_19_a_scope_has_a_subject() {
    assert_eq!(cortex().scope().subject().enclosure(), Some(cortex().subject()));
}

#[test]
fn ctx_20_a_scope_has_the_name_that_it_was_given() {
    assert_eq!(cortex().scope_named(name("ctx.twenty")).subject().name(), name("ctx.twenty"));
}

#[test]
fn ctx_21_a_scope_within_has_the_name_that_it_was_given() {
    let root = cortex().scope();
    assert_eq!(root.scope_named(name("child")).expect("open").subject().name(), name("child"));
}

#[test]
fn ctx_22_scopes_lie_within_each_other() {
    let root = cortex().scope();
    let child = root.scope().expect("open");
    let grandchild = child.scope().expect("open");
    assert!(child.within(&root) && grandchild.within(&child) && grandchild.within(&root));
    assert!(!root.within(&child) && !child.within(&grandchild) && !root.within(&root));
}

#[test]
fn ctx_30_a_scope_is_of_its_kind() {
    assert_eq!(cortex().scope().subject().kind(), Kind::Scope);
}
