//! Subscriber: which pipes are announced to it, and from when until when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidemark_circuit::{Circuit, Conduit, Flow, Pipe, ReceiverPool, Registrar, Subject, Subscriber};

use super::support::{Trace, circuits, fail, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("SBR-20", "the type system: a kept registrar does not compile, see the example of `Registrar`"),
    ("SBR-27", "Java: absent arguments"),
];

/// A subscriber that counts announcements of pipes, and values.
struct Counting {
    subscriber: Subscriber<u32>,
    notified: Arc<AtomicUsize>,
    delivered: Arc<AtomicUsize>,
}

impl Counting {
    fn of(circuit: &Circuit) -> Self {
        let (notified, delivered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (Arc::clone(&notified), Arc::clone(&delivered));
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u32>| {
            counts.0.fetch_add(1, Ordering::Relaxed);
            let delivered = Arc::clone(&counts.1);
            registrar.receptor(move |_| _ = delivered.fetch_add(1, Ordering::Relaxed));
        });
        Self { subscriber: subscriber.expect("open"), notified, delivered }
    }

    fn notified(&self) -> usize {
        self.notified.load(Ordering::Relaxed)
    }

    fn delivered(&self) -> usize {
        self.delivered.load(Ordering::Relaxed)
    }
}

/// A conduit and its pipe `a`.
fn conduit_and_pipe(circuit: &Circuit) -> (Conduit<u32>, Pipe<u32>) {
    let conduit = circuit.conduit().expect("open");
    let pipe = conduit.get(name("a")).clone();
    (conduit, pipe)
}

fn emit_and_settle(circuit: &Circuit, conduits: &[Conduit<u32>], count: u32) {
    for conduit in conduits {
        (0..count).for_each(|value| conduit.get(name("a")).emit(value));
    }
    circuit.settle().expect("outside");
}

#[test]
fn sbr_01_the_callback_is_called_once_per_pipe() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        conduit.subscribe(&counting.subscriber).expect("open");
        (1..=2).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!((counting.notified(), counting.delivered()), (1, 2));
    }
}

#[test]
fn sbr_02_the_callback_is_called_when_the_pipe_first_emits() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        conduit.subscribe(&counting.subscriber).expect("open");
        circuit.settle().expect("outside");
        assert_eq!(counting.notified(), 0);
        for _ in 0..2 {
            pipe.emit(1);
            circuit.settle().expect("outside");
            assert_eq!(counting.notified(), 1);
        }
    }
}

#[test]
fn sbr_03_a_callback_that_fails_is_not_called_again_and_what_it_registered_stays() {
    for circuit in circuits() {
        let (notified, trace) = (Arc::new(AtomicUsize::new(0)), Trace::new());
        let (count, receptor) = (Arc::clone(&notified), trace.receptor());
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u32>| {
            count.fetch_add(1, Ordering::Relaxed);
            registrar.receptor(receptor.clone());
            fail("after registering");
        });
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        (1..=2).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!((notified.load(Ordering::Relaxed), trace.take()), (1, vec![1, 2]));
        assert_eq!(circuit.failures(), 1);
    }
}

#[test]
fn sbr_04_one_subscriber_hears_of_two_conduits() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let conduits = [(); 2].map(|()| circuit.conduit().expect("open"));
        let subscriptions =
            conduits.each_ref().map(|conduit| conduit.subscribe(&counting.subscriber).expect("open"));
        emit_and_settle(&circuit, &conduits, 50);
        assert_eq!(counting.delivered(), 100);
        subscriptions[0].close();
        emit_and_settle(&circuit, &conduits, 50);
        assert_eq!(counting.delivered(), 150);
        counting.subscriber.close();
        emit_and_settle(&circuit, &conduits, 50);
        assert_eq!(counting.delivered(), 150);
    }
}

#[test]
fn sbr_05_closing_one_subscriber_leaves_the_other() {
    for circuit in circuits() {
        let both = [Counting::of(&circuit), Counting::of(&circuit)];
        let conduits = [circuit.conduit().expect("open")];
        for counting in &both {
            conduits[0].subscribe(&counting.subscriber).expect("open");
        }
        emit_and_settle(&circuit, &conduits, 50);
        both[0].subscriber.close();
        emit_and_settle(&circuit, &conduits, 50);
        assert_eq!(both.each_ref().map(Counting::delivered), [50, 100]);
    }
}

#[test]
fn sbr_06_closing_three_times_is_closing_once() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let conduits = [circuit.conduit().expect("open")];
        conduits[0].subscribe(&counting.subscriber).expect("open");
        emit_and_settle(&circuit, &conduits, 10);
        for _ in 0..3 {
            counting.subscriber.close();
            emit_and_settle(&circuit, &conduits, 10);
            assert_eq!(counting.delivered(), 10);
        }
    }
}

