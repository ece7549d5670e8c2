//! Scenarios for which the specification's own suite has no test.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;
use std::{fs, thread};

use tidemark_circuit::{
    Circuit, Failure, Fault, Fiber, Pipe, Registrar, RunBy, Simulation, Subject, ThreadPool,
};

use crate::again::is_alone;

use super::support::{Gate, Limit, Trace, circuits, driven, fail, name, run_by, wait_until};

/// A cell for a pipe, through which the pipe's own receptor can use it.
fn knot<E>() -> Arc<OnceLock<Pipe<E>>> {
    Arc::new(OnceLock::new())
}

#[test]
fn xtr_01_a_cascade_is_handled_breadth_first_before_the_next_input() {
    for circuit in circuits() {
        let trace = Trace::new();
        let (again, gate) = (knot::<&'static str>(), Gate::default());
        let (seen, knot, door) = (trace.clone(), Arc::clone(&again), gate.clone());
        let pipe = circuit
            .pipe(move |value: &'static str| {
                door.pass();
                seen.push(value);
                let pipe = knot.get().expect("tied");
                match value {
                    "A" => ["A1", "A2"].into_iter().for_each(|value| pipe.emit(value)),
                    "A1" => pipe.emit("A1a"),
                    _ => (),
                }
            })
            .expect("open");
        again.set(pipe.clone()).expect("once");
        pipe.emit("A");
        pipe.emit("B");
        gate.open();
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), ["A", "A1", "A2", "A1a", "B"]);
        circuit.close();
    }
}

#[test]
fn xtr_02_settling_covers_what_is_being_handled() {
    for circuit in circuits() {
        let trace = Trace::new();
        let seen = trace.clone();
        let pipe = circuit
            .pipe(move |value: u32| {
                thread::sleep(Duration::from_millis(20));
                seen.push(value);
            })
            .expect("open");
        for round in 0..5 {
            pipe.emit(round);
            circuit.settle().expect("outside");
            assert_eq!(trace.take(), [round]);
        }
    }
}

#[test]
fn xtr_03_settling_waits_for_what_is_there_and_not_for_what_comes_later() {
    for circuit in circuits() {
        // A thread that begins to wait too late waits for both values, and rightly: then it gets
        // more time to begin.
        let moments = [50, 500, 5000].map(Duration::from_millis);
        assert!(moments.into_iter().any(|moment| ends_before_what_comes_later(&circuit, moment)));
    }
    // An idle circuit needs no other thread to settle; here no other thread could come.
    let (pool, gate) = (ThreadPool::new(1).expect("a thread"), Gate::default());
    let idle = [RunBy::Pool(pool.clone()), RunBy::Owner].map(run_by);
    let pipe = idle[0].pipe(|(): ()| ()).expect("open");
    pipe.emit(());
    idle[0].settle().expect("outside");
    let (door, keeper) = (gate.clone(), run_by(RunBy::Pool(pool)));
    let pipe = keeper.pipe(move |(): ()| door.pass()).expect("open");
    pipe.emit(());
    let _limit = Limit::new();
    idle.iter().for_each(|circuit| circuit.settle().expect("outside"));
    gate.open();
    keeper.settle().expect("outside");
}

/// Whether a thread that waits for the first of two values returns while the second is held. The
/// first is held until this moment is over.
fn ends_before_what_comes_later(circuit: &Circuit, moment: Duration) -> bool {
    let (trace, gates) = (Trace::new(), [Gate::default(), Gate::default()]);
    let (seen, doors) = (trace.clone(), gates.clone());
    let pipe = circuit.pipe(move |value: usize| {
        doors[value].pass();
        seen.push(value);
    });
    let pipe = pipe.expect("open");
    pipe.emit(0);
    let (sender, settled) = mpsc::channel();
    let (begins, begun) = mpsc::channel();
    let (waiting, seen) = (circuit.clone(), trace.clone());
    let waiter = thread::spawn(move || {
        begins.send(()).expect("a receiver");
        waiting.settle().expect("outside");
        sender.send(seen.take()).expect("a receiver");
    });
    begun.recv().expect("a waiter");
    thread::sleep(moment);
    pipe.emit(1);
    gates[0].open();
    let in_time = settled.recv_timeout(Duration::from_secs(30));
    gates[1].open();
    waiter.join().expect("no panic");
    circuit.settle().expect("outside");
    match in_time {
        Ok(seen) => seen == [0] && trace.take() == [1],
        Err(_) => false,
    }
}

