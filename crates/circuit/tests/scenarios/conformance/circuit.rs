//! Circuit: one order for all events, from any source.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::Duration;

use tidemark_circuit::{
    Circuit, ContextError, Current, Extent, Fiber, Flow, Kind, Name, Pipe, Registrar, RunBy, Subject,
};

use super::support::{Captured, Gate, Trace, circuits, driven, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] =
    &[("CIR-14", "Java: absent argument"), ("CIR-24", "Java: absent arguments")];

/// A pipe whose receptor emits `step(value)` to the same pipe, after noting the value.
fn cyclic(
    circuit: &Circuit,
    trace: &Trace<u32>,
    step: impl Fn(u32) -> Option<u32> + Send + 'static,
) -> Pipe<u32> {
    let again = Arc::new(OnceLock::<Pipe<u32>>::new());
    let (seen, knot) = (trace.clone(), Arc::clone(&again));
    let pipe = circuit.pipe(move |value: u32| {
        seen.push(value);
        if let Some(next) = step(value) {
            knot.get().expect("tied").emit(next);
        }
    });
    let pipe = pipe.expect("open");
    again.set(pipe.clone()).expect("once");
    pipe
}

// Settling.

#[test]
fn cir_01_settling_a_closed_circuit_returns_at_once() {
    for circuit in circuits() {
        let trace = Trace::new();
        trace.pipe(&circuit).emit(1);
        circuit.settle().expect("outside");
        circuit.close();
        thread::scope(|scope| {
            scope.spawn(|| (0..5).for_each(|_| circuit.settle().expect("outside")));
        });
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn cir_02_a_settling_thread_waits_for_the_running_receptor() {
    for circuit in circuits() {
        let (gate, opened) = (Gate::default(), AtomicBool::new(false));
        let (door, started) = (gate.clone(), Gate::default());
        let starting = started.clone();
        let pipe = circuit.pipe(move |(): ()| {
            starting.open();
            door.pass();
        });
        pipe.expect("open").emit(());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    circuit.settle().expect("outside");
                    assert!(opened.load(Ordering::SeqCst), "settled before the receptor was done");
                });
            }
            started.pass();
            thread::sleep(Duration::from_millis(20));
            opened.store(true, Ordering::SeqCst);
            gate.open();
        });
    }
}

#[test]
fn cir_03_what_was_accepted_before_the_close_is_handled() {
    for circuit in circuits() {
        let (trace, gate) = (Trace::new(), Gate::default());
        let (seen, door) = (trace.clone(), gate.clone());
        let pipe = circuit.pipe(move |value: u32| {
            door.pass();
            seen.push(value);
        });
        let pipe = pipe.expect("open");
        (1..=5).for_each(|value| pipe.emit(value));
        if circuit.run_by() == RunBy::Waiters {
            // Nothing is handled before this thread closes the circuit, and then all of it is.
            gate.open();
        }
        circuit.close();
        gate.open();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn cir_04_an_emission_without_subscribers_is_settled_too() {
    for circuit in circuits() {
        circuit.conduit::<u32>().expect("open").get(name("nobody.listens")).emit(1);
        circuit.settle().expect("outside");
    }
}

#[test]
fn cir_05_settling_from_within_is_refused() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (seen, own) = (trace.clone(), circuit.clone());
        circuit.pipe(move |(): ()| seen.push(own.settle())).expect("open").emit(());
        circuit.settle().expect("outside");
        let errors: Vec<ContextError> = trace.take().into_iter().map(Result::unwrap_err).collect();
        assert_eq!(errors.len(), 1);
        assert_eq!(
            errors[0].to_string(),
            "Cannot call Circuit::settle from within the circuit's context: emit what is to come later, or wait outside of it"
        );
        circuit.close();
    }
}

