//! Circuits with a bounded queue under overload, with each driver.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tidemark_circuit::{Circuit, Error, Overflow, Pipe, Refused, RunBy};

use crate::conformance::support::Gate;
use crate::emitting::{drivers, settle};

/// A circuit whose receptor waits at a gate and then notes the value, with the value 0 at the gate
/// and none in the queue. Values have `WORDS` words.
struct Stalled<const WORDS: usize> {
    circuit: Circuit,
    pipe: Pipe<[u64; WORDS]>,
    gate: Gate,
    seen: mpsc::Receiver<[u64; WORDS]>,
    /// Runs the circuit up to the gate, for drivers without a thread.
    runner: Option<JoinHandle<()>>,
}

impl<const WORDS: usize> Stalled<WORDS> {
    fn new(run_by: &RunBy, capacity: usize, overflow: Overflow) -> Self {
        let builder = Circuit::builder().run_by(run_by.clone()).bounded(capacity, overflow);
        let circuit = builder.build().expect("valid");
        let gate = Gate::default();
        let (sender, seen) = mpsc::channel();
        let (start, started) = mpsc::channel();
        let door = gate.clone();
        let receptor = move |value| {
            let _ = start.send(());
            door.pass();
            let _ = sender.send(value);
        };
        let pipe = circuit.pipe(receptor).expect("open");
        pipe.emit([0; WORDS]);
        let running = circuit.clone();
        let runner = match run_by {
            RunBy::Owner => Some(thread::spawn(move || _ = running.run(1))),
            RunBy::Waiters => Some(thread::spawn(move || running.settle().expect("outside"))),
            _ => None,
        };
        started.recv().expect("the receptor runs");
        Self { circuit, pipe, gate, seen, runner }
    }

    fn try_emit(&self, number: u64) -> Result<(), Refused<[u64; WORDS]>> {
        self.pipe.try_emit([number; WORDS])
    }

    fn emit(&self, number: u64) {
        self.pipe.emit([number; WORDS]);
    }

    /// Opens the gate; returns the values handled since, each by its first word.
    fn open(&mut self) -> Vec<u64> {
        self.gate.open();
        if let Some(runner) = self.runner.take() {
            runner.join().expect("no panic");
        }
        self.seen()
    }

    /// The values handled since the last call.
    fn seen(&self) -> Vec<u64> {
        settle(&self.circuit);
        let first = |value: [u64; WORDS]| {
            assert_eq!(value, [value[0]; WORDS], "a value is whole");
            value[0]
        };
        self.seen.try_iter().map(first).collect()
    }
}

/// The drivers whose circuits may block callers while the queue is full.
fn blocking_drivers() -> impl Iterator<Item = RunBy> {
    drivers().into_iter().filter(|run_by| !matches!(run_by, RunBy::Waiters | RunBy::Owner))
}

fn a_rejected_value_is_given_back_by<const WORDS: usize>(run_by: &RunBy) {
    let mut stalled = Stalled::<WORDS>::new(run_by, 2, Overflow::Reject);
    assert_eq!((stalled.try_emit(1), stalled.try_emit(2)), (Ok(()), Ok(())));
    assert_eq!(stalled.try_emit(3), Err(Refused::Full([3; WORDS])));
    assert_eq!(stalled.circuit.dropped(), 0, "what was given back is not lost");
    stalled.emit(4);
    assert_eq!(stalled.circuit.dropped(), 1);
    assert_eq!(stalled.open(), [0, 1, 2]);
    assert_eq!(stalled.try_emit(5), Ok(()));
    assert_eq!(stalled.seen(), [5], "there is room again");
    stalled.circuit.close();
    assert_eq!(stalled.try_emit(6), Err(Refused::Closed([6; WORDS])));
    stalled.emit(7);
    assert_eq!(stalled.circuit.dropped(), 1, "what comes to a closed circuit is not counted");
}

#[test]
fn a_rejected_value_is_given_back() {
    for run_by in drivers() {
        a_rejected_value_is_given_back_by::<1>(&run_by);
        a_rejected_value_is_given_back_by::<20>(&run_by);
    }
}

fn the_newest_is_dropped_by<const WORDS: usize>(run_by: &RunBy) {
    let mut stalled = Stalled::<WORDS>::new(run_by, 2, Overflow::DropNewest);
    (1..=4).for_each(|number| stalled.emit(number));
    assert_eq!(stalled.try_emit(5), Ok(()), "it is dropped as was asked for");
    assert_eq!(stalled.circuit.dropped(), 3);
    assert_eq!(stalled.open(), [0, 1, 2]);
    assert_eq!(stalled.try_emit(6), Ok(()));
    assert_eq!((stalled.seen(), stalled.circuit.dropped()), (vec![6], 3));
    stalled.circuit.close();
    assert_eq!(stalled.try_emit(7), Err(Refused::Closed([7; WORDS])));
}

#[test]
fn the_newest_is_dropped() {
    for run_by in drivers() {
        the_newest_is_dropped_by::<1>(&run_by);
        the_newest_is_dropped_by::<20>(&run_by);
    }
}