#[test]
fn xtr_04_a_pipe_of_another_circuit_is_never_run_by_the_emitting_one() {
    for (first, second) in driven().zip(circuits()) {
        let trace = Trace::new();
        let (seen, expected) = (trace.clone(), second.current().clone());
        let target = second
            .pipe(move |value: u32| seen.push((value, tidemark_circuit::Current::here() == expected)))
            .expect("open");
        let source = first.pipe(move |value: u32| target.emit(value)).expect("open");
        (0..100).for_each(|value| source.emit(value));
        first.settle().expect("outside");
        second.settle().expect("outside");
        assert_eq!(trace.take(), (0..100).map(|value| (value, true)).collect::<Vec<_>>());
    }
    // Both run at the same time, so one thread is not enough, and the shared pool has only one on
    // one core.
    let _limit = Limit::new();
    for way in [RunBy::Pool(ThreadPool::new(2).expect("threads")), RunBy::Thread] {
        waits_for_a_cascade(&run_by(way.clone()), &run_by(way));
    }
}

/// A value from another circuit that arrives within an input is handled after all that the input
/// causes.
fn waits_for_a_cascade(first: &Circuit, second: &Circuit) {
    let (trace, gate, again) = (Trace::new(), Gate::default(), knot::<u32>());
    let (seen, door, knot) = (trace.clone(), gate.clone(), Arc::clone(&again));
    let target = second.pipe(move |value: u32| {
        seen.push(value);
        if value == 10 {
            door.pass();
        }
        if (10..15).contains(&value) {
            knot.get().expect("tied").emit(value + 1);
        }
    });
    let target = target.expect("open");
    again.set(target.clone()).expect("once");
    let next = target.clone();
    let source = first.pipe(move |value: u32| next.emit(value)).expect("open");
    thread::scope(|scope| {
        target.emit(10);
        // The thread that runs the second circuit is at the gate now.
        scope.spawn(|| second.settle().expect("outside"));
        trace.wait_for(1);
        source.emit(1);
        first.settle().expect("outside");
        gate.open();
    });
    second.settle().expect("outside");
    assert_eq!(trace.take(), [10, 11, 12, 13, 14, 15, 1]);
}

#[test]
fn xtr_05_two_circuits_play_a_million_hops() {
    let both = || [RunBy::SharedPool, RunBy::Thread];
    for (first, second) in both().into_iter().flat_map(|first| both().map(|second| (first.clone(), second))) {
        let _limit = Limit::new();
        let (first, second) = (run_by(first), run_by(second));
        let hops = Arc::new(AtomicU64::new(0));
        let there = knot::<u64>();
        let (count, other) = (Arc::clone(&hops), Arc::clone(&there));
        let ping = first
            .pipe(move |left: u64| {
                count.fetch_add(1, Ordering::Relaxed);
                if left > 0 {
                    other.get().expect("tied").emit(left - 1);
                }
            })
            .expect("open");
        let (count, other) = (Arc::clone(&hops), ping.clone());
        let pong = second
            .pipe(move |left: u64| {
                count.fetch_add(1, Ordering::Relaxed);
                if left > 0 {
                    other.emit(left - 1);
                }
            })
            .expect("open");
        there.set(pong).expect("once");
        ping.emit(1_000_000);
        let mut most = 0_u64;
        while hops.load(Ordering::Relaxed) < 1_000_001 {
            first.settle().expect("outside");
            second.settle().expect("outside");
            // Counts what was admitted before and is not handled after: a machine that pauses this
            // thread in between adds nothing.
            let before = [&first, &second].map(|circuit| circuit.stats().admitted);
            let after = [&first, &second].map(|circuit| circuit.stats().handled);
            most = most.max(
                before.iter().zip(after).map(|(admitted, handled)| admitted.saturating_sub(handled)).sum(),
            );
        }
        // One value is under way, and the count of what is handled is up to some dozen entries
        // late.
        assert!(most <= 2 * 100, "{most} entries waited at once");
        assert_eq!(hops.load(Ordering::Relaxed), 1_000_001);
        first.close();
        second.close();
    }
}