#[test]
fn cir_06_another_thread_may_emit_and_settle() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        thread::scope(|scope| {
            scope.spawn(|| {
                pipe.emit(100);
                circuit.settle().expect("outside");
                assert_eq!(trace.take(), [100]);
            });
        });
    }
}

#[test]
fn cir_07_a_receptor_can_detect_that_it_must_not_wait() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (seen, own) = (trace.clone(), circuit.clone());
        let pipe = circuit.pipe(move |(): ()| {
            if Current::here() == *own.current() {
                seen.push("skipped");
            } else {
                own.settle().expect("outside");
                seen.push("waited");
            }
        });
        pipe.expect("open").emit(());
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), ["skipped"]);
        assert_eq!(circuit.failures(), 0);
        circuit.close();
    }
}

#[test]
fn cir_08_settling_covers_all_that_was_emitted_before() {
    for circuit in circuits() {
        let trace = Trace::new();
        let seen = trace.clone();
        let pipe = circuit.pipe(move |value: u32| {
            thread::sleep(Duration::from_millis(5));
            seen.push(value);
        });
        let pipe = pipe.expect("open");
        (1..=3).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3]);
    }
}

#[test]
fn cir_09_settling_works_before_and_after_the_close() {
    for circuit in circuits() {
        circuit.settle().expect("outside");
        circuit.close();
        circuit.settle().expect("outside");
        thread::scope(|scope| {
            scope.spawn(|| (0..2).for_each(|_| circuit.settle().expect("outside")));
        });
    }
}

// Composition and creation.

#[test]
fn cir_10_what_goes_through_a_named_conduit_arrives_in_order() {
    let circuit = Circuit::builder().name(name("market")).build().expect("a thread");
    let conduit = circuit.named(name("orders")).conduit().expect("open");
    let trace = Trace::of(&circuit, &conduit);
    [10, 20, 30].into_iter().for_each(|value| conduit.get(name("eu")).emit(value));
    circuit.settle().expect("outside");
    assert_eq!(trace.take(), [10, 20, 30].map(|value| (name("eu"), value)));
}

#[test]
fn cir_12_a_circuit_has_the_name_that_it_was_given() {
    let circuit = Circuit::builder().name(name("market.eu")).build().expect("a thread");
    assert_eq!(circuit.subject().name(), name("market.eu"));
    assert_eq!(circuit.subject().kind(), Kind::Circuit);
}

#[test]
fn cir_13_conduits_of_different_types_live_in_one_circuit() {
    for circuit in circuits() {
        let texts = circuit.conduit::<String>().expect("open");
        let numbers = circuit.conduit::<i32>().expect("open");
        let (seen_texts, seen_numbers) = (Trace::of(&circuit, &texts), Trace::of(&circuit, &numbers));
        texts.get(name("a")).emit("one".to_owned());
        numbers.get(name("a")).emit(1);
        circuit.settle().expect("outside");
        assert_eq!(seen_texts.values(), ["one"]);
        assert_eq!(seen_numbers.values(), [1]);
    }
}

#[test]
fn cir_15_a_circuit_without_a_name_has_a_subject_all_the_same() {
    let circuit = Circuit::new();
    assert_eq!(circuit.subject().kind(), Kind::Circuit);
    assert!(!circuit.subject().name().path().is_empty());
    assert_eq!(circuit.subject().id(), circuit.clone().subject().id());
}

// Closing.

#[test]
fn cir_16_ten_threads_may_close_at_once() {
    for circuit in circuits() {
        let barrier = Barrier::new(10);
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    barrier.wait();
                    circuit.close();
                });
            }
        });
        circuit.settle().expect("outside");
        let fault = circuit.conduit::<u32>().expect_err("closed");
        assert_eq!(fault.subject(), circuit.subject());
        circuit.close();
    }
}