#[test]
fn sbr_07_closing_the_subscriber_ends_ten_subscriptions() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let conduits = [(); 10].map(|()| circuit.conduit().expect("open"));
        for conduit in &conduits {
            conduit.subscribe(&counting.subscriber).expect("open");
        }
        emit_and_settle(&circuit, &conduits, 10);
        assert_eq!(counting.delivered(), 100);
        counting.subscriber.close();
        emit_and_settle(&circuit, &conduits, 10);
        assert_eq!(counting.delivered(), 100);
    }
}

#[test]
fn sbr_08_closing_the_subscriber_ends_both_subscriptions() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let conduits = [(); 2].map(|()| circuit.conduit().expect("open"));
        for conduit in &conduits {
            conduit.subscribe(&counting.subscriber).expect("open");
        }
        emit_and_settle(&circuit, &conduits, 5);
        counting.subscriber.close();
        emit_and_settle(&circuit, &conduits, 5);
        assert_eq!(counting.delivered(), 10);
    }
}

#[test]
fn sbr_09_a_subscriber_without_subscriptions_may_be_closed() {
    for circuit in circuits() {
        Counting::of(&circuit).subscriber.close_and_settle().expect("outside");
        assert_eq!(circuit.failures(), 0);
    }
}

#[test]
fn sbr_10_everything_that_is_registered_receives() {
    for circuit in circuits() {
        let trace = Trace::new();
        let targets = ["A", "B"].map(|which| {
            let seen = trace.clone();
            circuit.pipe(move |value: u32| seen.push((which, value))).expect("open")
        });
        let seen = trace.clone();
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u32>| {
            let receptor = |seen: &Trace<_>| {
                let seen = seen.clone();
                move |value| seen.push(("receptor", value))
            };
            registrar.pipe(&targets[0]);
            registrar.receptor(receptor(&seen));
            registrar.pipe(&targets[0]);
            registrar.receptor(receptor(&seen));
            registrar.pipe(&targets[1]);
        });
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        pipe.emit(7);
        circuit.settle().expect("outside");
        let (receptors, pipes): (Vec<_>, Vec<_>) =
            trace.take().into_iter().partition(|(which, _)| *which == "receptor");
        assert_eq!(pipes, [("A", 7), ("A", 7), ("B", 7)]);
        assert_eq!(receptors, [("receptor", 7); 2]);
    }
}

#[test]
fn sbr_11_a_closed_subscription_delivers_no_more() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        let subscription = conduit.subscribe(&counting.subscriber).expect("open");
        pipe.emit(1);
        circuit.settle().expect("outside");
        subscription.close_and_settle().expect("outside");
        pipe.emit(2);
        circuit.settle().expect("outside");
        assert_eq!(counting.delivered(), 1);
    }
}

#[test]
fn sbr_12_a_subscription_ends_at_its_place_in_the_order() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        let subscription = conduit.subscribe(&trace.subscriber(&circuit)).expect("open");
        pipe.emit(10);
        subscription.close();
        pipe.emit(20);
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [10]);
    }
}

#[test]
fn sbr_13_a_subscription_begins_at_its_place_in_the_order() {
    for circuit in circuits() {
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        pipe.emit(10);
        let trace = Trace::of(&circuit, &conduit);
        pipe.emit(20);
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [20]);
    }
}

#[test]
fn sbr_15_two_subscribers_hear_the_same() {
    for circuit in circuits() {
        let conduits = [circuit.conduit().expect("open")];
        let traces = [(); 2].map(|()| Trace::of(&circuit, &conduits[0]));
        emit_and_settle(&circuit, &conduits, 100);
        assert!(traces.iter().all(|trace| trace.values() == (0..100).collect::<Vec<_>>()));
    }
}

#[test]
fn sbr_16_a_conduit_can_be_what_a_subscriber_leads_to() {
    for circuit in circuits() {
        let (source, pipe) = conduit_and_pipe(&circuit);
        let mirror = circuit.conduit::<u32>().expect("open");
        let trace = Trace::of(&circuit, &mirror);
        source.subscribe(&circuit.subscriber_to(mirror).expect("open")).expect("open");
        (0..25).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), (0..25).map(|value| (name("a"), value)).collect::<Vec<_>>());
    }
}

#[test]
fn sbr_17_a_hundred_emissions_are_a_hundred_deliveries() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let conduits = [circuit.conduit().expect("open")];
        conduits[0].subscribe(&counting.subscriber).expect("open");
        emit_and_settle(&circuit, &conduits, 100);
        assert_eq!(counting.delivered(), 100);
    }
}

#[test]
fn sbr_18_what_follows_the_subscribing_is_delivered_without_waiting() {
    for circuit in circuits() {
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        let trace = Trace::of(&circuit, &conduit);
        [10, 20].into_iter().for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), [10, 20]);
    }
}

#[test]
fn sbr_19_an_emission_needs_no_subscriber() {
    for circuit in circuits() {
        let conduits = [circuit.conduit().expect("open")];
        emit_and_settle(&circuit, &conduits, 1000);
        assert_eq!(circuit.failures(), 0);
    }
}