#[test]
fn xtr_06_a_million_deep_cascade_needs_no_stack() {
    for circuit in circuits() {
        let last = Arc::new(AtomicU64::new(u64::MAX));
        let again = knot::<u64>();
        let (seen, knot) = (Arc::clone(&last), Arc::clone(&again));
        let pipe = circuit
            .pipe(move |left: u64| {
                seen.store(left, Ordering::Relaxed);
                if left > 0 {
                    knot.get().expect("tied").emit(left - 1);
                }
            })
            .expect("open");
        again.set(pipe.clone()).expect("once");
        pipe.emit(1_000_000);
        circuit.settle().expect("outside");
        assert_eq!(last.load(Ordering::Relaxed), 0);
        circuit.close();
    }
}

/// Reports the end of the thread that made it.
struct Farewell(mpsc::Sender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

thread_local! {
    static FAREWELL: RefCell<Option<Farewell>> = const { RefCell::new(None) };
}

#[test]
fn xtr_07_a_circuit_without_handles_handles_what_it_has_and_ends_its_thread() {
    let pool = ThreadPool::new(1).expect("a thread");
    for way in [RunBy::Pool(pool), RunBy::Thread, RunBy::Waiters] {
        let _limit = Limit::new();
        let is_run_by_waiters = matches!(way, RunBy::Waiters);
        let circuit = run_by(way);
        let alive = Arc::new(());
        let trace = Trace::new();
        let (held, seen) = (Arc::clone(&alive), trace.clone());
        let (sender, ended) = mpsc::channel();
        let here = thread::current().id();
        let pipe = circuit
            .pipe(move |value: u32| {
                let _ = &held;
                if thread::current().id() != here {
                    FAREWELL.with_borrow_mut(|last| _ = last.get_or_insert_with(|| Farewell(sender.clone())));
                }
                seen.push(value);
            })
            .expect("open");
        (0..1000).for_each(|value| pipe.emit(value));
        drop(pipe);
        drop(circuit);
        wait_until(|| Arc::strong_count(&alive) == 1, "the receptor is gone");
        assert_eq!(trace.take(), (0..1000).collect::<Vec<_>>());
        if !is_run_by_waiters {
            assert_eq!(ended.recv_timeout(Duration::from_mins(1)), Ok(()), "its thread ends");
        }
    }
}

#[test]
fn xtr_11_each_thread_sees_its_own_value_after_settling() {
    for circuit in circuits() {
        thread::scope(|scope| {
            for _ in 0..4 {
                let last = Arc::new(AtomicU64::new(0));
                let seen = Arc::clone(&last);
                let pipe = circuit.pipe(move |value| seen.store(value, Ordering::Relaxed)).expect("open");
                let circuit = circuit.clone();
                scope.spawn(move || {
                    for value in 1..=20_000 {
                        pipe.emit(value);
                        circuit.settle().expect("outside");
                        assert_eq!(last.load(Ordering::Relaxed), value);
                    }
                });
            }
        });
    }
}

#[test]
fn xtr_13_more_circuits_than_cores_all_get_on() {
    let all: Vec<_> =
        (0..64).map(|n| run_by(if n % 2 == 0 { RunBy::Thread } else { RunBy::SharedPool })).collect();
    let traces: Vec<_> = all.iter().map(|circuit| (Trace::new(), circuit)).collect();
    let pipes: Vec<_> = traces.iter().map(|(trace, circuit)| trace.pipe(circuit)).collect();
    pipes.iter().enumerate().for_each(|(value, pipe)| pipe.emit(value));
    all.iter().for_each(|circuit| circuit.settle().expect("outside"));
    for (value, (trace, _)) in traces.iter().enumerate() {
        assert_eq!(trace.take(), [value]);
    }
}

/// A test from outside cannot pause a producer within an emission: that test is in
/// `queue/ingress.rs`, beside the slots.
#[test]
fn xtr_14_nothing_is_lost_or_doubled_while_segments_are_used_again_and_again() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        thread::scope(|scope| {
            for producer in 0..4_u64 {
                let (pipe, circuit) = (pipe.clone(), &circuit);
                scope.spawn(move || {
                    for value in 0..20_000_u64 {
                        pipe.emit(producer << 32 | value);
                        if value % 64 == producer {
                            circuit.settle().expect("outside");
                        }
                    }
                });
            }
        });
        circuit.settle().expect("outside");
        let seen = trace.take();
        for producer in 0..4 {
            let own = seen.iter().filter(|value| **value >> 32 == producer).map(|value| value & 0xFFFF_FFFF);
            assert!(own.eq(0..20_000), "of producer {producer}");
        }
    }
}

