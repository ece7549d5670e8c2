//! Callbacks at the end of a subscription, whichever side ended it.

use tidemark_circuit::{Circuit, Conduit, Current, Subscriber, Subscription};

use super::support::{Trace, circuits, fail, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[("ONC-10", "Java: absent arguments")];

/// A subscription that notes its end.
struct Watched {
    circuit: Circuit,
    conduit: Conduit<u32>,
    subscriber: Subscriber<u32>,
    subscription: Subscription<u32>,
    ends: Trace<Subscription<u32>>,
}

impl Watched {
    fn on(circuit: Circuit) -> Self {
        let conduit = circuit.conduit().expect("open");
        let subscriber = Trace::new().subscriber(&circuit);
        let ends = Trace::new();
        let seen = ends.clone();
        let subscription = conduit.subscribe_with(&subscriber, move |ended| seen.push(ended.clone()));
        Self { circuit, conduit, subscriber, subscription: subscription.expect("open"), ends }
    }

    fn ends(&self) -> usize {
        self.circuit.settle().expect("outside");
        self.ends.len()
    }
}

fn watched() -> impl Iterator<Item = Watched> {
    circuits().map(Watched::on)
}

#[test]
fn onc_01_one_that_fails_does_not_keep_another_from_being_called() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        conduit.subscribe_with(&Trace::new().subscriber(&circuit), |_| fail("at the end")).expect("open");
        let ends = Trace::new();
        let seen = ends.clone();
        let subscriber = Trace::<(_, u32)>::new().subscriber(&circuit);
        conduit.subscribe_with(&subscriber, move |_| seen.push(())).expect("open");
        conduit.close();
        circuit.settle().expect("outside");
        assert_eq!(ends.take().len(), 1);
    }
}

#[test]
fn onc_02_a_refused_subscription_does_not_end() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        conduit.close_and_settle().expect("outside");
        let ends = Trace::new();
        let (seen, subscriber) = (ends.clone(), Trace::<(_, u32)>::new().subscriber(&circuit));
        conduit.subscribe_with(&subscriber, move |_| seen.push(())).expect_err("closed");
        circuit.close_and_settle().expect("outside");
        assert_eq!(ends.len(), 0);
    }
}

#[test]
fn onc_03_the_close_of_the_conduit_ends_it() {
    for watched in watched() {
        assert_eq!(watched.ends(), 0);
        watched.conduit.close();
        assert_eq!(watched.ends(), 1);
    }
}

#[test]
fn onc_04_it_ends_once_though_all_are_closed() {
    for watched in watched() {
        watched.subscription.close();
        watched.subscriber.close();
        watched.conduit.close();
        assert_eq!(watched.ends(), 1);
    }
}

#[test]
fn onc_05_it_ends_once_though_it_is_closed_three_times() {
    for watched in watched() {
        (0..3).for_each(|_| watched.subscription.close());
        assert_eq!(watched.ends(), 1);
    }
}

#[test]
fn onc_06_the_close_of_the_subscriber_ends_it() {
    for watched in watched() {
        watched.subscriber.close();
        assert_eq!(watched.ends(), 1);
    }
}

#[test]
fn onc_07_its_own_close_ends_it() {
    for watched in watched() {
        watched.subscription.close();
        assert_eq!(watched.ends(), 1);
    }
}

#[test]
fn onc_08_it_is_called_in_the_circuit() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let trace = Trace::new();
        let (seen, subscriber) = (trace.clone(), Trace::<(_, u32)>::new().subscriber(&circuit));
        let subscription = conduit.subscribe_with(&subscriber, move |_| seen.push(Current::here()));
        subscription.expect("open").close();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [circuit.current().clone()]);
    }
}

#[test]
fn onc_09_it_is_given_the_subscription() {
    for watched in watched() {
        watched.subscription.close();
        watched.circuit.settle().expect("outside");
        let ends = watched.ends.take();
        assert_eq!((ends.len(), &ends[0]), (1, &watched.subscription));
        assert_eq!(ends[0].subject(), watched.subscription.subject());
    }
}

#[test]
fn onc_11_nothing_needs_to_be_called() {
    for circuit in circuits() {
        let conduit = circuit.conduit().expect("open");
        let trace = Trace::new();
        let subscription = conduit.subscribe(&trace.subscriber(&circuit)).expect("open");
        conduit.get(name("a")).emit(1);
        subscription.close();
        conduit.get(name("a")).emit(2);
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [1]);
    }
}
