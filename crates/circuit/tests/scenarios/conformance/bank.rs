//! Scenarios of banks.

use std::sync::{Arc, Barrier};
use std::thread;

use tidemark_circuit::{Registrar, Routing, Subject};

use super::support::{Trace, circuits, name};

#[test]
fn bnk_01_the_conduits_of_a_bank_have_its_routing() {
    for circuit in circuits() {
        let bank = circuit.bank_with::<u64>(Routing::Stem).expect("open");
        let conduit = bank.get(name("values")).expect("open");
        let trace = Trace::new();
        let seen = trace.clone();
        let observer = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
                let (name, seen) = (subject.name(), seen.clone());
                registrar.receptor(move |_| seen.push(name));
            })
            .expect("open");
        conduit.subscribe(&observer).expect("open");
        conduit.get(name("app.leaf")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [name("app.leaf"), name("app")]);
    }
}

#[test]
fn bnk_02_a_conduit_of_its_own_outlives_a_bank() {
    for circuit in circuits() {
        let separate = circuit.conduit::<u64>().expect("open");
        let bank = circuit.bank::<u64>().expect("open");
        bank.get(name("own")).expect("open");
        bank.close_and_settle().expect("outside");
        assert!(!separate.is_closed());
        let trace = Trace::new();
        let seen = trace.clone();
        let observer = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
                registrar.receptor(seen.receptor());
            })
            .expect("open");
        separate.subscribe(&observer).expect("open");
        separate.get(name("still.there")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn bnk_03_a_closed_bank_refuses_and_so_do_its_conduits() {
    for circuit in circuits() {
        let bank = circuit.bank::<u64>().expect("open");
        let conduit = bank.get(name("own")).expect("open").clone();
        bank.close_and_settle().expect("outside");
        assert_eq!(bank.get(name("own")).unwrap_err().subject(), bank.subject());
        assert_eq!(bank.get(name("new")).unwrap_err().subject(), bank.subject());
        let observer = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u64>| ()).expect("open");
        assert_eq!(conduit.subscribe(&observer).unwrap_err().subject(), conduit.subject());
    }
}

#[test]
fn bnk_04_a_bank_can_be_closed_twice() {
    for circuit in circuits() {
        let bank = circuit.bank::<u64>().expect("open");
        bank.get(name("own")).expect("open");
        bank.close();
        bank.close();
        bank.close_and_settle().expect("outside");
    }
}

#[test]
fn bnk_05_different_names_have_different_conduits() {
    for circuit in circuits() {
        let bank = circuit.bank::<u64>().expect("open");
        assert_ne!(bank.get(name("one")).unwrap(), bank.get(name("two")).unwrap());
    }
}

#[test]
fn bnk_06_all_threads_get_the_same_conduit() {
    for circuit in circuits() {
        let bank = circuit.bank::<u64>().expect("open");
        let start = Arc::new(Barrier::new(20));
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let (bank, start) = (bank.clone(), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    bank.get(name("shared")).expect("open").clone()
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(&thread.join().unwrap(), bank.get(name("shared")).unwrap());
        }
    }
}

#[test]
fn bnk_07_a_name_has_one_conduit() {
    for circuit in circuits() {
        let bank = circuit.bank::<u64>().expect("open");
        let conduit = bank.get(name("one")).unwrap();
        assert_eq!(conduit, bank.get(name("one")).unwrap());
        assert_eq!(conduit.subject().name(), name("one"));
        assert_eq!(conduit.subject().enclosure(), Some(bank.subject()));
    }
}
