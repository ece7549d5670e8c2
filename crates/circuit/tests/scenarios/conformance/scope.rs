//! Scenarios of scopes.

use tidemark_circuit::{
    Circuit, Conduit, ContextError, Extent, Registrar, Resource, Scope, Subject, Subscription,
};

use super::support::{Trace, circuits, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] =
    &[("SCO-08", "the type system: whatever is a Resource may be registered, there are no foreign ones")];

/// A subscription to the conduit that notes this number at its end.
fn ending(circuit: &Circuit, conduit: &Conduit<u64>, trace: &Trace<u32>, number: u32) -> Subscription<u64> {
    let deaf = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u64>| ()).expect("open");
    let seen = trace.clone();
    conduit.subscribe_with(&deaf, move |_| seen.push(number)).expect("open")
}

#[test]
fn sco_01_the_circuits_of_a_scope_end_with_it() {
    let scope = Scope::new();
    let pipes: Vec<_> = circuits()
        .map(|circuit| {
            let circuit = scope.register(circuit).expect("open");
            assert!(!circuit.is_closed());
            (circuit.discard().expect("open"), circuit)
        })
        .collect();
    assert_eq!(pipes.len(), 3);
    scope.close();
    for (pipe, circuit) in pipes {
        assert!(circuit.is_closed());
        pipe.emit(1);
        circuit.settle().expect("outside");
    }
}

#[test]
fn sco_02_the_last_one_is_closed_first() {
    for circuit in circuits() {
        let (scope, trace) = (Scope::new(), Trace::new());
        let conduit = circuit.conduit().expect("open");
        for number in 1..=3 {
            scope.register(ending(&circuit, &conduit, &trace, number)).expect("open");
        }
        scope.close();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [3, 2, 1]);
    }
}

#[test]
fn sco_03_scopes_within_are_closed_too() {
    let parent = Scope::named(name("parent"));
    let (named, unnamed) = (parent.scope_named(name("child")).expect("open"), parent.scope().expect("open"));
    assert_eq!(named.to_string(), named.path());
    assert_eq!(named.to_string(), "scope:parent/scope:child");
    let within = named.scope().expect("open");
    parent.close();
    for scope in [&named, &unnamed, &within] {
        assert_eq!(scope.scope().unwrap_err().subject(), scope.subject());
    }
}

#[test]
fn sco_04_a_circuit_can_be_closed_again_and_again() {
    for circuit in circuits() {
        circuit.close();
        circuit.close();
        circuit.settle().expect("outside");
        circuit.close();
        assert!(circuit.is_closed());
    }
}

#[test]
fn sco_05_a_scope_closes_once() {
    for circuit in circuits() {
        let (scope, trace) = (Scope::new(), Trace::new());
        let conduit = circuit.conduit().expect("open");
        scope.register(ending(&circuit, &conduit, &trace, 1)).expect("open");
        scope.close();
        scope.close();
        drop(scope);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1]);
    }
}

/// A resource whose close fails.
#[derive(Clone)]
struct Stubborn(Subject);

impl Resource for Stubborn {
    fn subject(&self) -> &Subject {
        &self.0
    }

    fn close(&self) {
        panic!("it does not close");
    }

    fn close_and_settle(&self) -> Result<(), ContextError> {
        panic!("it does not close");
    }
}

#[test]
fn sco_06_what_is_closed_already_or_fails_keeps_nothing_else_open() {
    for circuit in circuits() {
        let (scope, trace) = (Scope::new(), Trace::new());
        let conduit = circuit.conduit().expect("open");
        for number in 1..=3 {
            let subscription = scope.register(ending(&circuit, &conduit, &trace, number)).expect("open");
            if number == 2 {
                subscription.close();
                scope.register(Stubborn(trace.pipe(&circuit).subject().clone())).expect("open");
            }
        }
        scope.close();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [2, 3, 1]);
    }
}

#[test]
fn sco_07_a_resource_has_one_closure_until_that_is_consumed() {
    for circuit in circuits() {
        let scope = Scope::new();
        let closure = scope.closure(&circuit).expect("open");
        assert_eq!(scope.closure(&circuit).expect("open"), closure);
        assert_eq!(closure.consume(Circuit::is_closed), Some(false));
        assert!(circuit.is_closed());
        assert_ne!(scope.closure(&circuit).expect("open"), closure);
    }
}

#[test]
fn sco_09_a_resource_keeps_its_first_place() {
    for circuit in circuits() {
        let (scope, trace) = (Scope::new(), Trace::new());
        let conduit = circuit.conduit().expect("open");
        let [first, second] = [1, 2].map(|number| ending(&circuit, &conduit, &trace, number));
        for subscription in [&first, &second, &first] {
            scope.register(subscription.clone()).expect("open");
        }
        scope.close();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [2, 1]);
    }
}

#[test]
fn sco_10_a_closed_scope_does_nothing_more() {
    for circuit in circuits() {
        let scope = Scope::new();
        let closure = scope.closure(&circuit).expect("open");
        scope.close();
        assert_eq!(closure.consume(|_| "ran"), None);
        let late = Circuit::new();
        let refusals = [
            scope.register(late.clone()).unwrap_err(),
            scope.closure(&late).unwrap_err(),
            scope.scope().unwrap_err(),
        ];
        for (fault, operation) in refusals.iter().zip(["register", "closure", "scope"]) {
            assert_eq!((fault.subject(), fault.operation()), (scope.subject(), operation));
        }
        assert!(!late.is_closed());
    }
}

#[test]
fn sco_11_an_unnamed_scope_has_a_name() {
    assert!(!Scope::new().subject().name().path().is_empty());
}

#[test]
fn a_scope_that_is_dropped_is_closed() {
    for circuit in circuits() {
        let parent = Scope::new();
        let child = parent.scope().expect("open");
        child.register(circuit.clone()).expect("open");
        drop(parent);
        assert!(circuit.is_closed());
        assert!(child.scope().is_err());
    }
}

#[test]
fn a_scope_forgets_those_within_that_have_ended() {
    let (parent, circuit) = (Scope::new(), Circuit::new());
    for _ in 0..1000 {
        parent.scope().expect("open").register(Circuit::new()).expect("open");
    }
    let open = parent.scope().expect("open");
    open.register(circuit.clone()).expect("open");
    assert_eq!(open.enclosure(), Some(&parent));
    parent.close();
    assert!(circuit.is_closed());
}
