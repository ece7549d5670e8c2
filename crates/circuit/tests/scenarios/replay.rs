//! A replay makes a recorded circuit do the same again, bit for bit.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::frames::{crc32, frame, header};
use crate::labels::Labels;
use proptest::prelude::*;
use tidemark_circuit::{
    Basin, Cell, Circuit, Conduit, Failure, Fault, Fiber, Flow, Name, Pipe, Port, Recorded, Recording,
    Registrar, Replay, ReplayError, RunBy, Subject, Subscriber, Subscription,
};

/// A structure whose observations depend on order, time, randomness, names, subscriptions,
/// cascades, and requests to ports and basins, from outside and by the circuit itself.
struct Structure {
    circuit: Circuit,
    topics: Conduit<(u32, String)>,
    samples: Pipe<f64>,
    all: Subscriber<(u32, String)>,
    level: Port<i64>,
    levels: Conduit<i64>,
    newest: Basin<i64>,
    last: Cell<i64>,
    /// The end of all levels.
    end: Pipe<i64>,
    /// Makes the circuit subscribe to its own levels, or end the subscription.
    toggle: Pipe<bool>,
    /// Makes the circuit close itself.
    last_will: Pipe<()>,
    /// Makes the circuit close one of its own parts.
    closer: Pipe<u8>,
    /// The subscriber that `toggle` subscribes.
    second: Subscriber<i64>,
    /// A subscription that exists from the beginning.
    first: Subscription<i64>,
    _keeps: Pipe<()>,
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

