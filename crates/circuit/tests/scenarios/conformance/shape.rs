//! Shape: the parts of the crate, and the capabilities of each. Capabilities are traits, so
//! compiling proves most of it.

use std::collections::HashSet;
use std::time::Duration;

use tidemark_circuit::{
    Bank, Basin, Capture, Cell, Change, Circuit, Closure, Conduit, Cortex, Current, Extent, Fiber, Flow, Id,
    Kind, Name, Pin, Pipe, Pool, Port, Pulse, Receptor, Registrar, Resource, Routing, Run, Scope, Sink, Slot,
    State, Subject, Subscriber, Subscription, Ticker, cortex,
};

use super::support::{Trace, circuits, has, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("SHP-01", "Java: lists the overloads of methods by reflection"),
    ("SHP-04", "Java: lists the types of a package by reflection"),
];

/// One of each component, made by public calls.
struct Everything {
    bank: Bank<u64>,
    basin: Basin<u64>,
    cell: Cell<u64>,
    circuit: Circuit,
    conduit: Conduit<u64>,
    pin: Pin<u64>,
    pipe: Pipe<u64>,
    port: Port<u64>,
    scope: Scope,
    sink: Sink<u64>,
    subscriber: Subscriber<u64>,
    subscription: Subscription<u64>,
    ticker: Ticker,
}

impl Everything {
    fn of(circuit: &Circuit) -> Self {
        let conduit = circuit.conduit().expect("open");
        let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u64>| ()).expect("open");
        let pipe = circuit.discard().expect("open");
        Self {
            bank: circuit.bank_with(Routing::Stem).expect("open"),
            basin: circuit.basin(1).expect("open"),
            cell: circuit.cell(1).expect("open"),
            circuit: circuit.clone(),
            pin: circuit.pin(1).expect("open"),
            port: circuit.port(1).expect("open"),
            scope: cortex().scope(),
            sink: circuit.sink(&circuit.discard().expect("open")).expect("open"),
            subscription: conduit.subscribe(&subscriber).expect("open"),
            ticker: circuit.ticker(Duration::from_hours(1), &pipe).expect("open"),
            conduit,
            pipe,
            subscriber,
        }
    }

    /// The subjects, with the cortex and the context of this thread.
    fn subjects(&self) -> [&Subject; 14] {
        [
            cortex().subject(),
            self.bank.subject(),
            self.basin.subject(),
            self.cell.subject(),
            self.circuit.subject(),
            self.conduit.subject(),
            self.pin.subject(),
            self.pipe.subject(),
            self.port.subject(),
            self.scope.subject(),
            self.sink.subject(),
            self.subscriber.subject(),
            self.subscription.subject(),
            self.ticker.subject(),
        ]
    }
}

#[test]
fn shp_02_a_closure_receives_and_a_state_is_iterated() {
    let mut seen = None;
    let mut receptor = |value: u64| seen = Some(value);
    receptor.receive(7);
    assert_eq!(seen, Some(7));
    assert_eq!(State::empty().with(name("one"), 1).iter().count(), 1);
}

/// Two of the types have no counterpart: the `get` of pools, banks and conduits does what a
/// `Lookup` does, and a conduit is the only kind of `Source`.
#[test]
fn shp_03_every_type_is_had_by_public_calls() {
    for circuit in circuits() {
        let all = Everything::of(&circuit);
        let _: &Cortex = cortex();
        let _: Name = circuit.subject().name();
        let _: Id = circuit.subject().id();
        let _: &Current = circuit.current();
        let slot: Slot<i32> = Slot::new(name("slot"), 1);
        let _: State = State::empty().with(slot.name(), 1);
        let _: &dyn Resource = &all.circuit;
        let mut receptor = Trace::new().receptor();
        Receptor::receive(&mut receptor, 1_u64);
        let _: Option<Pulse> = circuit.pulse().expect("outside");
        let _: Pool<Pipe<u64>> = all.conduit.pool(&Fiber::new().diff());
        let closure: Closure<Circuit> = all.scope.closure(&circuit).expect("open");
        let _: Option<&Subject> = Extent::enclosure(all.pipe.subject());

        let (changes, runs, windows) = (Trace::<Change<u64>>::new(), Trace::<Run<u64>>::new(), Trace::new());
        let change = changes.pipe(&circuit).prepend(&Flow::new().change()).expect("open");
        let run = runs.pipe(&circuit).prepend(&Flow::new().run()).expect("open");
        let sizes = Flow::<u64>::new().window(2).expect("room for two").map(|window| window.len());
        let window = windows.pipe(&circuit).prepend(&sizes).expect("open");
        let captures = Trace::<Capture<u64>>::new();
        let sink = circuit.sink(&captures.pipe(&circuit)).expect("open");
        for value in [1, 2] {
            change.emit(value);
            run.emit(value);
            window.emit(value);
            sink.get(name("sink")).emit(value);
        }
        circuit.settle().expect("outside");
        assert_eq!(changes.take(), [Change { from: 1, to: 2, length: 1 }]);
        assert_eq!(runs.take(), [Run { value: 1, length: 1 }, Run { value: 2, length: 1 }]);
        assert_eq!((windows.take().last(), captures.len()), (Some(&2), 2));
        assert_eq!(closure.consume(Circuit::is_closed), Some(false));
    }
}