#[test]
fn cir_18_closing_three_times_is_closing_once() {
    for circuit in circuits() {
        let trace = Trace::new();
        trace.pipe(&circuit).emit(1);
        (0..3).for_each(|_| circuit.close());
        circuit.settle().expect("outside");
        assert!(circuit.is_closed());
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn cir_19_closing_ends_what_the_circuit_owns() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let pipe = circuit.pipe(move |_: u32| _ = &held).expect("open");
        circuit.close();
        circuit.settle().expect("outside");
        assert!(conduit.is_closed());
        assert_eq!(Arc::strong_count(&alive), 1, "the receptor is dropped, though its pipe is still there");
        pipe.emit(1);
    }
}

#[test]
fn cir_20_closing_does_not_wait_for_the_receptor_that_runs() {
    for circuit in driven() {
        let (gate, started, left) = (Gate::default(), Gate::default(), Arc::new(AtomicBool::new(false)));
        let (door, starting, leaving) = (gate.clone(), started.clone(), Arc::clone(&left));
        let pipe = circuit.pipe(move |(): ()| {
            starting.open();
            door.pass();
            leaving.store(true, Ordering::SeqCst);
        });
        pipe.expect("open").emit(());
        started.pass();
        thread::scope(|scope| {
            scope.spawn(|| circuit.close());
        });
        assert!(!left.load(Ordering::SeqCst), "the receptor still waits at the gate");
        gate.open();
        circuit.settle().expect("outside");
        assert!(left.load(Ordering::SeqCst));
    }
}

#[test]
fn cir_21_closing_again_changes_nothing() {
    for circuit in circuits() {
        circuit.close();
        circuit.settle().expect("outside");
        circuit.close();
        circuit.close_and_settle().expect("outside");
        assert!(circuit.is_closed());
    }
}

// Conduits.

#[test]
fn cir_22_two_conduits_are_two() {
    let circuit = Circuit::new();
    let (first, second) = (circuit.conduit::<u32>().expect("open"), circuit.conduit::<u32>().expect("open"));
    assert_ne!(first, second);
    assert_ne!(first.subject(), second.subject());
}

#[test]
fn cir_23_a_conduit_has_the_name_that_it_was_given() {
    let circuit = Circuit::new();
    let conduit = circuit.named(name("orders.eu")).conduit::<u32>().expect("open");
    assert_eq!(conduit.subject().name(), name("orders.eu"));
    assert_eq!(conduit.subject().kind(), Kind::Conduit);
}

#[test]
fn cir_25_a_conduit_without_a_name_has_a_subject_all_the_same() {
    let circuit = Circuit::new();
    let conduit = circuit.conduit::<u32>().expect("open");
    assert_eq!(conduit.subject().kind(), Kind::Conduit);
    assert_eq!(conduit.subject().enclosure(), Some(circuit.subject()));
}

// Current.

#[test]
fn cir_26_a_circuit_has_a_current_from_the_start() {
    let circuit = Circuit::new();
    assert_eq!(circuit.current().subject().kind(), Kind::Current);
    assert!(circuit.current().subject().within(circuit.subject()));
}

#[test]
fn cir_27_two_circuits_have_different_currents() {
    assert_ne!(Circuit::new().current(), Circuit::new().current());
}

#[test]
fn cir_28_outside_of_the_circuit_the_current_is_another() {
    assert_ne!(Current::here(), *Circuit::new().current());
}

#[test]
fn cir_29_inside_of_the_circuit_the_current_is_the_circuits() {
    for circuit in circuits() {
        let trace = Trace::new();
        let seen = trace.clone();
        circuit.pipe(move |(): ()| seen.push(Current::here())).expect("open").emit(());
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [circuit.current().clone()]);
    }
}

#[test]
fn cir_30_the_current_is_always_the_same() {
    let circuit = Circuit::new();
    let current = circuit.current();
    assert!(
        [circuit.current(), circuit.current(), circuit.clone().current()]
            .iter()
            .all(|other| *other == current)
    );
}

// Dispatch.