        let (level, levels) = (circuit.port(1_i64).expect("open"), circuit.conduit::<i64>().expect("open"));
        let (newest, last) = (circuit.basin(3).expect("valid"), circuit.cell(0).expect("open"));
        let log = Arc::clone(&seen);
        // On every third level, the circuit itself asks its port and drains its basin.
        let itself = circuit.pipe(|_: i64| ()).expect("open");
        let (own, own_basin, next) = (level.clone(), newest.clone(), Arc::new(OnceLock::<Pipe<i64>>::new()));
        let known = Arc::clone(&next);
        let end = circuit
            .pipe(move |value: i64| {
                note(&log, format!("level {value}"));
                if value % 3 == 0 {
                    own.update(move |level| level.wrapping_add(value) | 1);
                    own.emit(own_basin.pipe());
                    own_basin.drain(&itself);
                    own.emit(known.get().expect("set before anything is emitted"));
                }
            })
            .expect("open");
        next.set(end.prepend(&Fiber::<i64>::new().limit(20)).expect("open")).expect("once");
        let mirror = |prefix: i64| {
            let end = end.clone();
            circuit
                .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, i64>| {
                    let end = end.clone();
                    registrar.receptor(move |value: i64| end.emit(value.wrapping_mul(prefix)));
                })
                .expect("open")
        };
        let log = Arc::clone(&seen);
        let first = levels
            .subscribe_with(&mirror(2), move |_: &Subscription<i64>| note(&log, "the first ended".to_owned()))
            .expect("open");
        let (second, source, mut begun) = (mirror(5), levels.clone(), Vec::new());
        let (log, mirrored, itself) = (Arc::clone(&seen), second.clone(), circuit.clone());
        // What a circuit finds closed depends on its place in the order, not on requests made from
        // outside meanwhile.
        let toggle = circuit
            .pipe(move |begins: bool| {
                note(&log, format!("closed: {} {}", source.is_closed(), itself.is_closed()));
                if begins {
                    match source.subscribe(&mirrored) {
                        Ok(subscription) => begun.push(subscription),
                        // Without the ids of the subjects: a replay has other ones.
                        Err(refused) => {
                            note(&log, refused.message().replace(|c: char| c.is_ascii_digit(), ""));
                        }
                    }
                } else if let Some(subscription) = begun.pop() {
                    subscription.close();
                }
            })
            .expect("open");
        let itself = circuit.clone();
        let last_will = circuit.pipe(move |()| itself.close()).expect("open");
        let own = (first.clone(), levels.clone(), topics.clone(), all.clone(), second.clone());
        let closer = circuit
            .pipe(move |what: u8| match what {
                0 => own.0.close(),
                1 => own.1.close(),
                2 => own.2.close(),
                3 => own.3.close(),
                _ => own.4.close(),
            })
            .expect("open");
        let log = Arc::clone(&seen);
        let failures = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
                let log = Arc::clone(&log);
                registrar.receptor(move |failure: Failure| {
                    note(&log, format!("{} failed: {}", failure.operation(), failure.message()));
                });
            })
            .expect("open");
        let faults = circuit.faults().expect("open");
        faults.subscribe(&failures).expect("open");
        let keep = faults.clone();
        // Failures are reported while a handle of their conduit exists.
        let all_of_it = circuit.pipe(move |()| drop(keep.clone())).expect("open");
        Self {
            circuit,
            topics,
            samples,
            all,
            level,
            levels,
            newest,
            last,
            end,
            toggle,
            last_will,
            closer,
            second,
            first,
            _keeps: all_of_it,
            seen,
        }
    }

    /// The callback for the end of a subscription.
    fn on_close(&self) -> impl Fn(&Subscription<(u32, String)>) + Send + Sync + 'static {
        let end = self.end.clone();
        move |_| end.emit(-7)
    }

    fn label(&self, mut labels: Labels<'_, '_>) {
        labels.conduit("topics", &self.topics);
        labels.pipe("samples", &self.samples);
        labels.subscriber("all", &self.all);
        labels.port("level", &self.level);
        labels.conduit("levels", &self.levels);
        labels.basin("newest", &self.newest);
        labels.pipe("last", self.last.pipe());
        labels.pipe("end", &self.end);
        labels.pipe("toggle", &self.toggle);
        labels.pipe("last will", &self.last_will);
        labels.pipe("closer", &self.closer);
        labels.subscriber("second", &self.second);
        labels.subscription("first", &self.first);
    }

    fn record(&self) -> Recording<Vec<u8>> {
        let recording = Recording::new(&self.circuit, Vec::new());
        self.label(Labels::Recorded(&recording));
        recording.begin().expect("open");
        recording
    }

    fn replay(journal: &[u8]) -> Result<(Vec<String>, bool), ReplayError> {
        let mut replay = Replay::new(journal)?;
        let circuit = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build().expect("valid");
        let structure = Self::new(circuit);
        structure.label(Labels::Replayed(&mut replay));
        replay.on_close("topics", "all", structure.on_close());
        let replayed = replay.run(&structure.circuit)?;
        Ok((structure.observed(), replayed.complete))
    }

    fn observed(&self) -> Vec<String> {
        let mut seen = self.seen.lock().expect("no panic").clone();
        // A cell's value is visible from outside.
        seen.push(format!("last {}", self.last.get()));
        seen
    }
}

impl Drop for Structure {
    fn drop(&mut self) {
        self.circuit.close();
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
    Level(i64),
    Update(Update),
    Send(Target),
    Fill(i64),
    Drain(Target),
    Toggle(bool),
    SubscribeWith,
    CloseFirst,
    CloseLevels,
    CloseSecond,
    /// The circuit closes one of its own parts.
    CloseInside(u8),
    LastWill,
    CloseCircuit,
}

#[derive(Clone, Copy, Debug)]
enum Update {
    Add(i64),
    Nothing,
    Panic(i64),
}

/// The targets of levels.
#[derive(Clone, Copy, Debug)]
enum Target {
    End,
    Level(u8),
    Newest,
    Last,
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        3 => Just(Target::End),
        3 => (0..3_u8).prop_map(Target::Level),
        1 => Just(Target::Newest),
        1 => Just(Target::Last),
    ]
}

