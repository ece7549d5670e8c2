//! A recording does not change what its circuit does, whatever panics in the code that it calls,
//! and it comes to an end.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tidemark_circuit::{
    Circuit, Conduit, Failure, Fault, Name, Pipe, Recorded, Recording, Registrar, Replay, ReplayError, RunBy,
    Simulation, Subject, Subscriber, name,
};

fn circuit(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("valid")
}

/// Runs a function that would hang forever if it went wrong.
fn in_time<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(what()));
    receiver.recv_timeout(Duration::from_mins(1)).expect("it comes to its end")
}

/// A writer whose bytes the test can read; each write also calls `besides`.
#[derive(Clone)]
struct Paper<F> {
    bytes: Arc<Mutex<Vec<u8>>>,
    writes: usize,
    besides: F,
}

impl<F: FnMut(usize)> Paper<F> {
    /// `besides` gets the number of earlier writes.
    fn new(besides: F) -> Self {
        Self { bytes: Arc::default(), writes: 0, besides }
    }
}

impl<F: FnMut(usize)> io::Write for Paper<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        (self.besides)(self.writes - 1);
        self.bytes.lock().expect("no panic").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Panics without calling the panic hook.
fn throw(what: &str) {
    resume_unwind(Box::new(what.to_owned()))
}

/// A conduit, a subscriber to it, and what the subscriber has received.
struct Structure {
    circuit: Circuit,
    conduit: Conduit<u64>,
    subscriber: Subscriber<u64>,
    heard: Arc<Mutex<Vec<(Name, u64)>>>,
    /// The operations that have failed.
    failed: Arc<Mutex<Vec<&'static str>>>,
    _faults: Conduit<Failure>,
}

impl Structure {
    fn new(circuit: Circuit) -> Self {
        let (heard, failed): (Arc<Mutex<Vec<_>>>, Arc<Mutex<Vec<_>>>) = Default::default();
        let log = Arc::clone(&heard);
        let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
            let (name, log) = (subject.name(), Arc::clone(&log));
            registrar.receptor(move |value| log.lock().expect("no panic").push((name, value)));
        });
        let log = Arc::clone(&failed);
        let failures = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
            let log = Arc::clone(&log);
            registrar.receptor(move |failure: Failure| {
                log.lock().expect("no panic").push(failure.operation());
            });
        });
        let faults = circuit.faults().expect("open");
        faults.subscribe(&failures.expect("open")).expect("open");
        Self {
            conduit: circuit.conduit().expect("open"),
            subscriber: subscriber.expect("open"),
            circuit,
            heard,
            failed,
            _faults: faults,
        }
    }

    fn record<W: io::Write + Send + 'static>(&self, writer: W) -> Recording<W> {
        let recording = Recording::new(&self.circuit, writer);
        recording.conduit("conduit", &self.conduit).expect("its own");
        recording.subscriber("subscriber", &self.subscriber).expect("its own");
        recording.begin().expect("open");
        recording
    }

    fn play(&self) {
        let subscription = self.conduit.subscribe(&self.subscriber).expect("open");
        self.conduit.get(name!("a")).emit(1);
        self.conduit.get(name!("b")).emit(2);
        subscription.close();
        self.conduit.get(name!("b")).emit(3);
    }

    fn heard(&self) -> Vec<(Name, u64)> {
        self.heard.lock().expect("no panic").clone()
    }

    fn failed(&self) -> Vec<&'static str> {
        self.failed.lock().expect("no panic").clone()
    }

    /// Replays on a twin; returns the number of inputs, and what the subscriber received.
    fn replay(journal: &[u8]) -> Result<(u64, Vec<(Name, u64)>), ReplayError> {
        let twin = Self::new(circuit(RunBy::Owner));
        let mut replay = Replay::new(journal)?;
        replay.conduit("conduit", &twin.conduit);
        replay.subscriber("subscriber", &twin.subscriber);
        let replayed = replay.run(&twin.circuit)?;
        assert!(replayed.complete);
        Ok((replayed.inputs, twin.heard()))
    }
}

impl Drop for Structure {
    fn drop(&mut self) {
        self.circuit.close();
    }
}

fn drivers() -> [RunBy; 3] {
    [RunBy::Waiters, RunBy::Thread, RunBy::SharedPool]
}

