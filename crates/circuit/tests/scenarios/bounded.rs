//! What a circuit with a bounded queue does when more comes in than it handles.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;

use tidemark_circuit::{Circuit, Error, Overflow, Pipe, Refused, RunBy};

/// A circuit whose receptor notes values and waits at a gate before each of them.
struct Stalled {
    circuit: Circuit,
    pipe: Pipe<u32>,
    gate: Arc<(Mutex<bool>, Condvar)>,
    seen: mpsc::Receiver<u32>,
    started: mpsc::Receiver<()>,
}

impl Stalled {
    fn new(run_by: RunBy, capacity: usize, overflow: Overflow) -> Self {
        let circuit = Circuit::builder().run_by(run_by).bounded(capacity, overflow).build().expect("valid");
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (sender, seen) = mpsc::channel();
        let (start, started) = mpsc::channel();
        let door = Arc::clone(&gate);
        let pipe = circuit
            .pipe(move |value| {
                let _ = start.send(());
                let open = door.0.lock().expect("no panic");
                drop(door.1.wait_while(open, |open| !*open).expect("no panic"));
                let _ = sender.send(value);
            })
            .expect("open");
        let stalled = Self { circuit, pipe, gate, seen, started };
        // From here on the circuit is busy with the 0, which is no longer in the queue.
        stalled.pipe.emit(0);
        stalled.started.recv().expect("the receptor runs");
        stalled
    }

    fn open(&self) -> Vec<u32> {
        *self.gate.0.lock().expect("no panic") = true;
        self.gate.1.notify_all();
        self.circuit.settle().expect("outside");
        self.seen.try_iter().collect()
    }
}

fn drivers() -> [RunBy; 2] {
    [RunBy::SharedPool, RunBy::Thread]
}

#[test]
fn a_rejected_value_is_given_back() {
    for run_by in drivers() {
        let stalled = Stalled::new(run_by, 2, Overflow::Reject);
        assert_eq!(stalled.pipe.try_emit(1), Ok(()));
        assert_eq!(stalled.pipe.try_emit(2), Ok(()));
        assert_eq!(stalled.pipe.try_emit(3), Err(Refused::Full(3)));
        assert_eq!(stalled.circuit.dropped(), 0, "what was given back is not lost");
        stalled.pipe.emit(4);
        assert_eq!(stalled.circuit.dropped(), 1);
        assert_eq!(stalled.open(), [0, 1, 2]);
        assert_eq!(stalled.pipe.try_emit(5), Ok(()));
        stalled.circuit.close();
        assert_eq!(stalled.pipe.try_emit(6), Err(Refused::Closed(6)));
    }
}

#[test]
fn the_newest_is_dropped() {
    for run_by in drivers() {
        let stalled = Stalled::new(run_by, 2, Overflow::DropNewest);
        (1..=5).for_each(|value| stalled.pipe.emit(value));
        assert_eq!(stalled.circuit.dropped(), 3);
        assert_eq!(stalled.open(), [0, 1, 2]);
    }
}

#[test]
fn the_oldest_is_dropped() {
    for run_by in drivers() {
        let stalled = Stalled::new(run_by, 2, Overflow::DropOldest);
        (1..=5).for_each(|value| stalled.pipe.emit(value));
        assert_eq!(stalled.circuit.dropped(), 3);
        assert_eq!(stalled.open(), [0, 4, 5]);
        stalled.pipe.emit(6);
        stalled.circuit.settle().expect("outside");
        assert_eq!(stalled.seen.try_iter().collect::<Vec<_>>(), [6]);
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
    for run_by in drivers() {
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