#[test]
fn cir_31_no_two_emissions_are_handled_at_once() {
    for circuit in circuits() {
        let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (entering, maximum) = (Arc::clone(&inside), Arc::clone(&most));
        let pipe = circuit.pipe(move |(): ()| {
            let now = entering.fetch_add(1, Ordering::SeqCst) + 1;
            maximum.fetch_max(now, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
            entering.fetch_sub(1, Ordering::SeqCst);
        });
        let pipe = pipe.expect("open");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..50).for_each(|_| pipe.emit(()));
                    circuit.settle().expect("outside");
                });
            }
        });
        assert_eq!((inside.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (0, 1));
    }
}

#[test]
fn cir_32_each_of_8000_values_arrives_once() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        thread::scope(|scope| {
            for thread in 0..8 {
                let pipe = &pipe;
                scope.spawn(move || (0..1000).for_each(|value| pipe.emit(thread * 1000 + value)));
            }
        });
        circuit.settle().expect("outside");
        let mut seen = trace.take();
        seen.sort_unstable();
        assert_eq!(seen, (0..8000).collect::<Vec<u32>>());
    }
}

#[test]
fn cir_33_a_lasting_subscriber_misses_nothing_while_other_subscribers_come_and_go() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<usize>().expect("open");
        let trace = Trace::of(&circuit, &conduit);
        let passing = Trace::new();
        let subscriber = passing.subscriber(&circuit);
        let (done, emitted) = (AtomicBool::new(false), AtomicUsize::new(0));
        // What each passing subscription received.
        let mut heard = Vec::new();
        thread::scope(|scope| {
            let emitting = scope.spawn(|| {
                let pipe = conduit.get(name("a"));
                while !done.load(Ordering::Relaxed) {
                    let count = emitted.load(Ordering::Relaxed);
                    pipe.emit(count);
                    emitted.store(count + 1, Ordering::Release);
                    if count.is_multiple_of(64) {
                        // Limits the backlog to what the circuit can handle meanwhile.
                        circuit.settle().expect("outside");
                    }
                }
            });
            for _ in 0..100 {
                let subscription = conduit.subscribe(&subscriber).expect("open");
                // One emission may be under way and not counted yet: the next one comes after the
                // subscription.
                let before = emitted.load(Ordering::Acquire);
                while emitted.load(Ordering::Acquire) < before + 2 {
                    thread::yield_now();
                }
                subscription.close_and_settle().expect("outside");
                heard.push(passing.values());
            }
            done.store(true, Ordering::Relaxed);
            emitting.join().expect("no panic");
        });
        circuit.settle().expect("outside");
        assert_eq!(trace.values(), (0..emitted.into_inner()).collect::<Vec<_>>());
        for run in &heard {
            assert!(!run.is_empty(), "a subscription that heard nothing");
            assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1), "a gap in {run:?}");
        }
    }
}

#[test]
fn cir_34_emissions_arrive_in_their_order() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        (1..=5).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn cir_35_ten_threads_with_a_pipe_each_lose_nothing() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let trace = Trace::of(&circuit, &conduit);
        thread::scope(|scope| {
            for thread in 0..10 {
                let pipe = conduit.get(name(&format!("pipe.{thread}"))).clone();
                scope.spawn(move || (0..5000).for_each(|value| pipe.emit(value)));
            }
        });
        circuit.settle().expect("outside");
        assert_eq!(trace.take().len(), 50_000);
    }
}

#[test]
fn cir_36_two_receptors_of_one_subscriber_both_hear_everything() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let traces = [Trace::new(), Trace::new()];
        let receptors = traces.each_ref().map(Trace::receptor);
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u32>| {
            receptors.iter().for_each(|receptor| registrar.receptor(receptor.clone()));
        });
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        (0..100).for_each(|value| conduit.get(name("a")).emit(value));
        circuit.settle().expect("outside");
        assert!(traces.iter().all(|trace| trace.take() == (0..100).collect::<Vec<_>>()));
    }
}