#[test]
fn a_writer_that_panics_at_a_subscription_or_a_close_stops_no_circuit() {
    for run_by in drivers() {
        let structure = Structure::new(circuit(run_by));
        let recording = structure.record(Paper::new(|writes| {
            if writes > 0 {
                throw("no more paper");
            }
        }));
        let heard = in_time(move || {
            structure.play();
            structure.circuit.settle().expect("outside");
            structure.conduit.close_and_settle().expect("outside");
            drop(recording);
            structure.circuit.close_and_settle().expect("outside");
            structure.heard()
        });
        assert_eq!(heard, [(name!("a"), 1), (name!("b"), 2)]);
    }
}

#[test]
fn a_writer_that_panics_once_has_the_recording_fail_and_nothing_else() {
    let whole = Structure::new(circuit(RunBy::Waiters));
    let recording = whole.record(Vec::new());
    whole.play();
    let whole = recording.finish().expect("memory does not fail").len();
    // Three writes per frame; the first one is the header.
    for bad in 1..=27 {
        let structure = Structure::new(circuit(RunBy::Waiters));
        let paper = Paper::new(move |writes| {
            if writes == bad {
                throw("a blot");
            }
        });
        let bytes = Arc::clone(&paper.bytes);
        let recording = structure.record(paper);
        structure.play();
        structure.circuit.settle().expect("outside");
        let error = recording.finish().err().expect("the journal is not whole").to_string();
        assert!(error.contains("a blot"), "{error}");
        assert_eq!(structure.heard(), [(name!("a"), 1), (name!("b"), 2)]);
        assert_eq!(structure.failed(), ["record"], "{bad}");
        assert!(bytes.lock().expect("no panic").len() < whole, "nothing is written behind the blot");
    }
}

/// A writer that panics in its flush.
struct Unflushable;

impl io::Write for Unflushable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        throw("stuck");
        Ok(())
    }
}

#[test]
fn a_writer_that_panics_at_the_end_is_an_error_of_the_end() {
    let structure = Structure::new(circuit(RunBy::Waiters));
    let error = structure.record(Unflushable).finish().err().expect("it is stuck").to_string();
    assert!(error.contains("stuck"), "{error}");
    let recording = structure.record(Unflushable);
    structure.circuit.close_and_settle().expect("outside");
    let error = recording.finish().err().expect("it is stuck").to_string();
    assert!(error.contains("stuck"), "{error}");
}

/// A number type whose value 2 cannot be written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NotTwo(u64);

impl Recorded for NotTwo {
    fn write(&self, bytes: &mut Vec<u8>) {
        if self.0 == 2 {
            throw("not this one");
        }
        self.0.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Recorded::read(bytes).map(Self)
    }
}

#[test]
fn what_an_update_makes_is_there_even_if_it_cannot_be_written() {
    let structure = Structure::new(circuit(RunBy::Waiters));
    let port = structure.circuit.port(NotTwo(1)).expect("open");
    let (sender, values) = mpsc::channel();
    let target = structure.circuit.pipe(move |value: NotTwo| sender.send(value).expect("received"));
    let target = target.expect("open");
    let recording = structure.record(Vec::new());
    recording.port("port", &port).expect("its own");
    recording.pipe("target", &target).expect("its own");
    for _ in 0..2 {
        port.update(|value| NotTwo(value.0 + 1));
        port.emit(&target);
    }
    let journal = recording.finish().expect("memory does not fail");
    assert_eq!(values.try_iter().collect::<Vec<_>>(), [NotTwo(2), NotTwo(3)]);
    assert_eq!(structure.failed(), ["record"; 1]);
    let error = Structure::replay(&journal).expect_err("a gap").to_string();
    assert!(error.contains("panicked when it was to be written"), "{error}");
}

#[test]
fn the_owner_of_a_circuit_can_finish_its_recording() {
    let (journal, heard) = in_time(|| {
        let structure = Structure::new(circuit(RunBy::Owner));
        while structure.circuit.run(usize::MAX) {}
        let recording = structure.record(Vec::new());
        structure.play();
        while structure.circuit.run(usize::MAX) {}
        structure.conduit.get(name!("a")).emit(4);
        let journal = recording.finish().expect("memory does not fail");
        while structure.circuit.run(usize::MAX) {}
        (journal, structure.heard())
    });
    assert_eq!(
        Structure::replay(&journal).expect("as recorded"),
        (5, heard),
        "what was not run is not in it"
    );
}

