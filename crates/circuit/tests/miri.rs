//! Small programs that exercise all the unsafe code, for Miri: `./check miri` interprets them. They
//! run as ordinary tests too.

use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use tidemark_circuit::{
    Basin, Circuit, Fiber, Flow, Name, Overflow, Pipe, Port, Recording, Registrar, Replay, Routing, RunBy,
    Simulation, Subject, Supervision, ThreadPool, WeakPipe,
};

/// The handled values, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<u64>>>);

impl Trace {
    fn push(&self, value: u64) {
        self.0.lock().expect("no panic").push(value);
    }

    fn pipe<E: Into<Seen> + Send + 'static>(&self, circuit: &Circuit) -> Pipe<E> {
        let trace = self.clone();
        circuit.pipe(move |value: E| trace.push(value.into().0)).expect("open")
    }

    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

/// What remains of a value.
struct Seen(u64);

impl From<u64> for Seen {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

/// A value that owns memory and occupies several slots.
struct Large(Box<u64>, [u64; 40]);

impl Large {
    fn new(value: u64) -> Self {
        Self(Box::new(value), [value; 40])
    }
}

impl From<Large> for Seen {
    fn from(value: Large) -> Self {
        assert!(value.1.iter().all(|part| *part == *value.0));
        Self(*value.0)
    }
}

/// A value without size, and with an unusual alignment.
#[repr(align(64))]
struct Aligned;

impl From<Aligned> for Seen {
    fn from(value: Aligned) -> Self {
        assert_eq!(align_of_val(&value), 64);
        Self(0)
    }
}

fn circuits() -> impl Iterator<Item = Circuit> {
    let pool = ThreadPool::new(2).expect("threads");
    [RunBy::Owner, RunBy::Waiters, RunBy::Thread, RunBy::Pool(pool)]
        .into_iter()
        .map(|run_by| Circuit::builder().run_by(run_by).build().expect("a thread"))
}

fn settle(circuit: &Circuit) {
    while matches!(circuit.run_by(), RunBy::Owner) && circuit.run(3) {}
    circuit.settle().expect("outside");
}

#[test]
fn values_of_all_sizes_come_through_the_shared_queue() {
    for circuit in circuits() {
        let trace = Trace::default();
        let (small, large, aligned) =
            (trace.pipe::<u64>(&circuit), trace.pipe::<Large>(&circuit), trace.pipe::<Aligned>(&circuit));
        for value in 0..12 {
            small.emit(value);
            large.emit(Large::new(value));
            aligned.emit(Aligned);
        }
        settle(&circuit);
        assert_eq!(trace.take(), (0..12).flat_map(|value| [value, value, 0]).collect::<Vec<_>>());
    }
}

#[test]
fn values_of_all_sizes_come_through_lanes() {
    for circuit in circuits() {
        let trace = Trace::default();
        let (small, large, aligned) =
            (trace.pipe::<u64>(&circuit), trace.pipe::<Large>(&circuit), trace.pipe::<Aligned>(&circuit));
        thread::scope(|scope| {
            for first in [0, 100] {
                let (small, large, aligned) = (small.clone(), large.clone(), aligned.clone());
                let mut lane = circuit.lane().expect("open");
                scope.spawn(move || {
                    for value in first..first + 60 {
                        lane.emit(&small, value);
                        lane.emit(&large, Large::new(value));
                        lane.emit(&aligned, Aligned);
                    }
                });
            }
        });
        settle(&circuit);
        let seen = trace.take();
        for first in [0, 100] {
            let own = seen.iter().copied().filter(|value| *value > 0 && (first..first + 100).contains(value));
            let expected = (first..first + 60).flat_map(|value| [value, value]).filter(|value| *value > 0);
            assert!(own.eq(expected));
        }
    }
}

#[test]
fn a_lane_is_read_before_its_pipe_goes() {
    for circuit in circuits() {
        let ended = AtomicU64::new(0);
        let count = Arc::new(AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20 {
                    let counted = Arc::clone(&count);
                    let pipe = circuit
                        .pipe(move |value: Box<u64>| {
                            counted.fetch_add(*value, Ordering::Relaxed);
                        })
                        .expect("open");
                    // This happens while the circuit looks for work.
                    let mut lane = circuit.lane().expect("open");
                    lane.emit(&pipe, Box::new(1));
                    drop(pipe);
                    drop(lane);
                }
                ended.store(1, Ordering::Release);
            });
            while ended.load(Ordering::Acquire) == 0 {
                match circuit.run_by() {
                    // The thread that runs a circuit must not wait for it while other threads emit.
                    RunBy::Owner => _ = circuit.run(3),
                    _ => circuit.settle().expect("outside"),
                }
            }
        });
        settle(&circuit);
        assert_eq!(count.load(Ordering::Relaxed), 20);
    }
}