/// A conduit is the only kind of source.
#[test]
fn shp_05_what_ends_is_a_resource() {
    fn is_resource(_: &impl Resource) {}
    let all = Everything::of(&Circuit::new());
    is_resource(&all.bank);
    is_resource(&all.circuit);
    is_resource(&all.conduit);
    is_resource(&all.subscriber);
    is_resource(&all.subscription);
    is_resource(&all.ticker);
}

#[test]
fn shp_06_what_only_keeps_or_leads_on_is_no_resource() {
    assert!(has!(Circuit, Resource) && has!(Conduit<u64>, Resource), "the check recognises one");
    assert!(!has!(Basin<u64>, Resource) && !has!(Cell<u64>, Resource) && !has!(Current, Resource));
    assert!(!has!(Pin<u64>, Resource) && !has!(Pipe<u64>, Resource) && !has!(Port<u64>, Resource));
    assert!(!has!(Scope, Resource) && !has!(Sink<u64>, Resource));
    let circuit = Circuit::new();
    drop(Everything { scope: scope_of(&circuit), ..Everything::of(&Circuit::new()) });
    assert!(circuit.is_closed(), "a scope ends by being dropped");
}

fn scope_of(circuit: &Circuit) -> Scope {
    let scope = Scope::new();
    scope.register(circuit.clone()).expect("open");
    scope
}

/// A `subscribe` for types without one: a type's own method takes precedence.
trait NoSource {
    fn subscribe(&self, _: &Subscriber<u64>) -> &'static str {
        "no source"
    }
}

impl NoSource for Bank<u64> {}
impl NoSource for Sink<u64> {}
impl NoSource for Conduit<u64> {}

#[test]
fn shp_07_a_conduit_is_a_source_and_a_bank_and_a_sink_are_none() {
    for circuit in circuits() {
        let all = Everything::of(&circuit);
        let _: Subscription<u64> =
            all.conduit.subscribe(&all.subscriber).expect("its own method is preferred");
        assert_eq!(all.bank.subscribe(&all.subscriber), "no source");
        assert_eq!(all.sink.subscribe(&all.subscriber), "no source");
        assert_eq!(all.subscription.subject().enclosure(), Some(all.conduit.subject()));
    }
}

#[test]
fn shp_08_every_component_has_a_subject() {
    for circuit in circuits() {
        let all = Everything::of(&circuit);
        let current = Current::of_thread();
        let kinds: HashSet<Kind> =
            all.subjects().into_iter().chain([current.subject()]).map(Subject::kind).collect();
        assert_eq!(kinds.len(), 15);
    }
}

#[test]
fn shp_09_equal_kinds_are_equal() {
    assert_eq!(Circuit::new().subject().kind(), Circuit::new().subject().kind());
    assert_eq!(Slot::new(name("one"), 1).kind(), Slot::new(name("two"), 2).kind());
    assert_ne!(Slot::new(name("one"), 1).kind(), Slot::new(name("one"), true).kind());
}

/// A window by time alone does not compile: the capacity is an argument.
#[test]
fn shp_10_a_window_by_time_has_a_capacity() {
    let window = |capacity| Flow::<u64>::new().window_duration(Duration::from_hours(1), capacity);
    let sizes = window(2).expect("room for two").map(|window| window.len());
    assert_eq!(sizes.trace([1, 2, 3]).expect("no factory").last(), Some(&2));
    assert!(window(0).is_err());
}

#[test]
fn sub_08_fifteen_kinds_of_component_have_identities_and_kinds_of_their_own() {
    for circuit in circuits() {
        let all = Everything::of(&circuit);
        let current = Current::of_thread();
        let subjects: Vec<&Subject> = all.subjects().into_iter().chain([current.subject()]).collect();
        let ids: HashSet<Id> = subjects.iter().map(|subject| subject.id()).collect();
        let kinds: HashSet<Kind> = subjects.iter().map(|subject| subject.kind()).collect();
        assert_eq!((subjects.len(), ids.len(), kinds.len()), (15, 15, 15));
        let words: HashSet<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words.len(), 15, "each kind has a word of its own");
    }
}