/// 1 causes 2, and 2 causes 3.
fn up_to_three(value: u32) -> Option<u32> {
    (value < 3).then_some(value + 1)
}

#[test]
fn cir_37_what_a_value_causes_comes_before_the_next_input() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = cyclic(&circuit, &trace, up_to_three);
        pipe.emit(1);
        pipe.emit(100);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3, 100]);
        circuit.close();
    }
}

#[test]
fn cir_38_also_if_the_next_input_was_there_before_it_was_caused() {
    for circuit in driven() {
        let (trace, gate, started) = (Trace::new(), Gate::default(), Gate::default());
        let (door, starting) = (gate.clone(), started.clone());
        let pipe = cyclic(&circuit, &trace, move |value| {
            if value == 1 {
                starting.open();
                door.pass();
            }
            up_to_three(value)
        });
        pipe.emit(1);
        started.pass();
        thread::scope(|scope| {
            scope.spawn(|| pipe.emit(100));
        });
        gate.open();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3, 100]);
        circuit.close();
    }
}

#[test]
fn cir_39_ten_threads_share_a_pipe_and_lose_nothing() {
    for circuit in circuits() {
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let pipe = circuit.pipe(move |(): ()| _ = counted.fetch_add(1, Ordering::Relaxed)).expect("open");
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| (0..10_000).for_each(|_| pipe.emit(())));
            }
        });
        circuit.settle().expect("outside");
        assert_eq!(count.load(Ordering::Relaxed), 100_000);
    }
}

// Emitting after the close.

#[test]
fn cir_40_what_comes_after_the_close_is_dropped() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        pipe.emit(1);
        circuit.settle().expect("outside");
        circuit.close();
        pipe.emit(2);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn cir_41_emitting_to_a_busy_circuit_does_not_block() {
    for circuit in driven() {
        let (trace, gate, started) = (Trace::new(), Gate::default(), Gate::default());
        let (seen, door, starting) = (trace.clone(), gate.clone(), started.clone());
        let pipe = circuit.pipe(move |value: u32| {
            starting.open();
            door.pass();
            seen.push(value);
        });
        let pipe = pipe.expect("open");
        pipe.emit(0);
        started.pass();
        thread::scope(|scope| {
            scope.spawn(|| (1..=50_000).for_each(|value| pipe.emit(value)));
        });
        assert_eq!(trace.len(), 0);
        gate.open();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), (0..=50_000).collect::<Vec<_>>());
    }
}

#[test]
fn cir_42_ten_emissions_after_the_close_are_ten_dropped() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        pipe.emit(1);
        circuit.close_and_settle().expect("outside");
        (2..=11).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn cir_43_emitting_after_the_close_is_no_error() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let trace = Trace::of(&circuit, &conduit);
        let pipe = conduit.get(name("a")).clone();
        circuit.close();
        (0..10).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!((trace.take(), circuit.failures()), (vec![], 0));
    }
}

// Looking up from many threads.