fn update() -> impl Strategy<Value = Update> {
    prop_oneof![
        4 => (-9..9_i64).prop_map(Update::Add),
        1 => Just(Update::Nothing),
        1 => any::<i64>().prop_map(Update::Panic),
    ]
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
        6 => any::<i64>().prop_map(Step::Level),
        12 => update().prop_map(Step::Update),
        12 => target().prop_map(Step::Send),
        6 => any::<i64>().prop_map(Step::Fill),
        6 => target().prop_map(Step::Drain),
        6 => any::<bool>().prop_map(Step::Toggle),
        2 => Just(Step::SubscribeWith),
        1 => Just(Step::CloseFirst),
        1 => Just(Step::CloseLevels),
        1 => Just(Step::CloseSecond),
        4 => (0..5_u8).prop_map(Step::CloseInside),
        1 => Just(Step::LastWill),
        1 => Just(Step::CloseCircuit),
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
            Step::SubscribeWith => {
                let subscription = structure.topics.subscribe_with(&structure.all, structure.on_close());
                subscriptions.extend(subscription);
            }
            Step::Unsubscribe => drop(subscriptions.pop().map(|subscription| subscription.close())),
            Step::CloseSubscriber => structure.all.close(),
            Step::CloseConduit => structure.topics.close(),
            Step::Pause => thread::sleep(Duration::from_micros(30)),
            Step::CloseCircuit => structure.circuit.close(),
            _ => ask(structure, step),
        }
    }
}

fn ask(structure: &Structure, step: &Step) {
    let Structure { level, newest, .. } = structure;
    let pipe = |target: Target| match target {
        Target::End => &structure.end,
        Target::Level(number) => structure.levels.get(name(number)),
        Target::Newest => newest.pipe(),
        Target::Last => structure.last.pipe(),
    };
    match *step {
        Step::Level(value) => level.replace(value),
        Step::Update(Update::Add(value)) => level.update(move |level| level.wrapping_add(value)),
        Step::Update(Update::Nothing) => level.filter_update(|_| None),
        Step::Update(Update::Panic(value)) => {
            level.update(move |level| resume_unwind(Box::new(format!("{level} and {value}"))));
        }
        Step::Send(target) => level.emit(pipe(target)),
        Step::Fill(value) => newest.pipe().emit(value),
        Step::Drain(target) => newest.drain(pipe(target)),
        Step::Toggle(begins) => structure.toggle.emit(begins),
        Step::CloseFirst => structure.first.close(),
        Step::CloseLevels => structure.levels.close(),
        Step::CloseSecond => structure.second.close(),
        Step::CloseInside(what) => structure.closer.emit(what),
        Step::LastWill => structure.last_will.emit(()),
        ref other => unreachable!("{other:?} asks for nothing"),
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
            Ok((mut again, complete)) => {
                prop_assert!(!complete);
                // The last line is not an observation from the run itself.
                again.pop();
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
                        structure
                            .level
                            .update(move |level| level.wrapping_mul(31).wrapping_add(round.into()));
                        structure.level.emit(structure.newest.pipe());
                        if round % 20 == 0 {
                            structure.newest.drain(&structure.end);
                            structure.toggle.emit(round % 40 == 0);
                        }
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
    assert_eq!(observed.len(), 6);
    assert_eq!(Structure::replay(&journal).expect("as recorded"), (observed, true));
}

#[test]
fn a_circuit_that_closes_itself_is_recorded_to_its_end() {
    for run_by in [RunBy::Waiters, RunBy::Thread, RunBy::SharedPool] {
        let structure = Structure::new(Circuit::builder().run_by(run_by).build().expect("valid"));
        let recording = structure.record();
        structure.topics.subscribe_with(&structure.all, structure.on_close()).expect("open");
        structure.last_will.emit(());
        let journal = recording.finish().expect("memory does not fail");
        let observed = structure.observed();
        assert_eq!(observed[..2], ["the first ended", "level -7"]);
        assert_eq!(Structure::replay(&journal).expect("as recorded"), (observed, true));
    }
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
    assert!(error.contains("stranger#") && error.contains("label it before the next"), "{error}");
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

/// Records `act` and replays the journal; returns the replay's error, which reports the gap.
fn gap(
    label: impl FnOnce(&Circuit, &Recording<Vec<u8>>) -> Result<(), Fault>,
    circuit: &Circuit,
    act: impl FnOnce(),
) -> String {
    let recording = Recording::new(circuit, Vec::new());
    label(circuit, &recording).expect("its own");
    recording.begin().expect("open");
    act();
    let journal = recording.finish().expect("memory does not fail");
    let error = Structure::replay(&journal).expect_err("a gap");
    assert!(matches!(error, ReplayError::Unlabelled(_)), "{error}");
    error.to_string()
}

#[test]
fn the_close_of_a_bank_without_a_label_is_a_gap() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let bank = circuit.bank::<u64>().expect("open");
    bank.get("eu".parse::<Name>().expect("valid")).expect("open");
    assert!(gap(|_, _| Ok(()), &circuit, || bank.close()).contains("the close of a bank"));
}

#[test]
fn a_pipe_in_front_of_one_with_a_label_has_none() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let end = circuit.pipe(|_: String| ()).expect("open");
    // If the values of this pipe were taken for those of the next pipe, a number would be taken for
    // a text.
    let front = end.prepend(&Flow::<u64>::new().map(|number| number.to_string())).expect("open");
    let what = gap(|_, recording| recording.pipe("end", &end), &circuit, || front.emit(1));
    assert!(what.contains(&front.subject().to_string()), "{what}");
}

#[test]
fn an_update_that_does_more_than_make_a_value_is_a_gap() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let (port, pipe) = (circuit.port(1_u64).expect("open"), circuit.pipe(|_: u64| ()).expect("open"));
    let act = || {
        let pipe = pipe.clone();
        port.update(move |value| {
            pipe.emit(*value);
            value + 1
        });
    };
    let what = gap(|_, recording| recording.port("port", &port), &circuit, act);
    assert!(what.contains("does more than to make a value"), "{what}");
}

