//! Scenarios of closing resources and waiting for their end.

use std::thread;
use std::time::Duration;

use tidemark_circuit::{Circuit, Conduit, Registrar, Resource, Subject, Subscriber, Subscription};

use super::support::{Gate, Trace, circuits, driven, name};

fn deaf(_: &Subject, _: &mut Registrar<'_, u64>) {}

/// An end that takes long: a caller that waits for it waits until another thread opens a gate.
#[derive(Clone)]
struct Slow {
    trace: Trace<&'static str>,
    gate: Gate,
}

impl Slow {
    fn new() -> Self {
        Self { trace: Trace::new(), gate: Gate::default() }
    }

    /// Blocks the caller at the gate, then notes the end.
    fn end(&self) {
        self.gate.pass();
        self.trace.push("ended");
    }

    /// A subscription whose end takes long.
    fn subscribe(&self, conduit: &Conduit<u64>, subscriber: &Subscriber<u64>) -> Subscription<u64> {
        let slow = self.clone();
        conduit.subscribe_with(subscriber, move |_| slow.end()).expect("open")
    }

    /// Checks that closing through the trait waits for the end once; the second call has nothing to
    /// wait for.
    fn close_and_settle(&self, resource: &dyn Resource) {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(10));
                self.gate.open();
            });
            resource.close_and_settle().expect("outside");
            assert_eq!(self.trace.take(), ["ended"]);
        });
        resource.close_and_settle().expect("outside");
        assert_eq!(self.trace.take(), [""; 0]);
    }
}

#[test]
fn res_01_a_circuit_is_closed_and_waited_for() {
    for circuit in circuits() {
        let (conduit, slow) = (circuit.conduit().expect("open"), Slow::new());
        let _subscription = slow.subscribe(&conduit, &circuit.subscriber(deaf).expect("open"));
        slow.close_and_settle(&circuit);
        circuit.settle().expect("outside");
        assert!(circuit.conduit::<u64>().is_err());
        circuit.close_and_settle().expect("outside");
    }
}

#[test]
fn res_02_a_conduit_is_closed_and_waited_for() {
    for circuit in circuits() {
        let (conduit, slow) = (circuit.conduit().expect("open"), Slow::new());
        let subscriber = circuit.subscriber(deaf).expect("open");
        let _subscription = slow.subscribe(&conduit, &subscriber);
        slow.close_and_settle(&conduit);
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
        let slow = Slow::new();
        let subscription = slow.subscribe(&conduit, &subscriber);
        slow.close_and_settle(&subscriber);
        conduit.get(name("late")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), []);
        let subscription: &dyn Resource = &subscription;
        subscription.close_and_settle().expect("outside");
    }
}

#[test]
fn res_05_a_subscription_has_ended_when_the_wait_has() {
    for circuit in circuits() {
        let (conduit, slow) = (circuit.conduit().expect("open"), Slow::new());
        let subscription = slow.subscribe(&conduit, &circuit.subscriber(deaf).expect("open"));
        slow.close_and_settle(&subscription);
    }
}

#[test]
fn res_06_no_tick_comes_after_the_wait() {
    for circuit in driven() {
        let (trace, slow) = (Trace::new(), Slow::new());
        let (seen, second) = (trace.clone(), slow.clone());
        let target = circuit.pipe(move |tick: u64| {
            seen.push(tick);
            if tick == 1 {
                second.end();
            }
        });
        let ticker = circuit.ticker(Duration::from_millis(1), &target.expect("open")).expect("open");
        trace.wait_for(2);
        slow.close_and_settle(&ticker);
        let count = trace.len();
        thread::sleep(Duration::from_millis(30));
        assert_eq!(trace.len(), count);
    }
}

#[test]
fn a_resource_states_its_subject() {
    let circuit = Circuit::new();
    let bank = circuit.bank::<u64>().expect("open");
    let resources: [&dyn Resource; 2] = [&circuit, &bank];
    assert_eq!(resources.map(Resource::subject), [circuit.subject(), bank.subject()]);
}
