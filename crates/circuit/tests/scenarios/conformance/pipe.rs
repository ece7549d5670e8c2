//! Pipe: an input of a circuit.

#![allow(clippy::trivially_copy_pass_by_ref, reason = "operators show values by reference")]

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use tidemark_circuit::{Circuit, Current, Extent, Fiber, Kind, Pipe, Registrar, RunBy, Subject};

use super::support::{Gate, Trace, circuits, driven, name, run_by};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("PIP-24", "Java: absent value"),
    ("PIP-25", "Java: absent value"),
    ("PIP-27", "Java: absent arguments"),
];

fn named(path: &str) -> Circuit {
    Circuit::builder().name(name(path)).build().expect("a thread")
}

/// A pipe that notes the values with the context and the thread that handle them, and emits them to
/// the next pipe.
fn noting(circuit: &Circuit, trace: &Trace<(u32, Current, ThreadId)>, next: Option<Pipe<u32>>) -> Pipe<u32> {
    let seen = trace.clone();
    let pipe = circuit.pipe(move |value: u32| {
        seen.push((value, Current::here(), thread::current().id()));
        if let Some(next) = &next {
            next.emit(value);
        }
    });
    pipe.expect("open")
}

// Cycles.

#[test]
fn pip_01_a_cycle_of_three_pipes_goes_round() {
    for circuit in circuits() {
        let trace = Trace::new();
        let first = Arc::new(OnceLock::<Pipe<u32>>::new());
        let (seen, knot) = (trace.clone(), Arc::clone(&first));
        let c = circuit.pipe(move |round| {
            seen.push("C");
            if round < 5 {
                knot.get().expect("tied").emit(round + 1);
            }
        });
        let (seen, c) = (trace.clone(), c.expect("open"));
        let b = circuit.pipe(move |round| {
            seen.push("B");
            c.emit(round);
        });
        let (seen, b) = (trace.clone(), b.expect("open"));
        let a = circuit.pipe(move |round| {
            seen.push("A");
            b.emit(round);
        });
        let a = a.expect("open");
        first.set(a.clone()).expect("once");
        a.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), ["A", "B", "C"].repeat(5));
        circuit.close();
    }
}

#[test]
fn pip_02_a_pipe_may_lead_to_itself() {
    for circuit in circuits() {
        let trace = Trace::new();
        let own = Arc::new(OnceLock::<Pipe<u32>>::new());
        let (seen, knot) = (trace.clone(), Arc::clone(&own));
        let pipe = circuit.pipe(move |value| {
            seen.push(value);
            if value < 10 {
                knot.get().expect("tied").emit(value + 1);
            }
        });
        let pipe = pipe.expect("open");
        own.set(pipe.clone()).expect("once");
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), (1..=10).collect::<Vec<_>>());
        circuit.close();
    }
}

// Where receptors run.

#[test]
fn pip_03_a_pipe_can_be_registered_for_another() {
    for circuit in circuits() {
        let trace = Trace::new();
        let target = trace.pipe(&circuit);
        let conduit = circuit.conduit::<u32>().expect("open");
        let subscriber = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u32>| registrar.pipe(&target));
        conduit.subscribe(&subscriber.expect("open")).expect("open");
        [10, 20, 30].into_iter().for_each(|value| conduit.get(name("a")).emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [10, 20, 30]);
    }
}

#[test]
fn pip_04_a_receptor_does_not_run_on_the_callers_thread() {
    for circuit in driven() {
        let trace = Trace::new();
        noting(&circuit, &trace, None).emit(1);
        circuit.settle().expect("outside");
        let threads: Vec<_> = trace.take().into_iter().map(|(_, _, thread)| thread).collect();
        assert_eq!(threads.len(), 1, "the receptor has run");
        assert_ne!(threads[0], thread::current().id());
    }
}