/// The results of this many threads that all begin at the same time.
fn at_once<T: Send>(threads: usize, get: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads);
    let (barrier, get) = (&barrier, &get);
    thread::scope(|scope| {
        let begin = |number| {
            scope.spawn(move || {
                barrier.wait();
                get(number)
            })
        };
        let all: Vec<_> = (0..threads).map(begin).collect();
        all.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn all_same<T: PartialEq>(all: &[T]) -> bool {
    all.windows(2).all(|pair| pair[0] == pair[1])
}

#[test]
fn cir_45_a_hundred_names_have_a_hundred_pipes() {
    let circuit = Circuit::new();
    let conduit = circuit.conduit::<u32>().expect("open");
    let of_a_thread = |thread| {
        let names = (0..10).map(|number| name(&format!("pipe.{thread}.{number}")));
        names.map(|name| conduit.get(name).subject().id()).collect::<Vec<_>>()
    };
    let ids: HashSet<_> = at_once(10, of_a_thread).into_iter().flatten().collect();
    assert_eq!(ids.len(), 100);
}

#[test]
fn cir_48_ten_threads_get_the_one_pipe_of_a_name() {
    let circuit = Circuit::new();
    let conduit = circuit.conduit::<u32>().expect("open");
    let pipes: Vec<_> = thread::scope(|scope| {
        let get = || conduit.get(name("orders.eu")).clone();
        let threads: Vec<_> = (0..10).map(|_| scope.spawn(get)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(all_same(&pipes));
}

#[test]
fn cir_49_also_twenty_that_ask_at_once() {
    let circuit = Circuit::new();
    for round in 0..50 {
        let conduit = circuit.conduit::<u32>().expect("open");
        let name = name(&format!("contended.{round}"));
        assert!(all_same(&at_once(20, |_| conduit.get(name).clone())));
    }
}

#[test]
fn cir_50_each_producer_keeps_its_order() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        at_once(8, |producer| (0..200_u32).for_each(|value| pipe.emit((producer, value))));
        circuit.settle().expect("outside");
        let seen = trace.take();
        assert_eq!(seen.len(), 1600);
        for producer in 0..8 {
            let own = seen.iter().filter(|(of, _)| *of == producer).map(|(_, value)| *value);
            assert!(own.eq(0..200), "of producer {producer}");
        }
    }
}

#[test]
fn cir_51_twenty_threads_make_one_name() {
    for round in 0..50 {
        let path = format!("cir51.contended.name-{round}");
        assert!(all_same(&at_once(20, |_| Name::new(&path).expect("valid"))));
    }
}

#[test]
fn cir_52_twenty_threads_build_one_name_step_by_step() {
    for round in 0..50 {
        let base = name(&format!("cir52-{round}"));
        let build = |_| base.extend("child").and_then(|child| child.extend("grandchild")).expect("valid");
        assert!(all_same(&at_once(20, build)));
    }
}

// Time.

#[test]
fn cir_53_one_input_and_all_that_it_causes_have_one_time() {
    for circuit in circuits() {
        let trace = Trace::new();
        let windows = Flow::<u32>::new().window_duration(Duration::from_millis(5), 10).expect("valid");
        let windows = windows.map(|window| window.iter().copied().collect::<Vec<_>>());
        let timed = trace.pipe(&circuit).prepend(&windows).expect("open");
        let later = timed.clone();
        let hop = circuit.pipe(move |value: u32| {
            thread::sleep(Duration::from_millis(25));
            later.emit(value + 1);
        });
        let hop = hop.expect("open");
        let first = circuit.pipe(move |value: u32| {
            timed.emit(value);
            hop.emit(value);
        });
        first.expect("open").emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [vec![1], vec![1, 2]]);
    }
}

// Identity, recursion, visibility.

#[test]
fn cir_58_two_circuits_are_two() {
    let (first, second) = (Circuit::new(), Circuit::new());
    assert_ne!(first.subject(), second.subject());
    assert_ne!(first.subject().id(), second.subject().id());
}

#[test]
fn cir_59_nothing_is_said_about_a_new_circuit() {
    assert!(Circuit::new().subject().state().is_empty());
}

#[test]
fn cir_60_a_receptor_may_emit_to_its_own_pipe() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = cyclic(&circuit, &trace, |value| (value < 10).then_some(value + 1));
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), (1..=10).collect::<Vec<_>>());
        circuit.close();
    }
}

/// The type system proves that the ownership of the value moves. A value stored beside it shows an
/// order only on processors that reorder stores; on others, such as x86, it would be visible
/// without an order: there the models of the queues prove it.
#[test]
fn cir_61_the_receptor_sees_what_the_caller_wrote_before() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (seen, shared) = (trace.clone(), Arc::new(AtomicU64::new(0)));
        let read = Arc::clone(&shared);
        let pipe = circuit.pipe(move |owned: Box<u64>| seen.push((*owned, read.load(Ordering::Relaxed))));
        let pipe = pipe.expect("open");
        let mut owned = Box::new(0);
        *owned += 73;
        // Relaxed: the emission orders the store.
        shared.store(73, Ordering::Relaxed);
        pipe.emit(owned);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [(73, 73)]);
    }
}

