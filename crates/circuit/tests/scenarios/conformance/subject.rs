//! Subject: identity.

use std::cmp::Ordering;
use std::collections::HashSet;

use tidemark_circuit::{Circuit, Conduit, Current, Extent, Kind, Registrar, Subject};

use super::support::name;

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] =
    &[("SUB-03", "the type system: there is one type of subject, and nothing else compares with it")];

fn circuit(path: &str) -> Circuit {
    Circuit::builder().name(name(path)).build().expect("a thread")
}

fn conduit(circuit: &Circuit, path: &str) -> Conduit<u32> {
    circuit.named(name(path)).conduit().expect("open")
}

#[test]
fn sub_01_an_enclosing_subject_orders_first() {
    let circuit = circuit("zzz");
    let conduit = conduit(&circuit, "mmm");
    let pipe = conduit.get(name("aaa"));
    let line = [Subject::cortex(), circuit.subject(), conduit.subject(), pipe.subject()];
    for (depth, outer) in line.iter().enumerate() {
        assert_eq!(outer.cmp(outer), Ordering::Equal);
        for inner in &line[depth + 1..] {
            assert_eq!(outer.cmp(inner), Ordering::Less, "{outer} encloses {inner}");
            assert_eq!(inner.cmp(outer), Ordering::Greater, "{inner} lies in {outer}");
        }
    }
}

#[test]
fn sub_02_namesakes_are_distinct() {
    let circuits = [circuit("sub.two"), circuit("sub.two")];
    let conduits = circuits.each_ref().map(|circuit| conduit(circuit, "orders"));
    let [first, second] = conduits.each_ref().map(Conduit::subject);
    assert_ne!(first.cmp(second), Ordering::Equal);
    assert_ne!(first.id(), second.id());
}

#[test]
fn sub_04_subjects_have_one_order() {
    let (left, right) = (circuit("left"), circuit("right"));
    let all: Vec<Subject> = [
        Subject::cortex().clone(),
        left.subject().clone(),
        conduit(&left, "a").subject().clone(),
        conduit(&left, "z").subject().clone(),
        right.subject().clone(),
        // Ordered by its parent, not by its name.
        conduit(&right, "b").subject().clone(),
    ]
    .into();
    for (one, first) in all.iter().enumerate() {
        for (two, second) in all.iter().enumerate() {
            assert_eq!(first.cmp(second), one.cmp(&two), "{first} and {second}");
        }
    }
}

#[test]
fn sub_05_siblings_are_ordered_by_name() {
    let circuit = Circuit::new();
    let (last, first) = (conduit(&circuit, "zzz"), conduit(&circuit, "aaa"));
    assert!(first.subject() < last.subject());
}

#[test]
fn sub_06_namesakes_share_a_name_and_no_id() {
    let (first, second) = (circuit("sub.six"), circuit("sub.six"));
    assert_eq!(first.subject().name(), second.subject().name());
    assert_ne!(first.subject().id(), second.subject().id());
}

#[test]
fn sub_07_an_id_is_equal_only_to_itself() {
    let threads: Vec<Current> =
        (0..20).map(|_| std::thread::spawn(Current::of_thread).join().unwrap()).collect();
    let ids: HashSet<_> = threads.iter().map(|current| current.subject().id()).collect();
    assert_eq!(ids.len(), 20, "namesakes have ids of their own");
    assert!(threads.iter().all(|current| ids.contains(&current.subject().id())), "an id hashes as itself");
    assert!(!ids.contains(&Subject::cortex().id()));
    assert_eq!(Subject::cortex().id(), Subject::cortex().clone().id());
}

#[test]
fn sub_09_a_circuit_lies_in_the_cortex() {
    let circuit = circuit("sub.nine");
    let subject = circuit.subject();
    assert_eq!((subject.kind(), subject.name()), (Kind::Circuit, name("sub.nine")));
    assert_eq!(subject.id(), circuit.clone().subject().id());
    assert_eq!(subject.part(), "circuit:sub.nine");
    assert!(subject.path().contains(&*Subject::cortex().part()), "{subject}");
    assert_eq!(subject.depth(), 2);
    assert_eq!((subject.enclosure(), subject.extremity()), (Some(Subject::cortex()), Subject::cortex()));
    assert!(subject.state().is_empty());
}

#[test]
fn sub_10_a_subscription_lies_in_a_conduit_in_a_circuit() {
    let circuit = circuit("sub.ten");
    let conduit = conduit(&circuit, "orders");
    let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| ()).expect("open");
    let subscription = conduit.subscribe(&subscriber).expect("open");
    let subject = subscription.subject();
    assert_eq!(subject.kind(), Kind::Subscription);
    let line: Vec<&Subject> = subject.iter().collect();
    assert_eq!(line, [subject, conduit.subject(), circuit.subject(), Subject::cortex()]);
    assert!(line[1..].iter().all(|outer| subject.within(outer)));
    assert!(!conduit.subject().within(subject) && !subject.within(subject));
    assert_eq!(subject.depth(), 4);
}

#[test]
fn sub_11_a_conduit_lies_in_its_circuit() {
    let circuit = circuit("sub.eleven");
    let conduit = conduit(&circuit, "orders");
    let subject = conduit.subject();
    assert!(subject.path().contains(&*circuit.subject().part()));
    assert!(subject.path().ends_with(&*subject.part()));
    assert_eq!(subject.to_string(), subject.path());
    assert_eq!(subject.depth(), 3);
    assert_eq!(subject.enclosure(), Some(circuit.subject()));
}