#[test]
fn pip_05_each_receptor_runs_in_its_own_circuit() {
    for (first, second) in driven().zip(driven()) {
        let (here, there) = (Trace::new(), Trace::new());
        let target = noting(&second, &there, None);
        noting(&first, &here, Some(target)).emit(1);
        first.settle().expect("outside");
        second.settle().expect("outside");
        let (here, there) = (here.take(), there.take());
        assert_eq!((here.len(), there.len()), (1, 1));
        assert_eq!((&here[0].1, &there[0].1), (first.current(), second.current()));
        assert!([here[0].2, there[0].2].iter().all(|thread| *thread != thread::current().id()));
    }
}

#[test]
fn pip_06_a_circuit_with_a_thread_stays_on_it() {
    let (first, second) = (run_by(RunBy::Thread), run_by(RunBy::Thread));
    let (here, there) = (Trace::new(), Trace::new());
    let source = noting(&first, &here, Some(noting(&second, &there, None)));
    (0..10).for_each(|value| source.emit(value));
    first.settle().expect("outside");
    second.settle().expect("outside");
    let threads = [here, there].map(|trace| {
        let seen = trace.take();
        assert!(seen.iter().map(|(value, ..)| *value).eq(0..10));
        seen.into_iter().map(|(.., thread)| thread).collect::<HashSet<_>>()
    });
    assert!(threads.iter().all(|own| own.len() == 1 && !own.contains(&thread::current().id())));
    assert_ne!(threads[0], threads[1]);
}

#[test]
fn pip_07_a_thousand_pipes_in_a_row_deliver_once() {
    for circuit in circuits() {
        let trace = Trace::new();
        let mut emitting = trace.pipe(&circuit);
        let mut calling = emitting.clone();
        for _ in 0..1000 {
            emitting = circuit.pipe(emitting).expect("open");
            calling = calling.prepend(&Fiber::new()).expect("open");
        }
        emitting.emit(1);
        calling.emit(2);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2]);
    }
}

#[test]
fn pip_08_a_hundred_pipes_add_up() {
    for circuit in circuits() {
        let sum = Arc::new(AtomicU64::new(0));
        for value in 0..100 {
            let sum = Arc::clone(&sum);
            let pipe = circuit.pipe(move |value: u64| _ = sum.fetch_add(value, Ordering::Relaxed));
            pipe.expect("open").emit(value);
        }
        circuit.settle().expect("outside");
        assert_eq!(sum.load(Ordering::Relaxed), 4950);
    }
}

// Operators.

/// The outputs of a pipe in each driver's circuit with these operators ahead of it.
macro_rules! operators {
    ($(fn $name:ident: $fiber:expr, $inputs:expr => $outputs:expr;)*) => {$(
        #[test]
        fn $name() {
            for circuit in circuits() {
                let trace = Trace::<i32>::new();
                let head = trace.pipe(&circuit).prepend(&$fiber).expect("open");
                $inputs.into_iter().for_each(|value| head.emit(value));
                circuit.settle().expect("outside");
                assert_eq!(trace.take(), $outputs);
            }
        }
    )*};
}

operators! {
    fn pip_09_diff: Fiber::new().diff(), [1, 1, 2, 2, 3, 3] => [1, 2, 3];
    fn pip_11_every: Fiber::new().every(3).expect("valid"), 0..=9 => [2, 5, 8];
    fn pip_12_guard: Fiber::new().guard(|value| value % 2 == 0), 1..=6 => [2, 4, 6];
    fn pip_13_limit: Fiber::new().limit(3), 1..=5 => [1, 2, 3];
    fn pip_14_a_hundred_values_in_order: Fiber::new(), 0..100 => (0..100).collect::<Vec<_>>();
    fn pip_15_guard_diff_and_limit:
        Fiber::new().guard(|value| *value > 0).diff().limit(3), [-1, 1, 1, 2, 3, 4, 5] => [1, 2, 3];
    fn pip_18_reduce: Fiber::new().reduce(0, |sum, value| sum + value), 1..=4 => [1, 3, 6, 10];
    fn pip_19_above_and_below: Fiber::new().above(5).below(15), 0..=19 => (6..=14).collect::<Vec<_>>();
    fn pip_21_two_replacements:
        Fiber::new().replace(|value| value + 1).replace(|value| value * 2), [5, 10] => [12, 22];
}