#[test]
fn sbr_21_a_closed_conduit_takes_no_subscriber() {
    for circuit in circuits() {
        let (conduit, pipe) = conduit_and_pipe(&circuit);
        conduit.close_and_settle().expect("outside");
        let (counting, ends) = (Counting::of(&circuit), Trace::new());
        let seen = ends.clone();
        let fault = conduit.subscribe_with(&counting.subscriber, move |_| seen.push(())).expect_err("closed");
        assert_eq!((fault.subject(), fault.operation()), (conduit.subject(), "subscribe"));
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!((counting.notified(), counting.delivered(), ends.len()), (0, 0, 0));
    }
}

#[test]
fn sbr_22_a_subscriber_of_another_circuit_is_refused() {
    let (here, there) = (Circuit::new(), Circuit::new());
    let conduit = here.conduit::<u32>().expect("open");
    let foreign = Counting::of(&there).subscriber;
    let fault = conduit.subscribe(&foreign).expect_err("foreign");
    assert!(fault.message().starts_with("Subscriber belongs to a different circuit"), "{fault}");
    assert!(fault.message().contains(&foreign.subject().to_string()), "{fault}");
    assert_eq!(fault.subject(), conduit.subject());
}

#[test]
fn sbr_23_what_came_before_the_subscribing_is_not_delivered() {
    for circuit in circuits() {
        let counting = Counting::of(&circuit);
        let conduits = [circuit.conduit().expect("open")];
        emit_and_settle(&circuit, &conduits, 50);
        assert_eq!(counting.delivered(), 0);
        conduits[0].subscribe(&counting.subscriber).expect("open");
        emit_and_settle(&circuit, &conduits, 50);
        assert_eq!(counting.delivered(), 50);
    }
}

#[test]
fn sbr_24_a_subscriber_of_this_circuit_is_taken() {
    let circuit = Circuit::new();
    let conduit = circuit.conduit::<u32>().expect("open");
    let subscription = conduit.subscribe(&Counting::of(&circuit).subscriber).expect("open");
    assert_eq!(subscription.subject().enclosure(), Some(conduit.subject()));
}

#[test]
fn sbr_25_a_closed_subscriber_is_refused_by_name() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let subscriber = Counting::of(&circuit).subscriber;
        subscriber.close();
        let fault = conduit.subscribe(&subscriber).expect_err("closed");
        assert!(fault.message().contains(&subscriber.subject().to_string()), "{fault}");
    }
}

// Pools as targets.

#[test]
fn sbr_14_a_derived_pool_is_a_target() {
    for circuit in circuits() {
        let (source, target) = (circuit.conduit::<u32>().expect("open"), circuit.conduit().expect("open"));
        let pool = target.pool(&Flow::new().map(|value: u32| value + 1));
        source.subscribe(&circuit.subscriber_to(pool).expect("open")).expect("open");
        let trace = Trace::of(&circuit, &target);
        source.get(name("a")).emit(2);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [(name("a"), 3)]);
    }
}

/// A pool whose pipes have a wider type than the subscribers' sources: narrower values are
/// converted.
struct Widening(Conduit<u64>);

impl<E: Into<u64> + Clone + Send + 'static> ReceiverPool<E> for Widening {
    fn register(&mut self, subject: &Subject, registrar: &mut Registrar<'_, E>) {
        let pipe = self.0.get(subject.name()).clone();
        registrar.receptor(move |value: E| pipe.emit(value.into()));
    }
}

#[test]
fn sbr_26_a_pool_of_a_wider_type_is_a_target() {
    for circuit in circuits() {
        let wide = circuit.conduit::<u64>().expect("open");
        let trace = Trace::of(&circuit, &wide);
        let (bytes, words) =
            (circuit.conduit::<u8>().expect("open"), circuit.conduit::<u32>().expect("open"));
        bytes.subscribe(&circuit.subscriber_to(Widening(wide.clone())).expect("open")).expect("open");
        words.subscribe(&circuit.subscriber_to(Widening(wide.clone())).expect("open")).expect("open");
        // The same with a flow, without a pool type of the caller's own.
        let derived = circuit.conduit::<u32>().expect("open");
        let widened = wide.pool(&Flow::<u32>::new().map(u64::from));
        derived.subscribe(&circuit.subscriber_to(widened).expect("open")).expect("open");

        bytes.get(name("a")).emit(u8::MAX);
        words.get(name("b")).emit(u32::MAX);
        derived.get(name("a")).emit(2);
        wide.get(name("a")).emit(u64::MAX);
        circuit.settle().expect("outside");
        let [byte, word] = [u64::from(u8::MAX), u64::from(u32::MAX)];
        let mut seen = trace.take();
        assert_eq!(seen.len(), 4);
        // Values that pass another pipe may come before or after the direct emissions to the wide
        // pipes.
        seen.sort_unstable_by_key(|(_, value)| *value);
        let expected = [(name("a"), 2), (name("a"), byte), (name("b"), word), (name("a"), u64::MAX)];
        assert_eq!(seen, expected, "each under the name of its pipe");
    }
}
