//! Failures: a panicking callback loses its own value, and affects no other.

#![allow(clippy::trivially_copy_pass_by_ref, reason = "operators show values by reference")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidemark_circuit::{Fiber, Registrar, Subject};

use super::support::{Trace, circuits, fail, name};

#[test]
fn iso_01_a_subscriber_that_fails_leaves_the_others_alone() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let failing = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| fail("on discovery"));
        conduit.subscribe(&failing.expect("open")).expect("open");
        let trace = Trace::of(&circuit, &conduit);
        (1..=3).for_each(|value| conduit.get(name("a")).emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [1, 2, 3]);
        assert_eq!(circuit.failures(), 1);
    }
}

#[test]
fn iso_02_a_receptor_that_fails_leaves_the_others_alone() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let trace = Trace::new();
        let seen = trace.receptor();
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u32>| {
            registrar.receptor(|_| fail("on each value"));
            registrar.receptor(seen.clone());
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        (1..=3).for_each(|value| conduit.get(name("a")).emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3]);
        assert_eq!(circuit.failures(), 3);
    }
}

#[test]
fn iso_03_a_receptor_that_fails_is_given_the_next_value() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let counts = [Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0))];
        let [failing, counting] = counts.clone();
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u32>| {
            let (failing, counting) = (Arc::clone(&failing), Arc::clone(&counting));
            registrar.receptor(move |_| {
                failing.fetch_add(1, Ordering::Relaxed);
                fail("on each value");
            });
            registrar.receptor(move |_| _ = counting.fetch_add(1, Ordering::Relaxed));
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        (0..100).for_each(|value| conduit.get(name("a")).emit(value));
        circuit.settle().expect("outside");
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [100, 100]);
    }
}

#[test]
fn iso_04_a_thousand_failures_do_not_wear_a_circuit_out() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let subscriber = circuit.subscriber(|_: &Subject, registrar: &mut Registrar<'_, u32>| {
            registrar.receptor(|_| fail("on each value"));
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        let pipe = conduit.get(name("a"));
        (0..1000).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        let trace = Trace::of(&circuit, &conduit);
        [1, 2].into_iter().for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [1, 2]);
        assert_eq!(circuit.failures(), 1002);
    }
}

#[test]
fn iso_05_an_operator_that_fails_costs_its_way_one_value() {
    for circuit in circuits() {
        let (peeked, trace) = (Trace::new(), Trace::new());
        let seen = peeked.clone();
        let fiber = Fiber::<u32>::new()
            .peek(|value| {
                if *value == 2 {
                    fail("on two");
                }
            })
            .peek(move |value| seen.push(*value));
        let head = trace.pipe(&circuit).prepend(&fiber).expect("open");
        (1..=3).for_each(|value| head.emit(value));
        circuit.settle().expect("outside");
        assert_eq!((peeked.take(), trace.take()), (vec![1, 3], vec![1, 3]));
        assert_eq!(circuit.failures(), 1);
    }
}

#[test]
fn iso_06_an_end_that_fails_leaves_the_other_ends_alone() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let ended = Trace::new();
        let subscriber = Trace::new().subscriber(&circuit);
        let first = conduit.subscribe_with(&subscriber, |_| fail("at the end")).expect("open");
        let seen = ended.clone();
        let second = conduit.subscribe_with(&subscriber, move |_| seen.push("second")).expect("open");
        first.close();
        second.close();
        circuit.settle().expect("outside");
        assert_eq!(ended.take(), ["second"]);
        assert_eq!(circuit.failures(), 1);
    }
}