#[test]
fn pip_16_one_receptor_may_write_to_three_lists() {
    for circuit in circuits() {
        let traces = [Trace::new(), Trace::new(), Trace::new()];
        let lists = traces.clone();
        let pipe = circuit.pipe(move |value: u32| lists.iter().for_each(|list| list.push(value)));
        let pipe = pipe.expect("open");
        (1..=3).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert!(traces.iter().all(|trace| trace.take() == [1, 2, 3]));
    }
}

#[test]
fn pip_17_two_circuits_deliver_independently() {
    for (first, second) in circuits().zip(circuits()) {
        let traces = [Trace::new(), Trace::new()];
        let pipes = [traces[0].pipe(&first), traces[1].pipe(&second)];
        for value in 0..10 {
            pipes[0].emit(value);
            pipes[1].emit(value + 100);
        }
        // Settles only one of them.
        first.settle().expect("outside");
        assert_eq!(traces[0].take(), (0..10).collect::<Vec<_>>());
        first.close();
        second.settle().expect("outside");
        assert_eq!(traces[1].take(), (100..110).collect::<Vec<_>>());
    }
}

#[test]
fn pip_20_three_circuits_in_a_row_have_three_threads() {
    let all = [(); 3].map(|()| run_by(RunBy::Thread));
    let traces = [(); 3].map(|()| Trace::new());
    let last = noting(&all[2], &traces[2], None);
    let middle = noting(&all[1], &traces[1], Some(last));
    noting(&all[0], &traces[0], Some(middle)).emit(1);
    all.iter().for_each(|circuit| circuit.settle().expect("outside"));
    let threads: HashSet<_> = traces.iter().flat_map(Trace::take).map(|(.., thread)| thread).collect();
    assert_eq!(threads.len(), 3);
    assert!(!threads.contains(&thread::current().id()));
}

#[test]
fn pip_22_emitting_does_not_wait_for_the_receptor() {
    for circuit in driven() {
        let (trace, gate) = (Trace::new(), Gate::default());
        let (seen, door) = (trace.clone(), gate.clone());
        let pipe = circuit.pipe(move |value: u32| {
            door.pass();
            seen.push(value);
        });
        pipe.expect("open").emit(1);
        assert_eq!(trace.len(), 0);
        gate.open();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn pip_26_a_pipe_can_be_a_receptor() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = circuit.pipe(trace.pipe(&circuit)).expect("open");
        ["first", "second", "third"].into_iter().for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), ["first", "second", "third"]);
    }
}

#[test]
fn pip_28_a_receptor_without_state_sees_each_value() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        (1..=3).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 2, 3]);
    }
}

#[test]
fn pip_29_a_receptor_keeps_its_state() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (seen, mut sum) = (trace.clone(), 0);
        let pipe = circuit.pipe(move |value: u32| {
            sum += value;
            seen.push(sum);
        });
        let pipe = pipe.expect("open");
        (1..=3).for_each(|value| pipe.emit(value));
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1, 3, 6]);
    }
}

// Subjects.

#[test]
fn pip_30_a_pipe_has_an_identity_and_delivers() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        pipe.emit(1);
        circuit.settle().expect("outside");
        assert_eq!(pipe.subject().kind(), Kind::Pipe);
        assert_eq!(pipe.subject().id(), pipe.clone().subject().id());
        assert_eq!(trace.take(), [1]);
    }
}

#[test]
fn pip_32_a_conduit_without_a_name_has_its_circuits() {
    let circuit = named("pip.thirty-two");
    let conduit = circuit.conduit::<u32>().expect("open");
    let enclosure = conduit.get(name("a")).subject().enclosure().expect("a conduit");
    assert_eq!((enclosure, enclosure.name()), (conduit.subject(), circuit.subject().name()));
}