#[test]
fn what_a_simulation_has_done_is_observed_again() {
    for seed in 0..20 {
        let (journal, heard) = in_time(move || {
            let mut simulation = Simulation::new(seed);
            let structure = Structure::new(simulation.circuit());
            simulation.run();
            let recording = structure.record(Vec::new());
            structure.conduit.subscribe(&structure.subscriber).expect("open");
            for caller in [name!("a"), name!("b")] {
                let pipe = structure.conduit.get(caller);
                simulation.caller((0..5).map(|value| {
                    let pipe = pipe.clone();
                    Box::new(move || pipe.emit(value)) as Box<dyn FnOnce()>
                }));
            }
            simulation.run();
            (recording.finish().expect("memory does not fail"), structure.heard())
        });
        assert_eq!(Structure::replay(&journal).expect("as recorded"), (11, heard));
    }
}

#[test]
fn a_recording_can_be_finished_inside_of_its_circuit() {
    for run_by in drivers() {
        let structure = Structure::new(circuit(run_by));
        let (sender, finished) = mpsc::channel();
        let mut recording = None;
        let last = structure.circuit.pipe(move |given: Option<Recording<Vec<u8>>>| match given {
            Some(_) => recording = given,
            None => sender.send(recording.take().expect("it was given").finish()).expect("received"),
        });
        let last: Pipe<Option<Recording<Vec<u8>>>> = last.expect("open");
        let recording = structure.record(Vec::new());
        structure.play();
        last.emit(Some(recording));
        last.emit(None);
        structure.circuit.settle().expect("outside");
        structure.conduit.get(name!("a")).emit(4);
        let journal = finished.try_recv().expect("it was finished").expect("memory does not fail");
        let error = Structure::replay(&journal).expect_err("the pipe to the recording had no label");
        assert!(matches!(error, ReplayError::Unlabelled(_)), "{error}");
        assert!(Recording::new(&structure.circuit, Vec::new()).begin().is_ok(), "it can be recorded again");
    }
}

#[test]
fn a_recording_that_is_dropped_ends_where_its_circuit_is() {
    for run_by in drivers() {
        let structure = Structure::new(circuit(run_by));
        let paper = Paper::new(|_| ());
        let bytes = Arc::clone(&paper.bytes);
        let recording = structure.record(paper);
        structure.play();
        structure.circuit.settle().expect("outside");
        drop(recording);
        let journal = bytes.lock().expect("no panic").clone();
        assert_eq!(Arc::strong_count(&bytes), 1, "its writer was dropped");
        let (inputs, heard) = Structure::replay(&journal).expect("as recorded");
        assert_eq!((inputs, heard), (5, structure.heard()));
        structure.play();
        structure.circuit.settle().expect("outside");
        assert_eq!(*bytes.lock().expect("no panic"), journal);

        let recording = structure.record(Vec::new());
        structure.play();
        let journal = recording.finish().expect("memory does not fail");
        assert_eq!(Structure::replay(&journal).expect("as recorded").0, 5, "it can be recorded again");
    }
}

#[test]
fn a_recording_of_before_does_not_end_the_one_after_it() {
    let structure = Structure::new(circuit(RunBy::Waiters));
    let (sender, begun) = mpsc::channel();
    let again = structure.circuit.clone();
    let begin = structure.circuit.pipe(move |()| {
        let recording = Recording::new(&again, Vec::new());
        recording.begin().expect("no recording is active");
        sender.send(recording).expect("received");
    });
    let begin = begin.expect("open");
    let first = structure.record(Vec::new());
    begin.emit(());
    drop(first);
    structure.circuit.settle().expect("outside");
    let second = begun.try_recv().expect("it was begun");
    second.conduit("conduit", &structure.conduit).expect("its own");
    second.subscriber("subscriber", &structure.subscriber).expect("its own");
    structure.play();
    let journal = second.finish().expect("memory does not fail");
    assert_eq!(Structure::replay(&journal).expect("as recorded").0, 5);
}