/// As above: a relaxed store shows an order only on processors that reorder.
#[test]
fn cir_62_what_a_receptor_wrote_is_seen_by_the_next_and_by_the_settling_thread() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (seen, shared) = (trace.clone(), Arc::new(AtomicU64::new(0)));
        let written = Arc::clone(&shared);
        let mut last = 0;
        let pipe = circuit.pipe(move |value: u64| {
            seen.push(std::mem::replace(&mut last, value));
            written.store(value, Ordering::Relaxed);
        });
        let pipe = pipe.expect("open");
        pipe.emit(1);
        pipe.emit(2);
        circuit.settle().expect("outside");
        assert_eq!(shared.load(Ordering::Relaxed), 2);
        assert_eq!(trace.take(), [0, 1]);
    }
}

#[test]
fn a_circuit_is_named_after_itself_unless_it_is_said() {
    for run_by in [RunBy::SharedPool, RunBy::Waiters] {
        let circuit = Circuit::builder().run_by(run_by).build().expect("a thread");
        assert_eq!(circuit.subject().to_string(), "cortex:cortex/circuit:circuit");
    }
}

// Banks and derived pools.

#[test]
fn cir_11_a_pool_of_a_conduit_has_operators() {
    for circuit in circuits() {
        let conduit = circuit.conduit::<u32>().expect("open");
        let captured = Captured::of(&circuit, &conduit);
        let pool = conduit.pool(&Fiber::new().limit(2));
        (1..=3).for_each(|value| pool.get(name("a")).expect("open").emit(value));
        assert_eq!(captured.drain().len(), 2);
    }
}

#[test]
fn cir_17_the_conduits_of_a_closed_bank_are_closed() {
    for circuit in circuits() {
        let bank = circuit.bank::<u32>().expect("open");
        let conduits = ["a", "b"].map(|path| bank.get(name(path)).expect("open").clone());
        bank.close();
        circuit.settle().expect("outside");
        let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| ()).expect("open");
        for conduit in conduits {
            assert!(conduit.subscribe(&subscriber).is_err());
        }
        assert!(bank.get(name("a")).is_err());
    }
}

#[test]
fn cir_44_one_name_has_a_pipe_in_each_conduit_of_a_bank() {
    for circuit in circuits() {
        let bank = circuit.bank::<u32>().expect("open");
        let conduits = ["a", "b"].map(|path| bank.get(name(path)).expect("open"));
        assert_ne!(conduits[0], conduits[1]);
        assert_ne!(conduits[0].get(name("pipe")), conduits[1].get(name("pipe")));
    }
}

#[test]
fn cir_46_one_name_of_a_bank_has_one_conduit_for_all_threads() {
    for circuit in circuits() {
        let (bank, start) = (circuit.bank::<u32>().expect("open"), Barrier::new(20));
        let conduits: Vec<_> = thread::scope(|scope| {
            let get = || {
                start.wait();
                bank.get(name("shared")).expect("open")
            };
            let threads: Vec<_> = (0..20).map(|_| scope.spawn(get)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(conduits.iter().all(|conduit| *conduit == conduits[0]));
    }
}

#[test]
fn cir_47_one_name_of_a_bank_has_one_conduit() {
    for circuit in circuits() {
        let bank = circuit.bank::<u32>().expect("open");
        let conduit = bank.get(name("orders")).expect("open");
        assert_eq!(bank.get(name("orders")).expect("open"), conduit);
        assert_eq!(conduit.subject().name(), name("orders"));
    }
}