#[test]
fn a_target_without_a_label_is_a_gap() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let (port, basin) = (circuit.port(1_u64).expect("open"), circuit.basin(1).expect("valid"));
    let stranger = circuit.named(Name::new("stranger").expect("valid")).pipe(|_: u64| ()).expect("open");
    let what = gap(|_, recording| recording.port("port", &port), &circuit, || port.emit(&stranger));
    assert!(
        what.contains("pipe:stranger#") && what.contains("the target of") && what.contains("port:"),
        "{what}"
    );
    let what = gap(|_, recording| recording.basin("basin", &basin), &circuit, || basin.drain(&stranger));
    assert!(
        what.contains("pipe:stranger#") && what.contains("the target of") && what.contains("basin:"),
        "{what}"
    );
}

/// A value that cannot be written.
struct Unwritable;

impl Recorded for Unwritable {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(1);
        resume_unwind(Box::new("not this one"));
    }

    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(Self)
    }
}

#[test]
fn a_value_that_cannot_be_written_is_a_gap_and_a_failure() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let pipe = circuit.pipe(|_: Unwritable| ()).expect("open");
    let what = gap(|_, recording| recording.pipe("pipe", &pipe), &circuit, || pipe.emit(Unwritable));
    assert!(what.contains("panicked when it was to be written"), "{what}");
    assert_eq!(circuit.failures(), 1);
}

#[test]
fn what_a_circuit_does_to_itself_is_no_input() {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
    let recording = structure.record();
    structure.toggle.emit(true);
    structure.levels.get(name(0)).emit(1);
    structure.toggle.emit(false);
    structure.levels.get(name(0)).emit(1);
    structure.last_will.emit(());
    // Accepted before the circuit comes to close itself, so it is still handled.
    structure.levels.get(name(0)).emit(2);
    let journal = recording.finish().expect("memory does not fail");
    let observed = structure.observed();
    let open = "closed: false false";
    assert_eq!(observed[..6], [open, "level 2", "level 5", open, "level 2", "level 4"]);
    assert_eq!(Structure::replay(&journal).expect("as recorded"), (observed, true));
}

/// The observations of `act` in the original, after checking that the replay gives the same.
fn observed_twice(act: impl FnOnce(&Structure)) -> Vec<String> {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
    let recording = structure.record();
    act(&structure);
    let journal = recording.finish().expect("memory does not fail");
    let observed = structure.observed();
    assert_eq!(Structure::replay(&journal).expect("as recorded"), (observed.clone(), true));
    observed
}