#[test]
fn a_circuit_with_traffic_is_recorded_from_the_begin_on_without_a_gap() {
    for run_by in drivers() {
        let structure = Structure::new(circuit(run_by));
        let recording = Recording::new(&structure.circuit, Vec::new());
        recording.conduit("conduit", &structure.conduit).expect("its own");
        recording.subscriber("subscriber", &structure.subscriber).expect("its own");
        let (go_on, emitted) = (AtomicBool::new(true), AtomicU64::new(0));
        let wait_for_more = || {
            let before = emitted.load(Ordering::Relaxed);
            while emitted.load(Ordering::Relaxed) < before + 100 {
                thread::yield_now();
            }
        };
        let journal = thread::scope(|scope| {
            scope.spawn(|| {
                let pipe = structure.conduit.get(name!("traffic"));
                while go_on.load(Ordering::Relaxed) {
                    pipe.emit(emitted.fetch_add(1, Ordering::Relaxed));
                }
            });
            wait_for_more();
            recording.begin().expect("open");
            let subscription = structure.conduit.subscribe(&structure.subscriber).expect("open");
            wait_for_more();
            subscription.close();
            wait_for_more();
            let journal = recording.finish();
            go_on.store(false, Ordering::Relaxed);
            journal
        });
        let (inputs, heard) = Structure::replay(&journal.expect("memory does not fail")).expect("no gap");
        assert!(inputs > 200 && heard.len() >= 100 && heard == structure.heard());
    }
}

#[test]
fn the_close_of_a_circuit_in_which_nothing_is_left_is_recorded() {
    for run_by in drivers() {
        let circuit = circuit(run_by);
        let recording = Recording::new(&circuit, Vec::new());
        recording.begin().expect("open");
        circuit.settle().expect("outside");
        circuit.close_and_settle().expect("outside");
        let journal = recording.finish().expect("memory does not fail");
        let mut replay = Replay::new(&journal[..]).expect("a journal");
        let twin = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build().expect("valid");
        assert_eq!(replay.run(&twin).expect("as recorded").inputs, 1);
        assert!(twin.is_closed());
    }
}

#[test]
fn a_recording_that_has_not_begun_writes_nothing_and_ends_no_other() {
    let structure = Structure::new(circuit(RunBy::Waiters));
    let (other, early) = (structure.record(Vec::new()), Recording::new(&structure.circuit, Vec::new()));
    assert!(early.begin().is_err(), "the circuit is recorded already");
    let error = early.finish().expect_err("there is no journal").to_string();
    assert!(error.contains("Recording::begin"), "{error}");
    drop(Recording::new(&structure.circuit, Vec::new()));
    assert!(Recording::new(&structure.circuit, Vec::new()).begin().is_err());
    structure.play();
    let journal = other.finish().expect("memory does not fail");
    assert_eq!(Structure::replay(&journal).expect("as recorded").0, 5);
}

#[test]
fn a_label_stands_for_one_thing_of_the_circuit() {
    let structure = Structure::new(circuit(RunBy::Waiters));
    let basin = structure.circuit.basin::<u64>(1).expect("valid");
    let recording = structure.record(Vec::new());
    recording.conduit("conduit", &structure.conduit).expect("it has this label already");
    recording.basin("basin", &basin).expect("its own");
    recording.basin("basin", &basin).expect("it has this label already");
    let refused = |outcome: Result<(), Fault>, why: &str| {
        let fault = outcome.expect_err("refused");
        assert!(fault.operation() == "label" && fault.message().contains(why), "{fault}");
    };
    let pipe = structure.conduit.get(name!("a"));
    refused(recording.pipe("conduit", pipe), "is the label of");
    refused(recording.pipe("subscriber", pipe), "is the label of");
    refused(recording.pipe("basin", pipe), "is the label of");
    refused(recording.conduit("another", &structure.conduit), "has the label \"conduit\" already");
    refused(recording.pipe("another", basin.pipe()), "has the label \"basin\" already");
    recording.pipe("another", pipe).expect("neither was taken by what was refused");
    let elsewhere = Structure::new(circuit(RunBy::Waiters));
    refused(recording.conduit("elsewhere", &elsewhere.conduit), "which is recorded");
    refused(recording.subscriber("elsewhere", &elsewhere.subscriber), "which is recorded");
}