#[test]
fn xtr_15_what_is_in_a_lane_becomes_visible() {
    for circuit in circuits() {
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        // By settling, also from another thread after a hand-over.
        let mut lane = circuit.lane().expect("open");
        lane.emit(&pipe, 1);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [1]);
        lane.emit(&pipe, 2);
        thread::scope(|scope| scope.spawn(|| circuit.settle().expect("outside")).join().expect("no panic"));
        assert_eq!(trace.take(), [2]);
        // By dropping the lane.
        lane.emit(&pipe, 3);
        drop(lane);
        circuit.settle().expect("outside");
        assert_eq!(trace.take(), [3]);
    }
    for circuit in driven() {
        // With no other call.
        let trace = Trace::new();
        let pipe = trace.pipe(&circuit);
        let mut lane = circuit.lane().expect("open");
        for round in 0..200 {
            lane.emit(&pipe, round);
            wait_until(|| trace.len() > 0, "the value is visible");
            assert_eq!(trace.take(), [round]);
            if round % 50 == 0 {
                // Gives a thread time to sleep, so that the next value has to wake it.
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// How often each other thread of the process has been scheduled so far, where the system reports
/// it.
fn times_scheduled() -> BTreeMap<OsString, String> {
    if !cfg!(target_os = "linux") {
        return BTreeMap::new();
    }
    let own = fs::read_link("/proc/thread-self").expect("Linux lists threads");
    let threads = fs::read_dir("/proc/self/task").expect("Linux lists threads");
    let others = threads.map(|thread| thread.expect("a thread"));
    let others = others.filter(|thread| Some(&*thread.file_name()) != own.file_name());
    // A thread that has just ended has no status.
    let switches = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        Some((thread.file_name(), switches.collect()))
    };
    others.filter_map(switches).collect()
}

/// The specification asks for less than 1 % of a core; that follows if no thread is woken. In a
/// process of its own, so that there are no other threads.
#[test]
fn xtr_12_a_thousand_idle_circuits_use_no_processor() {
    let test = "xtr_12_a_thousand_idle_circuits_use_no_processor";
    if !is_alone(module_path!(), test, "TIDEMARK_CIRCUIT_IDLE", "1") {
        return;
    }
    let all: Vec<_> = (0..1000)
        .map(|number| match number % 10 {
            0 => run_by(RunBy::Thread),
            1 => run_by(RunBy::Waiters),
            _ => run_by(RunBy::SharedPool),
        })
        .collect();
    let trace = Trace::new();
    let pipes: Vec<_> = all.iter().map(|circuit| trace.pipe(circuit)).collect();
    pipes.iter().for_each(|pipe| pipe.emit(1));
    all.iter().for_each(|circuit| circuit.settle().expect("outside"));
    assert_eq!(trace.len(), 1000);
    let pause = Duration::from_millis(100);
    // Threads spin for some microseconds before they sleep, and other threads may delay them.
    let mut before = times_scheduled();
    let sleep = || {
        thread::sleep(pause);
        let after = times_scheduled();
        after == std::mem::replace(&mut before, after.clone())
    };
    wait_until(sleep, "all threads sleep");
    thread::sleep(20 * pause);
    assert_eq!(times_scheduled(), before, "threads were woken");
}

#[test]
fn xtr_10_every_interleaving_keeps_each_callers_order_and_finishes_what_was_begun() {
    let mut different = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let mut simulation = Simulation::new(seed);
        let circuit = simulation.circuit();
        let trace = Trace::new();
        let again = knot::<(usize, u32, u32)>();
        let (seen, knot) = (trace.clone(), Arc::clone(&again));
        // Each value causes two more.
        let pipe = circuit.pipe(move |(caller, value, step)| {
            seen.push((caller, value, step));
            if step < 2 {
                knot.get().expect("tied").emit((caller, value, step + 1));
            }
        });
        let pipe = pipe.expect("open");
        again.set(pipe.clone()).expect("once");
        for caller in 0..4 {
            let pipe = pipe.clone();
            simulation.caller((0..5).map(move |value| {
                let pipe = pipe.clone();
                Box::new(move || pipe.emit((caller, value, 0))) as Box<dyn FnOnce()>
            }));
        }
        simulation.run();
        let seen = trace.take();
        assert_eq!(seen.len(), 60);
        for cascade in seen.chunks(3) {
            let (caller, value, _) = cascade[0];
            assert_eq!(cascade, [0, 1, 2].map(|step| (caller, value, step)), "with seed {seed}");
        }
        for caller in 0..4 {
            let own = seen.iter().filter(|(of, _, step)| *of == caller && *step == 0);
            assert!(own.map(|(_, value, _)| *value).eq(0..5), "of caller {caller} with seed {seed}");
        }
        different.insert(seen);
        circuit.close();
        simulation.run();
    }
    assert!(different.len() > 250, "{} different runs", different.len());
}

/// Makes a callback panic; returns the subject and the operation of the failure.
type Failing = fn(&Circuit) -> (Subject, &'static str);

/// One for each kind of callback.
const FAILING: [Failing; 8] = [
    |circuit| {
        let pipe = circuit.pipe(|(): ()| fail("a receptor")).expect("open");
        pipe.emit(());
        (pipe.subject().clone(), "receive")
    },
    |circuit| {
        let conduit = circuit.conduit::<u32>().expect("open");
        let refusing =
            circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| fail("a subscriber")).expect("open");
        conduit.subscribe(&refusing).expect("open");
        conduit.get(name("a")).emit(1);
        (refusing.subject().clone(), "subscribe")
    },
    |circuit| {
        let conduit = circuit.conduit::<u32>().expect("open");
        let deaf = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u32>| ()).expect("open");
        let subscription = conduit.subscribe_with(&deaf, |_| fail("an on-close")).expect("open");
        subscription.close();
        (subscription.subject().clone(), "close")
    },
    |circuit| {
        let guard = Fiber::<u32>::new().guard(|_| fail("an operator"));
        let pipe = circuit.discard().expect("open").prepend(&guard).expect("open");
        pipe.emit(1);
        (pipe.subject().clone(), "receive")
    },
    |circuit| {
        let [source, target] = [(); 2].map(|()| circuit.conduit::<u32>().expect("open"));
        let pool = target.try_derive(|_| -> Result<Pipe<u32>, Fault> { fail("a factory of a pool") });
        let subscriber = circuit.subscriber_to(pool).expect("open");
        source.subscribe(&subscriber).expect("open");
        source.get(name("a")).emit(1);
        (subscriber.subject().clone(), "subscribe")
    },
    |circuit| {
        let calls = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&calls);
        let target = circuit
            .pipe(move |tick: u64| {
                count.store(tick + 1, Ordering::SeqCst);
                if tick == 0 {
                    fail("a target of a ticker");
                }
            })
            .expect("open");
        let _ticker = circuit.ticker(Duration::from_millis(1), &target).expect("open");
        while calls.load(Ordering::SeqCst) < 2 {
            circuit.settle().expect("outside");
            thread::yield_now();
        }
        (target.subject().clone(), "receive")
    },
    |circuit| {
        let port = circuit.port(1_u32).expect("open");
        port.update(|_| fail("a transform of a port"));
        (port.subject().clone(), "update")
    },
    |circuit| {
        let above = Fiber::<u32>::new().above_by(0, |_, _| fail("a comparator"));
        let pipe = circuit.discard().expect("open").prepend(&above).expect("open");
        pipe.emit(1);
        (pipe.subject().clone(), "receive")
    },
];

#[test]
fn xtr_08_a_panic_in_any_callback_is_reported_once_and_goes_no_further() {
    for circuit in circuits() {
        let faults = circuit.faults().expect("open");
        let reported = Trace::<Failure>::new();
        let seen = reported.clone();
        let watcher = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
                registrar.receptor(seen.receptor());
            })
            .expect("open");
        faults.subscribe(&watcher).expect("open");
        for failing in FAILING {
            let (subject, operation) = failing(&circuit);
            circuit.settle().expect("outside");
            let failures = reported.take();
            assert_eq!(failures.len(), 1, "{operation} of {subject}: {failures:?}");
            assert_eq!((failures[0].subject(), failures[0].operation()), (&subject, operation));

            let trace = Trace::new();
            trace.pipe(&circuit).emit("alive");
            circuit.settle().expect("outside");
            assert_eq!(trace.take(), ["alive"]);
        }
    }
}