#[test]
fn a_circuit_sends_itself_more_than_a_chunk_holds() {
    for circuit in circuits() {
        let trace = Trace::default();
        let (small, large) = (trace.pipe::<u64>(&circuit), trace.pipe::<Large>(&circuit));
        let spread = circuit
            .pipe(move |count: u64| {
                for value in 0..count {
                    small.emit(value);
                    large.emit(Large::new(value));
                }
            })
            .expect("open");
        for _ in 0..2 {
            spread.emit(20);
            spread.emit(1);
            settle(&circuit);
            let expected = (0..20).chain(0..1).flat_map(|value| [value, value]);
            assert_eq!(trace.take(), expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_is_left_in_queues_is_dropped_with_the_circuit() {
    let alive = Arc::new(());
    {
        let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("no thread");
        let held = Arc::clone(&alive);
        let sink = circuit
            .pipe(move |value: (Arc<()>, [u64; 9])| {
                let _ = (&held, value);
            })
            .expect("open");
        let next = Arc::new(Mutex::new(Some(sink.clone())));
        let behind = Arc::clone(&next);
        let pipe = circuit
            .pipe(move |value: Arc<()>| {
                let next = behind.lock().expect("no panic");
                (0..4).for_each(|_| next.iter().for_each(|next| next.emit((value.clone(), [0; 9]))));
            })
            .expect("open");
        let mut lane = circuit.lane().expect("open");
        for _ in 0..5 {
            pipe.emit(Arc::clone(&alive));
            lane.emit(&sink, (Arc::clone(&alive), [0; 9]));
        }
        let conduit = circuit.conduit::<Arc<()>>().expect("open");
        let kept = Arc::clone(&alive);
        let subscriber = circuit
            .subscriber(move |_: &Subject, _: &mut Registrar<'_, Arc<()>>| {
                let _ = &kept;
            })
            .expect("open");
        conduit.subscribe(&subscriber).expect("open");
        circuit.run(3);
        // A circuit that no thread runs keeps what keeps the circuit.
        *next.lock().expect("no panic") = None;
    }
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn pipes_call_pipes_behind_them() {
    for circuit in circuits() {
        let trace = Trace::default();
        let mut pipe = trace.pipe::<u64>(&circuit);
        for _ in 0..70 {
            pipe = pipe.prepend(&Flow::new().map(|value: u64| value + 1)).expect("open");
        }
        pipe.emit(1);
        drop(pipe);
        settle(&circuit);
        settle(&circuit);
        assert_eq!(trace.take(), [71]);
    }
}

#[test]
fn conduits_and_their_subscribers_come_and_go() {
    for circuit in circuits() {
        let trace = Trace::default();
        let conduit = circuit.conduit_with::<u64>(Routing::Stem).expect("open");
        let seen = trace.clone();
        let subscriber = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
                let (seen, depth) = (seen.clone(), subject.name().to_string().len() as u64);
                registrar.receptor(move |value: u64| {
                    seen.push(value * 100 + depth);
                    assert!(value != 3, "three is too much");
                });
            })
            .expect("open");
        let name = Name::new("a.b").expect("valid");
        for value in 1..=4 {
            let subscription = conduit.subscribe(&subscriber).expect("open");
            conduit.get(name).emit(value);
            subscription.close();
            conduit.get(name).emit(50);
            settle(&circuit);
            assert_eq!(trace.take(), [value * 100 + 3, value * 100 + 1]);
        }
        conduit.subscribe(&subscriber).expect("open");
        conduit.close();
        circuit.close();
        settle(&circuit);
    }
}

#[test]
fn failures_lose_their_value_and_nothing_else() {
    struct Fails;

    impl Drop for Fails {
        fn drop(&mut self) {
            panic_any("dropped");
        }
    }

    for circuit in circuits() {
        let trace = Trace::default();
        let seen = trace.clone();
        let pipe = circuit
            .pipe(move |value: Option<Fails>| {
                seen.push(1);
                drop(value);
            })
            .expect("open");
        pipe.emit(Some(Fails));
        pipe.emit(None);
        settle(&circuit);
        assert_eq!((trace.take(), circuit.failures()), (vec![1, 1], 1));
        pipe.emit(Some(Fails));
        circuit.close();
        settle(&circuit);
    }
}

#[test]
fn bounded_queues_drop_and_refuse() {
    for overflow in [Overflow::DropOldest, Overflow::DropNewest, Overflow::Reject] {
        let circuit =
            Circuit::builder().run_by(RunBy::Owner).bounded(2, overflow).build().expect("no thread");
        let trace = Trace::default();
        let pipe = trace.pipe::<Large>(&circuit);
        let lane = circuit.lane().expect("open");
        (0..4).for_each(|value| pipe.emit(Large::new(value)));
        drop((pipe, lane));
        while circuit.run(1) {}
        assert_eq!(trace.take(), if overflow == Overflow::DropOldest { [2, 3] } else { [0, 1] });
        assert_eq!(circuit.dropped(), 2);
    }
}

#[test]
fn small_values_lie_in_a_bounded_circuit_while_they_are_handled() {
    let circuit =
        Circuit::builder().run_by(RunBy::Owner).bounded(2, Overflow::DropOldest).build().expect("no thread");
    let trace = Trace::default();
    // The operator reads the time of its input, and emits, while its value is being handled.
    let every = Fiber::new().every_duration(Duration::from_nanos(1)).expect("valid");
    let pipe = every.pipe(&trace.pipe::<u64>(&circuit)).expect("open");
    (0..4).for_each(|value| pipe.emit(value));
    while circuit.run(1) {}
    assert_eq!(trace.take().last(), Some(&3));
}

#[test]
fn callers_of_all_kinds_meet_in_circuits_that_call_each_other() {
    for (first, second) in circuits().zip(circuits()).filter(|(one, _)| !matches!(one.run_by(), RunBy::Owner))
    {
        let trace = Trace::default();
        let last = trace.pipe::<Large>(&second);
        let pipe = first.pipe(move |value: u64| last.emit(Large::new(value))).expect("open");
        thread::scope(|scope| {
            for caller in 0..2 {
                let (pipe, first) = (pipe.clone(), first.clone());
                scope.spawn(move || {
                    for value in 0..6 {
                        pipe.emit(caller * 10 + value);
                        first.settle().expect("outside");
                    }
                });
            }
        });
        second.settle().expect("outside");
        let seen = trace.take();
        for caller in 0..2 {
            let own = seen.iter().copied().filter(|value| value / 10 == caller);
            assert!(own.eq(caller * 10..caller * 10 + 6));
        }
        first.close();
        second.close_and_settle().expect("outside");
    }
}

#[test]
fn what_fails_is_made_anew_or_given_up_and_its_values_go_elsewhere() {
    std::panic::set_hook(Box::new(|_| ()));
    let supervision = Supervision::Restart { at_most: 1, within: Duration::from_hours(1) };
    let circuit = Circuit::builder().run_by(RunBy::Waiters).supervision(supervision).build().expect("valid");
    let lost = Trace::default();
    let dead = lost.pipe::<Large>(&circuit);
    let made = circuit.dead_letters(&dead).pipe_from(|| {
        let state = Box::new(1);
        move |large: Large| assert_ne!(*large.0, *state)
    });
    let end = circuit.discard().expect("open");
    let flow = Flow::new().map(|large: Large| assert_ne!(*large.0, 1));
    let chain = circuit.dead_letters(&dead).prepend(&end, &flow).expect("open");
    for pipe in [made.expect("open"), chain] {
        for value in [1, 2, 1, 3] {
            pipe.emit(Large::new(value));
        }
        circuit.settle().expect("outside");
        assert_eq!(lost.take(), [3]);
    }
}

#[test]
fn a_circuit_ends_what_is_open_and_weak_pipes_outlive_it() {
    for circuit in circuits().filter(|circuit| !matches!(circuit.run_by(), RunBy::Owner)) {
        let trace = Trace::default();
        let pipe = trace.pipe::<Large>(&circuit);
        let weak: WeakPipe<Large> = pipe.downgrade();
        let conduit = circuit.conduit::<u64>().expect("open");
        let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u64>| ()).expect("open");
        for value in [1, 2] {
            let weak = weak.clone();
            conduit.subscribe_with(&subscriber, move |_| weak.emit(Large::new(value))).expect("open");
        }
        circuit.close_and_settle().expect("outside");
        assert_eq!(trace.take(), [1, 2]);
        drop((pipe, conduit, subscriber, circuit));
        weak.emit(Large::new(3));
        assert_eq!(trace.take(), []);
    }
}

/// Emits to itself when it is dropped, through the last handle of its own node.
struct Phoenix(Arc<OnceLock<WeakPipe<u64>>>);

impl Drop for Phoenix {
    fn drop(&mut self) {
        self.0.get().expect("set").emit(1);
    }
}

#[test]
fn a_receptor_that_emits_to_itself_when_it_is_dropped_is_gone() {
    for circuit in circuits() {
        let trace = Trace::default();
        let (own, seen) = (Arc::new(OnceLock::new()), trace.clone());
        let phoenix = Phoenix(Arc::clone(&own));
        let pipe = circuit
            .pipe(move |value: u64| {
                let _held = &phoenix;
                seen.push(value);
            })
            .expect("open");
        own.set(pipe.downgrade()).expect("once");
        drop((own, pipe));
        settle(&circuit);
        assert_eq!(trace.take(), []);
    }
}

#[test]
fn a_lane_goes_from_chunk_to_chunk_also_for_a_value_larger_than_one() {
    for circuit in circuits() {
        let trace = Trace::default();
        let (large, seen) = (trace.pipe::<Large>(&circuit), trace.clone());
        // The value and its token have more words than a chunk.
        let huge = circuit.pipe(move |value: [u64; 2048]| seen.push(value[2047])).expect("open");
        let mut lane = circuit.lane().expect("open");
        for value in 0..100 {
            lane.emit(&large, Large::new(value));
            if value % 40 == 39 {
                lane.emit(&huge, [value; 2048]);
            }
        }
        settle(&circuit);
        let expected = (0..100).flat_map(|value| {
            let times = if value % 40 == 39 { 2 } else { 1 };
            std::iter::repeat_n(value, times)
        });
        assert_eq!(trace.take(), expected.collect::<Vec<_>>());
        // Values that remain in a lane are dropped with the circuit.
        lane.emit(&large, Large::new(7));
    }
}

#[test]
fn pins_are_opened_inside_and_dropped_anywhere() {
    for circuit in circuits() {
        let trace = Trace::default();
        let pin = circuit.pin(Box::new(1_u64)).expect("open");
        let (inside, seen) = (pin.clone(), trace.clone());
        let pipe = circuit
            .pipe(move |value: u64| {
                let refused = inside.with(|held| {
                    **held += value;
                    inside.with(|again| **again = 0).is_err()
                });
                assert!(refused.expect("inside"));
                seen.push(*inside.get().expect("inside"));
                inside.set(Box::new(value)).expect("inside");
            })
            .expect("open");
        assert!(pin.get().is_err() && pin.set(Box::new(0)).is_err());
        (5..8).for_each(|value| pipe.emit(value));
        settle(&circuit);
        assert_eq!(trace.take(), [6, 11, 13]);
        drop(pipe);
        settle(&circuit);
        thread::spawn(move || drop(pin)).join().expect("no panic");
    }
}

#[test]
fn basins_keep_the_newest_and_are_drained() {
    for circuit in circuits() {
        let trace = Trace::default();
        let end = trace.pipe::<Large>(&circuit);
        let basin: Basin<Large> = circuit.basin(3).expect("valid");
        for round in 0..3 {
            (0..5).for_each(|value| basin.pipe().emit(Large::new(round * 10 + value)));
            basin.drain(&end);
            basin.drain(&end);
            settle(&circuit);
            assert_eq!(trace.take(), [2, 3, 4].map(|value| round * 10 + value));
        }
        // Values that remain in the basin are dropped with it, or with its circuit.
        basin.pipe().emit(Large::new(1));
        settle(&circuit);
    }
}

#[test]
fn a_fan_out_runs_its_own_pipes_directly_and_emits_to_others() {
    for (circuit, other) in circuits().zip(circuits()) {
        let trace = Trace::default();
        let own = [(); 2].map(|()| trace.pipe::<u64>(&circuit));
        let failing = circuit.pipe(|_: u64| panic_any("always")).expect("open");
        let inner = circuit.fan_out(&[own[0].clone(), failing, own[1].clone()]).expect("open");
        let there = Trace::default();
        let all = circuit.fan_out(&[inner.clone(), there.pipe(&other), inner]).expect("open");
        (1..4).for_each(|value| all.emit(value));
        settle(&circuit);
        settle(&other);
        assert_eq!(trace.take(), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        assert_eq!((there.take(), circuit.failures()), (vec![1, 2, 3], 6));
        drop((all, own));
        settle(&circuit);
    }
}

#[test]
fn bounded_queues_have_callers_wait_and_drop_what_is_being_taken() {
    let pool = ThreadPool::new(2).expect("threads");
    for run_by in [RunBy::Thread, RunBy::Pool(pool)] {
        for overflow in [Overflow::Block, Overflow::DropOldest, Overflow::DropNewest] {
            let builder = Circuit::builder().run_by(run_by.clone()).bounded(2, overflow);
            let circuit = builder.build().expect("a thread");
            let trace = Trace::default();
            let pipe = trace.pipe::<Large>(&circuit);
            thread::scope(|scope| {
                for caller in 0..2 {
                    let (pipe, mut lane) = (pipe.clone(), circuit.lane().expect("open"));
                    scope.spawn(move || {
                        for value in 0..8 {
                            pipe.emit(Large::new(caller * 100 + value));
                            lane.emit(&pipe, Large::new(caller * 100 + 50 + value));
                        }
                    });
                }
            });
            circuit.settle().expect("outside");
            assert_eq!(trace.take().len() as u64 + circuit.dropped(), 32);
            assert!(overflow != Overflow::Block || circuit.dropped() == 0);
            pipe.emit(Large::new(1));
            circuit.close();
            assert!(pipe.try_emit(Large::new(2)).is_err());
        }
    }
}

#[test]
fn pipes_are_released_by_what_they_run() {
    for circuit in circuits() {
        let trace = Trace::default();
        let (end, seen) = (trace.pipe::<Box<u64>>(&circuit), trace.clone());
        // A pipe whose receptor holds its last handles: of itself, and of the next pipe.
        let own = Arc::new(Mutex::new(None::<Pipe<Box<u64>>>));
        let (held, mut next) = (Arc::clone(&own), Some(end));
        let pipe = circuit
            .pipe(move |value: Box<u64>| {
                seen.push(*value);
                if let Some(next) = next.take() {
                    next.emit(value);
                }
                drop(held.lock().expect("no panic").take());
            })
            .expect("open");
        pipe.emit(Box::new(1));
        pipe.emit(Box::new(2));
        *own.lock().expect("no panic") = Some(pipe);
        settle(&circuit);
        settle(&circuit);
        assert_eq!(trace.take(), [1, 1, 2]);
        circuit.close();
    }
}

impl From<Box<u64>> for Seen {
    fn from(value: Box<u64>) -> Self {
        Self(*value)
    }
}

#[test]
fn simulated_circuits_and_callers_take_turns() {
    for seed in 0..4 {
        let mut simulation = Simulation::new(seed);
        let (first, second) = (simulation.circuit(), simulation.circuit());
        let trace = Trace::default();
        let end = trace.pipe::<Large>(&second);
        let pipe = first.pipe(move |value: u64| end.emit(Large::new(value))).expect("open");
        for caller in 0..2 {
            let pipe = pipe.clone();
            simulation.caller((0..4).map(move |value| {
                let pipe = pipe.clone();
                Box::new(move || pipe.emit(caller * 10 + value)) as Box<dyn FnOnce()>
            }));
        }
        (0..7).for_each(|_| _ = simulation.step());
        let circuit = first.clone();
        simulation.caller([Box::new(move || circuit.close()) as Box<dyn FnOnce()>]);
        simulation.run();
        let seen = trace.take();
        for caller in 0..2 {
            let own: Vec<u64> = seen.iter().copied().filter(|value| value / 10 == caller).collect();
            assert!((0..own.len() as u64).map(|value| caller * 10 + value).eq(own));
        }
    }
}

/// The values that a journal reads lie anywhere in a queue, and some of them are changed there.
#[test]
fn a_journal_looks_at_what_comes_through_all_queues() {
    struct Structure {
        circuit: Circuit,
        texts: Pipe<(u8, String)>,
        port: Port<String>,
        basin: Basin<String>,
        end: Pipe<String>,
        seen: Arc<Mutex<Vec<String>>>,
    }
    let build = |run_by: RunBy| {
        let circuit = Circuit::builder().run_by(run_by).build().expect("a thread");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let end = circuit.pipe(move |text| log.lock().expect("no panic").push(text)).expect("open");
        let next = end.clone();
        let texts = circuit.pipe(move |(number, text)| next.emit(format!("{text}{number}"))).expect("open");
        let port = circuit.port("first".to_owned()).expect("open");
        let basin = circuit.basin(2).expect("valid");
        Structure { circuit, texts, port, basin, end, seen }
    };
    for run_by in [RunBy::Waiters, RunBy::Thread] {
        let structure = build(run_by);
        let recording = Recording::new(&structure.circuit, Vec::new());
        recording.pipe("texts", &structure.texts).expect("its own");
        recording.port("port", &structure.port).expect("its own");
        recording.basin("basin", &structure.basin).expect("its own");
        recording.pipe("end", &structure.end).expect("its own");
        recording.begin().expect("open");
        let mut lane = structure.circuit.lane().expect("open");
        for number in 0..4 {
            lane.emit(&structure.texts, (number, "lane".to_owned()));
            structure.texts.emit((number, "shared".to_owned()));
            structure.port.update(move |text| format!("{text}{number}"));
            structure.port.filter_update(|_| None);
            structure.port.update(|_| std::panic::resume_unwind(Box::new("no")));
            structure.port.emit(structure.basin.pipe());
            structure.port.replace(number.to_string());
            structure.basin.drain(&structure.end);
        }
        let journal = recording.finish().expect("memory does not fail");
        let mut replay = Replay::new(&journal[..]).expect("a journal");
        let twin = build(RunBy::Owner);
        replay.pipe("texts", &twin.texts);
        replay.port("port", &twin.port);
        replay.basin("basin", &twin.basin);
        replay.pipe("end", &twin.end);
        assert!(replay.run(&twin.circuit).expect("as recorded").complete);
        assert_eq!(*structure.seen.lock().expect("no panic"), *twin.seen.lock().expect("no panic"));
        assert_eq!((structure.circuit.failures(), twin.circuit.failures()), (4, 4));
        structure.circuit.close();
        twin.circuit.close();
    }
}

/// A writer that accepts the beginning of a journal only.
struct Torn(bool);

impl std::io::Write for Torn {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if std::mem::replace(&mut self.0, true) {
            std::panic::resume_unwind(Box::new("no more paper"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_could_not_be_recorded_is_done_once() {
    for run_by in [RunBy::Waiters, RunBy::Thread] {
        let trace = Trace::default();
        let circuit = Circuit::builder().run_by(run_by).build().expect("a thread");
        let (conduit, seen) = (circuit.conduit::<u64>().expect("open"), trace.clone());
        let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
            let seen = seen.clone();
            registrar.receptor(move |value| seen.push(value));
        });
        let recording = Recording::new(&circuit, Torn(false));
        recording.begin().expect("open");
        let subscription = conduit.subscribe(&subscriber.expect("open")).expect("open");
        conduit.get(Name::new("a").expect("valid")).emit(1);
        subscription.close_and_settle().expect("outside");
        circuit.close_and_settle().expect("outside");
        assert_eq!(trace.take(), [1]);
        assert!(circuit.failures() > 0);
    }
}
