//! A recorded circuit can be made to do the same again, bit for bit.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tidemark_circuit::{
    Circuit, Conduit, Fiber, Name, Pipe, Recording, Registrar, Replay, ReplayError, RunBy, Subject,
    Subscriber,
};

/// A structure in which order, time, chance, names, subscriptions and cascades all show in what is observed.
struct Structure {
    circuit: Circuit,
    topics: Conduit<(u32, String)>,
    samples: Pipe<f64>,
    all: Subscriber<(u32, String)>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Structure {
    fn new(circuit: Circuit) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |seen: &Arc<Mutex<Vec<String>>>, text: String| seen.lock().expect("no panic").push(text);
        let topics = circuit.conduit::<(u32, String)>().expect("open");
        let (log, again) = (Arc::clone(&seen), topics.clone());
        let all = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, (u32, String)>| {
                let (name, log, again) = (subject.name(), Arc::clone(&log), again.clone());
                note(&log, format!("discovered {name}"));
                registrar.receptor(move |(number, text): (u32, String)| {
                    note(&log, format!("{name} {number} {text}"));
                    if number > 0 {
                        again.get(name).emit((number - 1, text));
                    }
                });
            })
            .expect("open");
        let log = Arc::clone(&seen);
        let end =
            circuit.pipe(move |value: f64| note(&log, format!("{:016x}", value.to_bits()))).expect("open");
        let fiber = Fiber::<f64>::new().chance(0.5).expect("valid");
        let fiber = fiber.every_duration(Duration::from_micros(50)).expect("valid");
        let samples = end.prepend(&fiber).expect("open");
        Self { circuit, topics, samples, all, seen }
    }

    fn record(&self) -> Recording<Vec<u8>> {
        let recording = Recording::begin(&self.circuit, Vec::new()).expect("open");
        recording.conduit("topics", &self.topics);
        recording.pipe("samples", &self.samples);
        recording.subscriber("all", &self.all);
        recording
    }

    fn replay(journal: &[u8]) -> Result<(Vec<String>, bool), ReplayError> {
        let mut replay = Replay::new(journal)?;
        let circuit = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build().expect("valid");
        let structure = Self::new(circuit);
        replay.conduit("topics", &structure.topics);
        replay.pipe("samples", &structure.samples);
        replay.subscriber("all", &structure.all);
        let replayed = replay.run(&structure.circuit)?;
        Ok((structure.observed(), replayed.complete))
    }

    fn observed(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }
}

fn name(number: u8) -> Name {
    Name::new(&format!("topic.{number}")).expect("valid")
}

#[derive(Clone, Debug)]
enum Step {
    Topic(u8, u32, String),
    Sample(f64),
    Subscribe,
    Unsubscribe,
    CloseSubscriber,
    CloseConduit,
    Pause,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..4_u8, 0..4_u32, "[a-zß]{0,4}").prop_map(|(topic, number, text)| Step::Topic(topic, number, text)),
        20 => any::<f64>().prop_map(Step::Sample),
        4 => Just(Step::Subscribe),
        3 => Just(Step::Unsubscribe),
        1 => Just(Step::CloseSubscriber),
        1 => Just(Step::CloseConduit),
        4 => Just(Step::Pause),
    ]
}