#[test]
fn what_a_circuit_closes_ends_there_though_an_outside_thread_has_closed_it_meanwhile() {
    let observed = observed_twice(|structure| {
        structure.levels.get(name(0)).emit(1);
        structure.closer.emit(0);
        structure.levels.get(name(0)).emit(10);
        // Nothing is handled yet, and this comes last.
        structure.first.close();
    });
    assert_eq!(observed, ["level 2", "the first ended", "last 0"]);
    for (inside, outside) in [
        (1, (|structure| structure.levels.close()) as fn(&Structure)),
        (4, |structure| structure.second.close()),
    ] {
        let observed = observed_twice(|structure| {
            structure.toggle.emit(true);
            structure.closer.emit(inside);
            structure.levels.get(name(0)).emit(1);
            outside(structure);
        });
        assert!(!observed.contains(&"level 5".to_owned()), "{inside}: {observed:?}");
    }
}

#[test]
fn what_a_circuit_subscribes_is_refused_by_its_place_in_the_order() {
    let observed = observed_twice(|structure| {
        structure.toggle.emit(true);
        structure.levels.get(name(0)).emit(1);
        structure.levels.close();
        structure.circuit.close();
    });
    assert_eq!(observed, ["closed: false false", "level 2", "level 5", "the first ended", "last 0"]);
    let observed = observed_twice(|structure| {
        structure.closer.emit(1);
        structure.toggle.emit(true);
    });
    assert_eq!(observed[..2], ["the first ended", "closed: true false"]);
    assert!(observed[2].contains("the conduit is closed"), "{observed:?}");
    let observed = observed_twice(|structure| {
        structure.last_will.emit(());
        structure.toggle.emit(true);
    });
    assert_eq!(observed[0], "closed: true true");
    assert!(observed[1].contains("the conduit is closed"), "{observed:?}");
}

#[test]
fn a_subscribe_to_what_turns_out_to_be_closed_is_replayed() {
    for what in [2, 3] {
        let observed = observed_twice(|structure| {
            structure.closer.emit(what);
            // Nothing is handled yet, so no call could have been refused.
            structure.topics.subscribe(&structure.all).expect("open");
            structure.topics.subscribe_with(&structure.all, structure.on_close()).expect("open");
            structure.topics.get(name(1)).emit((0, "unheard".to_owned()));
        });
        assert_eq!(observed, ["level -7", "last 0"]);
    }
}

#[test]
fn what_is_called_at_the_end_of_a_subscription_must_be_given_to_the_replay() {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
    let recording = structure.record();
    structure.topics.subscribe_with(&structure.all, structure.on_close()).expect("open");
    let journal = recording.finish().expect("memory does not fail");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = Structure::new(Circuit::builder().run_by(RunBy::Owner).build().expect("valid"));
    replay.conduit("topics", &twin.topics);
    replay.subscriber("all", &twin.all);
    let error = replay.run(&twin.circuit).expect_err("it is not there");
    assert!(
        matches!(&error, ReplayError::NoCallback { conduit, subscriber } if conduit == "topics" && subscriber == "all"),
        "{error}"
    );
}

#[test]
fn what_is_called_at_the_end_of_a_subscription_is_known_by_conduit_and_subscriber() {
    let (sender, receiver) = mpsc::channel();
    let make = |circuit: &Circuit| {
        let (one, other) = (circuit.conduit::<u8>().expect("open"), circuit.conduit::<u8>().expect("open"));
        let nothing = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, u8>| ()).expect("open");
        (one, other, nothing)
    };
    let report = |what: &'static str| {
        let sender = sender.clone();
        move |_: &Subscription<u8>| sender.send(what).expect("heard")
    };
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let (one, other, nothing) = make(&circuit);
    let recording = Recording::new(&circuit, Vec::new());
    recording.conduit("one", &one).expect("its own");
    recording.conduit("other", &other).expect("its own");
    recording.subscriber("nothing", &nothing).expect("its own");
    recording.begin().expect("open");
    one.subscribe_with(&nothing, report("one")).expect("open");
    other.subscribe_with(&nothing, report("other")).expect("open");
    nothing.close();
    let journal = recording.finish().expect("memory does not fail");
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["one", "other"]);

    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let (one, other, nothing) = make(&circuit);
    let mut replay = Replay::new(&journal[..]).expect("a journal");
    replay.conduit("one", &one);
    replay.conduit("other", &other);
    replay.subscriber("nothing", &nothing);
    replay.on_close("one", "nothing", report("one"));
    replay.on_close("other", "nothing", report("other"));
    assert!(replay.run(&circuit).expect("as recorded").complete);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["one", "other"]);
}