fn the_oldest_is_dropped_by<const WORDS: usize>(run_by: &RunBy) {
    let mut stalled = Stalled::<WORDS>::new(run_by, 2, Overflow::DropOldest);
    (1..=4).for_each(|number| stalled.emit(number));
    assert_eq!(stalled.try_emit(5), Ok(()));
    assert_eq!(stalled.circuit.dropped(), 3);
    assert_eq!(stalled.open(), [0, 4, 5]);
    stalled.emit(6);
    assert_eq!((stalled.seen(), stalled.circuit.dropped()), (vec![6], 3));
    stalled.circuit.close();
    assert_eq!(stalled.try_emit(7), Err(Refused::Closed([7; WORDS])));
}

#[test]
fn the_oldest_is_dropped() {
    for run_by in drivers() {
        the_oldest_is_dropped_by::<1>(&run_by);
        the_oldest_is_dropped_by::<20>(&run_by);
    }
}

fn callers_wait_for_room_of<const WORDS: usize>(run_by: &RunBy) {
    let mut stalled = Stalled::<WORDS>::new(run_by, 2, Overflow::Block);
    assert_eq!((stalled.try_emit(1), stalled.try_emit(2)), (Ok(()), Ok(())));
    let pipe = stalled.pipe.clone();
    let (arrive, arrived) = mpsc::channel();
    let caller = thread::spawn(move || {
        arrive.send(()).expect("is listened to");
        let outcome = pipe.try_emit([3; WORDS]);
        pipe.emit([4; WORDS]);
        outcome
    });
    arrived.recv().expect("the caller is there");
    assert_eq!(stalled.seen.try_iter().count(), 0, "nothing leaves the queue meanwhile");
    let mut seen = stalled.open();
    assert_eq!(caller.join().expect("no panic"), Ok(()));
    seen.extend(stalled.seen());
    assert_eq!((seen, stalled.circuit.dropped()), (vec![0, 1, 2, 3, 4], 0));
    stalled.circuit.close();
    assert_eq!(stalled.try_emit(5), Err(Refused::Closed([5; WORDS])));
}

#[test]
fn callers_wait_for_room() {
    for run_by in blocking_drivers() {
        callers_wait_for_room_of::<1>(&run_by);
        callers_wait_for_room_of::<20>(&run_by);
    }
}

#[test]
fn what_drops_the_oldest_frees_it_and_never_drops_a_subscription() {
    let circuit =
        Circuit::builder().run_by(RunBy::Owner).bounded(1, Overflow::DropOldest).build().expect("valid");
    let conduit = circuit.conduit::<Arc<[u64; 9]>>().expect("open");
    let (sender, receiver) = mpsc::channel();
    let subscriber = circuit
        .subscriber(move |_: &_, registrar: &mut tidemark_circuit::Registrar<'_, Arc<[u64; 9]>>| {
            let sender = sender.clone();
            registrar.receptor(move |value: Arc<[u64; 9]>| sender.send(value[0]).expect("received"));
        })
        .expect("open");
    let name = tidemark_circuit::Name::new("a").expect("valid");
    let values: Vec<_> = (0..4).map(|n| Arc::new([n; 9])).collect();
    conduit.get(name).emit(Arc::clone(&values[0]));
    conduit.subscribe(&subscriber).expect("open");
    values[1..].iter().for_each(|value| conduit.get(name).emit(Arc::clone(value)));
    assert!(values[..3].iter().all(|value| Arc::strong_count(value) == 1), "the dropped ones are free");
    while circuit.run(100) {}
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [3]);
}

#[test]
fn large_values_drop_the_oldest_too() {
    let circuit =
        Circuit::builder().run_by(RunBy::Owner).bounded(2, Overflow::DropOldest).build().expect("valid");
    let (sender, receiver) = mpsc::channel();
    let pipe = circuit.pipe(move |value: [u64; 20]| sender.send(value).expect("received")).expect("open");
    (0..9).for_each(|n| pipe.emit([n; 20]));
    while circuit.run(1) {}
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [[7; 20], [8; 20]]);
}

#[test]
fn callers_wait_for_room_and_nothing_is_lost() {
    for run_by in blocking_drivers() {
        let circuit = Circuit::builder().run_by(run_by).bounded(3, Overflow::Block).build().expect("valid");
        let sum = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&sum);
        let pipe = circuit
            .pipe(move |value: usize| {
                let _ = seen.fetch_add(value, Ordering::Relaxed);
            })
            .expect("open");
        thread::scope(|scope| {
            for _ in 0..4 {
                let (pipe, mut lane) = (&pipe, circuit.lane().expect("open"));
                scope.spawn(move || (0..5000).for_each(|_| lane.emit(pipe, 1)));
            }
        });
        circuit.settle().expect("outside");
        assert_eq!(sum.load(Ordering::Relaxed), 20_000);
        assert_eq!(circuit.dropped(), 0);
    }
}

#[test]
fn bounds_that_make_no_sense_are_refused() {
    let refused = |builder: tidemark_circuit::CircuitBuilder| match builder.build().expect_err("refused") {
        Error::Argument(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(Circuit::builder().bounded(0, Overflow::Reject)).contains("at least one"));
    for run_by in [RunBy::Waiters, RunBy::Owner] {
        let error = refused(Circuit::builder().run_by(run_by).bounded(1, Overflow::Block));
        assert!(error.contains("cannot block"), "{error}");
    }
}