fn play(structure: &Structure, steps: &[Step]) {
    let mut subscriptions = Vec::new();
    for step in steps {
        match step {
            Step::Topic(topic, number, text) => {
                structure.topics.get(name(*topic)).emit((*number, text.clone()));
            }
            Step::Sample(value) => structure.samples.emit(*value),
            Step::Subscribe => subscriptions.extend(structure.topics.subscribe(&structure.all)),
            Step::Unsubscribe => drop(subscriptions.pop().map(|subscription| subscription.close())),
            Step::CloseSubscriber => structure.all.close(),
            Step::CloseConduit => structure.topics.close(),
            Step::Pause => thread::sleep(Duration::from_micros(30)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_was_recorded_is_observed_again(steps in prop::collection::vec(step(), 0..120), seed: u64) {
        for run_by in [RunBy::Waiters, RunBy::Thread, RunBy::SharedPool] {
            let circuit = Circuit::builder().run_by(run_by).seed(seed).build().expect("valid");
            let structure = Structure::new(circuit);
            let recording = structure.record();
            play(&structure, &steps);
            let journal = recording.finish().expect("memory does not fail");
            let observed = structure.observed();
            let (again, complete) = Structure::replay(&journal).expect("as recorded");
            prop_assert!(complete);
            prop_assert_eq!(observed, again);
        }
    }

    #[test]
    fn a_damaged_journal_is_an_error_or_a_shorter_replay(
        steps in prop::collection::vec(step(), 0..20), position: prop::sample::Index, bit in 0..8_u8, cut: bool,
    ) {
        let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
        let recording = structure.record();
        play(&structure, &steps);
        let mut journal = recording.finish().expect("memory does not fail");
        let observed = structure.observed();
        let position = position.index(journal.len());
        if cut {
            journal.truncate(position);
        } else {
            journal[position] ^= 1 << bit;
        }
        match Structure::replay(&journal) {
            Ok((again, complete)) => {
                prop_assert!(!complete);
                prop_assert!(observed.starts_with(&again), "{observed:?} {again:?}");
            }
            Err(error) => prop_assert!(matches!(error, ReplayError::NotAJournal | ReplayError::Damaged(_)), "{error}"),
        }
    }
}

#[test]
fn what_many_callers_did_at_once_is_observed_again() {
    for run_by in [RunBy::Thread, RunBy::SharedPool, RunBy::Waiters] {
        let circuit = Circuit::builder().run_by(run_by).seed(7).build().expect("valid");
        let structure = Structure::new(circuit);
        let recording = structure.record();
        thread::scope(|scope| {
            for caller in 0..3_u8 {
                let structure = &structure;
                scope.spawn(move || {
                    let mut lane = structure.circuit.lane().expect("open");
                    for round in 0..300_u32 {
                        let pipe = structure.topics.get(name(caller));
                        lane.emit(pipe, (round % 3, round.to_string()));
                        structure.samples.emit(f64::from(round));
                        if round % 50 == u32::from(caller) {
                            let subscription = structure.topics.subscribe(&structure.all).expect("open");
                            structure.circuit.settle().expect("outside");
                            subscription.close();
                        }
                    }
                });
            }
        });
        let journal = recording.finish().expect("memory does not fail");
        let observed = structure.observed();
        assert!(observed.len() > 100);
        assert_eq!(Structure::replay(&journal).expect("as recorded"), (observed, true));
    }
}

#[test]
fn a_circuit_that_is_closed_meanwhile_ends_its_journal() {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Thread).build().expect("valid"));
    let recording = structure.record();
    structure.topics.subscribe(&structure.all).expect("open");
    structure.topics.get(name(1)).emit((2, "x".to_owned()));
    structure.circuit.close();
    structure.topics.get(name(1)).emit((2, "late".to_owned()));
    let journal = recording.finish().expect("memory does not fail");
    let observed = structure.observed();
    assert_eq!(observed.len(), 4);
    assert_eq!(Structure::replay(&journal).expect("as recorded"), (observed, true));
}

#[test]
fn what_has_no_label_is_a_gap_that_the_replay_names() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let structure = Structure::new(circuit.clone());
    let recording = structure.record();
    let stranger = Name::new("stranger").expect("valid");
    circuit.named(stranger).pipe(|_: u8| ()).expect("open").emit(1);
    let journal = recording.finish().expect("memory does not fail");
    let error = Structure::replay(&journal).expect_err("a gap").to_string();
    assert!(error.contains("stranger") && error.contains("not recorded"), "{error}");
}

#[test]
fn a_replay_says_what_it_lacks() {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
    let recording = structure.record();
    structure.samples.emit(1.0);
    let journal = recording.finish().expect("memory does not fail");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let error = replay.run(&circuit).expect_err("nothing is labelled").to_string();
    assert!(error.contains("\"samples\""), "{error}");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let pipe = circuit.pipe(|_: u8| ()).expect("open");
    replay.pipe("samples", &pipe);
    assert!(matches!(replay.run(&circuit), Err(ReplayError::WrongType(label)) if label == "samples"));

    for circuit in [
        Circuit::builder().run_by(RunBy::Thread).build().expect("valid"),
        Circuit::builder().run_by(RunBy::Owner).seed(1).build().expect("valid"),
    ] {
        let mut replay = Replay::new(&journal[..]).expect("a journal");
        assert!(matches!(replay.run(&circuit), Err(ReplayError::WrongCircuit(_))));
    }
    assert!(matches!(Replay::new(&b"something else"[..]), Err(ReplayError::NotAJournal)));
}

/// A writer with room for so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| std::io::Error::other("the disk is full"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_fails_ends_the_recording_and_nothing_else() {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
    let recording = Recording::begin(&structure.circuit, Full(100)).expect("open");
    recording.conduit("topics", &structure.topics);
    recording.subscriber("all", &structure.all);
    assert!(Recording::begin(&structure.circuit, Vec::new()).is_err(), "it is recorded already");
    structure.topics.subscribe(&structure.all).expect("open");
    (0..50).for_each(|n| structure.topics.get(name(1)).emit((0, n.to_string())));
    let error = recording.finish().err().expect("the disk is full").to_string();
    assert!(error.contains("the disk is full"), "{error}");
    assert_eq!(structure.observed().len(), 51);
    assert!(Recording::begin(&structure.circuit, Vec::new()).is_ok(), "it can be recorded again");
}
