//! Scenarios of closures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidemark_circuit::{Circuit, Conduit, Registrar, Scope, Subject, Subscription};

use super::support::{Trace, circuits, name};

/// A subscription that notes what the conduit's pipes emit.
fn observed(circuit: &Circuit) -> (Conduit<u64>, Subscription<u64>, Trace<u64>) {
    let (conduit, trace) = (circuit.conduit().expect("open"), Trace::new());
    let seen = trace.clone();
    let observer = circuit
        .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
            registrar.receptor(seen.receptor());
        })
        .expect("open");
    let subscription = conduit.subscribe(&observer).expect("open");
    (conduit, subscription, trace)
}

fn emit(circuit: &Circuit, conduit: &Conduit<u64>, value: u64) {
    conduit.get(name("values")).emit(value);
    circuit.settle().expect("outside");
}

#[test]
fn clo_01_after_the_scope_there_is_nothing_to_consume() {
    for circuit in circuits() {
        let (conduit, subscription, trace) = observed(&circuit);
        let scope = Scope::new();
        let closure = scope.closure(&subscription).expect("open");
        scope.close();
        assert_eq!(closure.consume(|_| "ran"), None);
        emit(&circuit, &conduit, 1);
        assert_eq!(trace.take(), []);
    }
}

#[test]
fn clo_02_the_block_runs_once_with_the_resource_which_is_closed_then() {
    for circuit in circuits() {
        let (conduit, subscription, trace) = observed(&circuit);
        let scope = Scope::new();
        let closure = scope.closure(&subscription).expect("open");
        emit(&circuit, &conduit, 1);
        assert_eq!(closure.consume(|given| *given == subscription), Some(true));
        assert_eq!(closure.consume(|_| "again"), None);
        emit(&circuit, &conduit, 2);
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn clo_03_a_failure_of_the_block_comes_out_and_the_resource_is_closed() {
    for circuit in circuits() {
        let (conduit, subscription, trace) = observed(&circuit);
        let scope = Scope::new();
        let closure = scope.closure(&subscription).expect("open");
        emit(&circuit, &conduit, 1);
        let panic = catch_unwind(AssertUnwindSafe(|| closure.consume(|_| panic!("no")))).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"no"));
        emit(&circuit, &conduit, 2);
        assert_eq!(trace.take(), [1]);

        let (_, subscription, _) = observed(&circuit);
        let closure = scope.closure(&subscription).expect("open");
        assert_eq!(closure.consume(|_| Err::<(), _>("an error")), Some(Err("an error")));
    }
}