#[test]
fn a_journal_of_another_version_is_distinguished_from_damage() {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
    let mut journal = structure.record().finish().expect("memory does not fail");
    let digit = journal.iter().position(|byte| *byte == b'\n').expect("a first line") - 1;
    journal[digit] = b'5';
    assert!(
        matches!(Replay::new(&journal[..]), Err(ReplayError::Damaged(0))),
        "the checksum is of version 4"
    );
    // The header of a future version: its text, a seed of zero, and the matching checksum.
    let header = b"tidemark circuit journal 5\n\0\0\0\0\0\0\0\0";
    let mut journal = header.to_vec();
    journal.extend(crc32(header).to_le_bytes());
    assert!(matches!(Replay::new(&journal[..]), Err(ReplayError::OtherVersion('5'))));
}

/// A writer with space for this many bytes.
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
    let recording = Recording::new(&structure.circuit, Full(100));
    recording.conduit("topics", &structure.topics).expect("its own");
    recording.subscriber("all", &structure.all).expect("its own");
    recording.begin().expect("open");
    assert!(Recording::new(&structure.circuit, Vec::new()).begin().is_err(), "it is recorded already");
    structure.topics.subscribe(&structure.all).expect("open");
    (0..50).for_each(|n| structure.topics.get(name(1)).emit((0, n.to_string())));
    let error = recording.finish().err().expect("the disk is full").to_string();
    assert!(error.contains("the disk is full"), "{error}");
    assert_eq!(structure.observed().len(), 52);
    assert!(Recording::new(&structure.circuit, Vec::new()).begin().is_ok(), "it can be recorded again");
}