#[test]
fn pip_33_a_pipe_of_a_circuit_lies_in_it() {
    let circuit = Circuit::new();
    let pipe = Trace::<u32>::new().pipe(&circuit);
    assert_eq!(pipe.subject().enclosure(), Some(circuit.subject()));
}

#[test]
fn pip_34_a_pipe_of_a_conduit_lies_in_that() {
    let circuit = named("root.circuit");
    let conduit = circuit.named(name("events.conduit")).conduit::<u32>().expect("open");
    let line: Vec<String> =
        conduit.get(name("orders.pipe")).subject().iter().map(|subject| subject.name().to_string()).collect();
    assert_eq!(line, ["orders.pipe", "events.conduit", "root.circuit", "cortex"]);
}

#[test]
fn pip_36_a_pipe_with_operators_lies_in_its_target() {
    let circuit = Circuit::new();
    let target = Trace::<u32>::new().pipe(&circuit);
    let head = target.prepend(&Fiber::new().diff()).expect("open");
    assert_eq!(head.subject().kind(), Kind::Pipe);
    assert_eq!(head.subject().enclosure(), Some(target.subject()));
}

#[test]
fn pip_37_two_pipes_are_two() {
    let circuit = Circuit::new();
    let (first, second) = (Trace::<u32>::new().pipe(&circuit), Trace::<u32>::new().pipe(&circuit));
    assert_ne!(first, second);
    assert_ne!(first.subject(), second.subject());
    assert_ne!(first.subject().id(), second.subject().id());
}

#[test]
fn pip_38_a_conduits_pipe_has_the_name_that_it_is_looked_up_by() {
    let conduit = Circuit::new().conduit::<u32>().expect("open");
    assert_eq!(conduit.get(name("orders.eu")).subject().name(), name("orders.eu"));
}

#[test]
fn pip_39_a_named_pipe_keeps_its_name() {
    let circuit = Circuit::new();
    let pipe = circuit.named(name("orders.eu")).pipe(|_: u32| ()).expect("open");
    assert_eq!(pipe.subject().name(), name("orders.eu"));
}

#[test]
fn pip_40_a_pipe_without_a_name_has_its_circuits() {
    let circuit = named("pip.forty");
    assert_eq!(Trace::<u32>::new().pipe(&circuit).subject().name(), name("pip.forty"));
}

// Pipes that lead nowhere, or to other pipes.

#[test]
fn pip_10_what_is_discarded_disturbs_nothing() {
    for circuit in circuits() {
        let (discard, trace) = (circuit.discard().expect("open"), Trace::new());
        let observed = trace.pipe(&circuit);
        (0..10).for_each(|value| discard.emit(value));
        observed.emit(10);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [10]);
    }
}

#[test]
fn pip_23_anything_can_be_discarded() {
    for circuit in circuits() {
        let dropped = Arc::new(());
        let discard = circuit.discard().expect("open");
        (0..100).for_each(|_| discard.emit(Arc::clone(&dropped)));
        circuit.settle().expect("outside");
        assert_eq!((Arc::strong_count(&dropped), circuit.failures()), (1, 0));
    }
}

#[test]
fn pip_31_a_pipe_that_discards_is_a_pipe() {
    for circuit in circuits() {
        let discard = circuit.discard::<u32>().expect("open");
        assert_eq!((discard.subject().kind(), &discard), (Kind::Pipe, &discard.clone()));
    }
}

#[test]
fn pip_35_the_way_to_an_own_pipe_is_that_pipe() {
    for circuit in circuits() {
        let pipe = Trace::<u32>::new().pipe(&circuit);
        assert_eq!(circuit.forward(&pipe).expect("open"), pipe);
    }
}

#[test]
fn pip_41_a_pipe_that_discards_is_called_as_its_circuit() {
    let circuit = named("pip.forty.one");
    let discard = circuit.discard::<u32>().expect("open");
    assert_eq!(discard.subject().name(), name("pip.forty.one"));
    assert_eq!(discard.subject().enclosure(), Some(circuit.subject()));
}