#[test]
fn nothing_is_behind_what_a_frame_says_nor_behind_the_end() {
    let structure = Structure::new(Circuit::builder().run_by(RunBy::Waiters).build().expect("valid"));
    let recording = structure.record();
    structure.samples.emit(1.0);
    let mut journal = recording.finish().expect("memory does not fail");
    let length = journal.len() as u64;
    Structure::replay(&journal).expect("whole");
    journal.push(0);
    assert!(matches!(Structure::replay(&journal), Err(ReplayError::Damaged(at)) if at == length));
    journal.pop();
    journal.extend(frame(9, &[1]));
    assert!(matches!(Structure::replay(&journal), Err(ReplayError::Damaged(at)) if at == length));

    let texts = ["levels", "second", "first", "level", "end"];
    let texts = || texts.iter().flat_map(|text| frame(1, text.as_bytes()));
    let frames: [(u8, &[u8]); 9] = [
        (2, &[0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
        (3, &[0, 0, 1, 0]),
        (5, &[0, 0]),
        (6, &[0, 1]),
        (7, &[0]),
        (9, &[0]),
        (10, &[0, 3, 1, 0, 0, 0, 0, 0, 0, 0]),
        (12, &[0, 3, 4, 0]),
        (14, &[0, 2]),
    ];
    for (kind, content) in frames {
        let journal: Vec<u8> = header().into_iter().chain(texts()).collect();
        let whole = [&journal[..], &frame(kind, content)].concat();
        Structure::replay(&whole).unwrap_or_else(|error| panic!("kind {kind}: {error}"));
        let more = [&journal[..], &frame(kind, &[content, &[0]].concat())].concat();
        let error = Structure::replay(&more).expect_err("there is something behind it");
        match kind {
            2 | 10 => assert!(matches!(error, ReplayError::WrongType(_)), "kind {kind}: {error}"),
            _ => assert!(
                matches!(error, ReplayError::Damaged(at) if at == journal.len() as u64),
                "kind {kind}: {error}"
            ),
        }
    }
}

/// A value that cannot be read.
#[derive(Clone)]
struct Unreadable;

impl Recorded for Unreadable {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut &[u8]) -> Option<Self> {
        resume_unwind(Box::new("not this one"))
    }
}

#[test]
fn a_replay_needs_an_open_circuit_and_leaves_it_as_any_other() {
    let journal = [header(), frame(1, b"pipe"), frame(2, &[0, 0, 0])].concat();
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let itself = circuit.clone();
    let pipe = circuit.pipe(move |_: Unreadable| itself.close()).expect("open");
    let mut replay = Replay::new(&journal[..]).expect("a journal");
    replay.pipe("pipe", &pipe);
    catch_unwind(AssertUnwindSafe(|| replay.run(&circuit))).expect_err("it cannot be read");
    pipe.emit(Unreadable);
    while circuit.run(1) {}
    assert!(circuit.is_closed(), "the circuit can close itself again");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    replay.pipe("pipe", &pipe);
    let error = replay.run(&circuit).expect_err("closed").to_string();
    assert!(error.contains("it is closed"), "{error}");
}

#[test]
fn a_circuit_cannot_be_replayed_into_while_it_runs() {
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let (itself, errors) = (circuit.clone(), Arc::new(Mutex::new(Vec::new())));
    let reported = Arc::clone(&errors);
    let pipe = circuit
        .pipe(move |()| {
            let journal = header();
            let mut replay = Replay::new(&journal[..]).expect("a journal");
            reported
                .lock()
                .expect("no panic")
                .extend(replay.run(&itself).err().map(|error| error.to_string()));
        })
        .expect("open");
    pipe.emit(());
    while circuit.run(1) {}
    circuit.close();
    assert!(errors.lock().expect("no panic").concat().contains("being run"));
}

/// Gives a label to a part of the structure.
type Label = fn(&mut Replay<&[u8]>, &Structure);

#[test]
fn a_label_is_of_one_thing_of_the_circuit() {
    let journal = header();
    let owned = || Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let (one, other) = (Structure::new(owned()), Structure::new(owned()));
    let labels: [Label; 6] = [
        |replay, of| replay.pipe("it", &of.samples),
        |replay, of| replay.conduit("it", &of.topics),
        |replay, of| replay.port("it", &of.level),
        |replay, of| replay.basin("it", &of.newest),
        |replay, of| replay.subscriber("it", &of.all),
        |replay, of| replay.subscription("it", &of.first),
    ];
    for label in labels {
        let run = |label: &dyn Fn(&mut Replay<&[u8]>)| {
            let mut replay = Replay::new(&journal[..]).expect("a journal");
            label(&mut replay);
            replay.run(&one.circuit)
        };
        run(&|replay| label(replay, &one)).expect("one thing of the circuit");
        let error = run(&|replay| label(replay, &other)).expect_err("another circuit's");
        assert!(matches!(&error, ReplayError::Mislabelled(label) if label == "it"), "{error}");
        let twice = |replay: &mut Replay<&[u8]>| {
            label(replay, &one);
            label(replay, &one);
        };
        let error = run(&twice).expect_err("two things");
        assert!(matches!(&error, ReplayError::Mislabelled(label) if label == "it"), "{error}");
    }
}

#[test]
fn a_replay_runs_once_on_any_thread() {
    let circuit = || Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let original = circuit();
    let pipe = original.discard::<u64>().expect("open");
    let recording = Recording::new(&original, Vec::new());
    recording.pipe("values", &pipe).expect("its own");
    recording.begin().expect("open");
    pipe.emit(7);
    while original.run(1) {}
    let journal = recording.finish().expect("memory does not fail");

    let twin = circuit();
    let cell = twin.cell(0_u64).expect("open");
    let mut replay = Replay::new(&journal[..]).expect("a journal");
    replay.pipe("values", cell.pipe());
    assert!(replay.run(&Circuit::new()).is_err(), "nothing was read for the wrong circuit");
    thread::scope(|scope| {
        let replay = &mut replay;
        let run = scope.spawn(|| replay.run(&twin)).join().expect("no panic");
        assert_eq!(run.expect("as recorded").inputs, 1);
    });
    assert_eq!(cell.get(), 7);
    let again = replay.run(&twin);
    assert!(matches!(again, Err(ReplayError::HasRun)), "{again:?}");
}
