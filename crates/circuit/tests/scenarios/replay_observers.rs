//! Parts that are made during a recording, and captures that enter the circuit, exist again in a
//! replay.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::labels::Labels;
use proptest::prelude::*;
use tidemark_circuit::{
    Basin, Capture, Circuit, Conduit, Fault, Flow, Name, Pipe, Recording, Registrar, Replay, ReplayError,
    Reservoir, RunBy, Sink, Subject, Subscriber, Tap, name,
};

fn circuit(run_by: RunBy) -> Circuit {
    Circuit::builder().run_by(run_by).build().expect("valid")
}

type Seen = Arc<Mutex<Vec<String>>>;

fn note(seen: &Seen, text: String) {
    seen.lock().expect("no panic").push(text);
}

/// A conduit with taps and reservoirs while it is in use, and parts that capture into the circuit.
struct Structure {
    circuit: Circuit,
    levels: Conduit<i64>,
    /// Notes the outputs of taps.
    listener: Subscriber<i64>,
    near: Sink<i64>,
    far: Sink<i64>,
    newest: Basin<Capture<i64>>,
    /// The end of all captures.
    end: Pipe<Capture<i64>>,
    early: Tap<i64, i64>,
    kept: Mutex<Option<Reservoir<i64>>>,
    seen: Seen,
}

fn by(factor: i64) -> Flow<i64, i64, impl tidemark_circuit::operator::Plan<i64, Out = i64> + Clone> {
    Flow::new().map(move |value: i64| value.wrapping_mul(factor))
}

impl Structure {
    fn new(circuit: Circuit) -> Self {
        let seen = Seen::default();
        let (log, levels) = (Arc::clone(&seen), circuit.conduit::<i64>().expect("open"));
        let listener = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, i64>| {
                let (name, log) = (subject.name(), Arc::clone(&log));
                note(&log, format!("discovered {name}"));
                registrar.receptor(move |value: i64| note(&log, format!("{name} {value}")));
            })
            .expect("open");
        let (log, mut before) = (Arc::clone(&seen), Vec::<Capture<i64>>::new());
        let sinks = Arc::new(Mutex::new(Vec::<Sink<i64>>::new()));
        let (own, level) = (Arc::clone(&sinks), levels.get(name!("captured")).clone());
        let itself = circuit.current().clone();
        let end = circuit
            .pipe(move |capture: Capture<i64>| {
                let own = own.lock().expect("no panic");
                let of = own.iter().map(|sink| {
                    let is_of_sink = capture.subject().enclosure() == Some(sink.subject());
                    (is_of_sink, capture.subject() == sink.get(capture.name()).subject())
                });
                // Everything by which a receptor could distinguish captures.
                let like = before.iter().map(|other: &Capture<i64>| {
                    (other.subject() == capture.subject(), other.current() == capture.current())
                });
                let (of, like) = (of.collect::<Vec<_>>(), like.collect::<Vec<_>>());
                let is_own = *capture.current() == itself;
                let said = (capture.subject().to_string(), capture.current().to_string());
                note(&log, format!("{} {said:?} {of:?} {like:?} {is_own}", capture.emission()));
                level.emit(*capture.emission());
                before.push(capture);
            })
            .expect("open");
        let newest = circuit.basin(3).expect("valid");
        let (near, far) = (circuit.sink(&end).expect("open"), circuit.sink(newest.pipe()).expect("open"));
        sinks.lock().expect("no panic").extend([near.clone(), far.clone()]);
        let early = levels.tap(&by(2)).expect("open");
        early.conduit().subscribe(&listener).expect("open");
        let kept = Mutex::new(Some(levels.reservoir(4).expect("valid")));
        Self { circuit, levels, listener, near, far, newest, end, early, kept, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }

    fn label(&self, mut labels: Labels<'_, '_>) {
        labels.conduit("levels", &self.levels);
        labels.subscriber("listener", &self.listener);
        labels.pipe("end", &self.end);
        labels.basin("newest", &self.newest);
        labels.sink("near", &self.near);
        labels.sink("far", &self.far);
        labels.tap("early", &self.early);
        labels.reservoir("kept", self.kept.lock().expect("no panic").as_ref().expect("it is there"));
    }

    fn record(&self) -> Result<Recording<Vec<u8>>, Fault> {
        let recording = Recording::new(&self.circuit, Vec::new());
        self.label(Labels::Recorded(&recording));
        recording.begin()?;
        Ok(recording)
    }

    /// Replays the journal on a twin; returns what it observed, and what its reservoirs hold, in
    /// the order in which they were made.
    fn replay(journal: &[u8], taps: &[(String, i64)]) -> Result<(Vec<String>, Vec<Vec<Said>>), ReplayError> {
        let mut replay = Replay::new(journal)?;
        let twin = Self::new(circuit(RunBy::Owner));
        twin.label(Labels::Replayed(&mut replay));
        let mut known = vec![("levels".to_owned(), twin.levels.clone())];
        let reservoirs: Arc<Mutex<Vec<Reservoir<i64>>>> = Arc::default();
        for (source, factor) in taps {
            let of = known.iter().find(|(label, _)| label == source).expect("made before").1.clone();
            let tap = replay.tapped(source, &of, &by(*factor)).expect("open");
            let count = known.iter().filter(|(label, _)| is_tap_of(label, source)).count();
            known.push((format!("{source}#{}", count + 1), tap.conduit().clone()));
        }
        known.push(("early".to_owned(), twin.early.conduit().clone()));
        for (label, _) in &known {
            let reservoirs = Arc::clone(&reservoirs);
            replay.on_reservoir::<i64, _>(label, move |reservoir| {
                reservoirs.lock().expect("no panic").push(reservoir);
            });
        }
        let replayed = replay.run(&twin.circuit)?;
        assert!(replayed.complete);
        let held =
            reservoirs.lock().expect("no panic").iter().map(|reservoir| said(reservoir.drain())).collect();
        Ok((twin.seen(), held))
    }
}

fn is_tap_of(label: &str, source: &str) -> bool {
    label.strip_prefix(source).and_then(|rest| rest.strip_prefix('#')).is_some_and(|rest| !rest.contains('#'))
}

impl Drop for Structure {
    fn drop(&mut self) {
        self.circuit.close();
    }
}

/// The name and value of a capture in a reservoir.
type Said = (Name, i64);

fn said(captures: Vec<Capture<i64>>) -> Vec<Said> {
    captures.into_iter().map(|capture| (capture.name(), *capture.emission())).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Level(u8, i64),
    /// From the caller's thread, or from another one.
    Capture {
        far: bool,
        away: bool,
        name: u8,
        value: i64,
    },
    /// A capture that a reservoir took in the circuit enters again.
    Again,
    Drain,
    /// Taps the conduit, or a tap's conduit.
    Tap(u8, i64),
    CloseTap(u8),
    CloseEarly,
    /// Subscribes to the conduit of a tap.
    Listen(u8),
    /// Adds a reservoir to the conduit, or to a tap's conduit.
    Keep(u8, usize),
    DrainKept(u8),
    DropKept(u8),
    DropEarlyKept,
    CloseLevels,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..3_u8, any::<i64>()).prop_map(|(name, value)| Step::Level(name, value)),
        12 => (any::<bool>(), any::<bool>(), 0..3_u8, any::<i64>())
            .prop_map(|(far, away, name, value)| Step::Capture { far, away, name, value }),
        3 => Just(Step::Again),
        4 => Just(Step::Drain),
        4 => (any::<u8>(), -5..5_i64).prop_map(|(of, factor)| Step::Tap(of, factor)),
        2 => any::<u8>().prop_map(Step::CloseTap),
        1 => Just(Step::CloseEarly),
        4 => any::<u8>().prop_map(Step::Listen),
        4 => (any::<u8>(), 1..5_usize).prop_map(|(of, capacity)| Step::Keep(of, capacity)),
        4 => any::<u8>().prop_map(Step::DrainKept),
        2 => any::<u8>().prop_map(Step::DropKept),
        1 => Just(Step::DropEarlyKept),
        1 => Just(Step::CloseLevels),
    ]
}

/// Parts that are made during the recording.
#[derive(Default)]
struct Made {
    /// The taps with their labels.
    taps: Vec<(String, Tap<i64, i64>)>,
    /// The source of each tap, and its factor.
    sources: Vec<(String, i64)>,
    reservoirs: Vec<Option<Reservoir<i64>>>,
    /// The capacity of each reservoir, and what was drained from it.
    drained: Vec<(usize, Vec<Said>)>,
}

impl Made {
    /// The conduit, or one of a tap, with its label.
    fn conduit<'a>(&'a self, structure: &'a Structure, of: u8) -> (String, &'a Conduit<i64>) {
        match usize::from(of) % (self.taps.len() + 2) {
            0 => ("levels".to_owned(), &structure.levels),
            1 => ("early".to_owned(), structure.early.conduit()),
            other => (self.taps[other - 2].0.clone(), self.taps[other - 2].1.conduit()),
        }
    }

    fn play(&mut self, structure: &Structure, step: &Step) {
        let topic = |number: u8| Name::new(&format!("level.{number}")).expect("valid");
        match *step {
            Step::Level(name, value) => structure.levels.get(topic(name)).emit(value),
            Step::Capture { far, away, name, value } => {
                let sink = if far { &structure.far } else { &structure.near };
                let emit = || sink.get(topic(name)).emit(value);
                if away {
                    thread::scope(|scope| drop(scope.spawn(emit).join()));
                } else {
                    emit();
                }
            }
            Step::Again => {
                let kept = structure.kept.lock().expect("no panic");
                structure.circuit.settle().expect("outside");
                let captures = kept.as_ref().map(Reservoir::drain).unwrap_or_default();
                captures.into_iter().for_each(|capture| structure.end.emit(capture));
            }
            Step::Drain => structure.newest.drain(&structure.end),
            Step::CloseEarly => structure.early.close(),
            Step::DropEarlyKept => drop(structure.kept.lock().expect("no panic").take()),
            Step::CloseLevels => structure.levels.close(),
            _ => self.play_made(structure, step),
        }
    }

    fn play_made(&mut self, structure: &Structure, step: &Step) {
        let chosen = |index: u8, length: usize| (length > 0).then(|| usize::from(index) % length.max(1));
        match *step {
            Step::Tap(of, factor) => {
                let (label, conduit) = self.conduit(structure, of);
                if label == "early" {
                    return;
                }
                let Ok(tap) = conduit.tap(&by(factor)) else { return };
                let count = self.taps.iter().filter(|(known, _)| is_tap_of(known, &label)).count();
                self.taps.push((format!("{label}#{}", count + 1), tap));
                self.sources.push((label, factor));
            }
            Step::CloseTap(index) => {
                if let Some(index) = chosen(index, self.taps.len()) {
                    self.taps[index].1.close();
                }
            }
            Step::Listen(of) => {
                // The conduit may be closed; the refusal is a valid answer too.
                drop(self.conduit(structure, of).1.subscribe(&structure.listener));
            }
            Step::Keep(of, capacity) => {
                if let Ok(reservoir) = self.conduit(structure, of).1.reservoir(capacity) {
                    self.drained.push((capacity, Vec::new()));
                    self.reservoirs.push(Some(reservoir));
                }
            }
            Step::DrainKept(index) => {
                if let Some(index) = chosen(index, self.reservoirs.len()) {
                    self.drain(index);
                }
            }
            Step::DropKept(index) => {
                if let Some(index) = chosen(index, self.reservoirs.len()) {
                    structure.circuit.settle().expect("outside");
                    self.drain(index);
                    self.reservoirs[index] = None;
                }
            }
            ref other => unreachable!("{other:?} is of the structure"),
        }
    }

    fn drain(&mut self, index: usize) {
        let captures = self.reservoirs[index].as_ref().map(Reservoir::drain).unwrap_or_default();
        self.drained[index].1.extend(said(captures));
    }
}

/// Whether `end` is the end of `whole`, and as long as the capacity allows.
fn is_end_of<T: PartialEq + Debug>(end: &[T], capacity: usize, whole: &[T]) -> bool {
    whole.ends_with(end) && (end.len() == whole.len() || end.len() == capacity)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_made_and_captured_meanwhile_is_observed_again(steps in prop::collection::vec(step(), 0..100)) {
        for run_by in [RunBy::Waiters, RunBy::Thread, RunBy::SharedPool] {
            let structure = Structure::new(circuit(run_by));
            let recording = structure.record().expect("its own");
            let mut made = Made::default();
            steps.iter().for_each(|step| made.play(&structure, step));
            let journal = recording.finish().expect("memory does not fail");
            let observed = structure.seen();
            (0..made.reservoirs.len()).for_each(|index| made.drain(index));
            let (again, held) = Structure::replay(&journal, &made.sources).expect("as recorded");
            prop_assert_eq!(observed, again);
            prop_assert_eq!(held.len(), made.drained.len());
            for (held, (capacity, drained)) in held.iter().zip(&made.drained) {
                // Captures that the original lost, because the test did not drain the reservoir in
                // time, cannot be compared.
                prop_assert!(is_end_of(held, *capacity, drained) || drained.len() < held.len(), "{held:?} {drained:?}");
            }
        }
    }
}

#[test]
fn a_reservoir_that_is_made_and_dropped_meanwhile_is_no_gap() {
    let one = circuit(RunBy::Waiters);
    let conduit = one.conduit::<u64>().expect("open");
    let recording = Recording::new(&one, Vec::new());
    recording.conduit("conduit", &conduit).expect("its own");
    recording.begin().expect("open");
    drop(conduit.reservoir(3).expect("open"));
    conduit.get(name!("a")).emit(1);
    let journal = recording.finish().expect("memory does not fail");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = circuit(RunBy::Owner);
    replay.conduit("conduit", &twin.conduit::<u64>().expect("open"));
    assert_eq!(replay.run(&twin).expect("as recorded").inputs, 3);
}

/// A value that counts its copies.
#[derive(Debug)]
struct Counted(Arc<Mutex<u32>>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        *self.0.lock().expect("no panic") += 1;
        Self(Arc::clone(&self.0))
    }
}

impl tidemark_circuit::Recorded for Counted {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut &[u8]) -> Option<Self> {
        COPIES.with(|copies| Some(Self(Arc::clone(copies))))
    }
}

thread_local! {
    static COPIES: Arc<Mutex<u32>> = Arc::default();
}

#[test]
fn a_replayed_reservoir_without_an_owner_gets_each_value_and_keeps_none() {
    let (one, copies) = (circuit(RunBy::Waiters), Arc::new(Mutex::new(0)));
    let conduit = one.conduit::<Counted>().expect("open");
    let recording = Recording::new(&one, Vec::new());
    recording.conduit("conduit", &conduit).expect("its own");
    recording.begin().expect("open");
    let reservoirs: Vec<_> = (0..3).map(|_| conduit.reservoir(1).expect("valid")).collect();
    (0..5).for_each(|_| conduit.get(name!("a")).emit(Counted(Arc::clone(&copies))));
    let journal = recording.finish().expect("memory does not fail");
    assert_eq!((*copies.lock().expect("no panic"), reservoirs.len()), (10, 3));

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = circuit(RunBy::Owner);
    replay.conduit("conduit", &twin.conduit::<Counted>().expect("open"));
    replay.run(&twin).expect("as recorded");
    let copies = COPIES.with(Arc::clone);
    assert_eq!(*copies.lock().expect("no panic"), 10);
    // One reference is here, and one with the thread.
    assert_eq!(Arc::strong_count(&copies), 2, "nothing is kept");
}

#[test]
fn a_tap_that_is_made_meanwhile_must_be_given_to_the_replay() {
    let one = circuit(RunBy::Waiters);
    let conduit = one.conduit::<i64>().expect("open");
    let recording = Recording::new(&one, Vec::new());
    recording.conduit("conduit", &conduit).expect("its own");
    recording.begin().expect("open");
    let tap = conduit.tap(&by(2)).expect("open");
    recording.conduit("conduit#1", tap.conduit()).expect("its own, before the circuit comes to it");
    one.settle().expect("outside");
    recording.conduit("conduit#1", tap.conduit()).expect("its own, behind that");
    tap.conduit().get(name!("a")).emit(1);
    let second = conduit.tap(&by(3)).expect("open");
    one.settle().expect("outside");
    let refused = recording.conduit("conduit#2", &conduit).expect_err("it is a tap's").to_string();
    assert!(refused.contains("conduit#2"), "{refused}");
    second.close();
    let unknown = one.conduit::<i64>().expect("open");
    let journal = recording.finish().expect("memory does not fail");

    let replay = |taps: usize| {
        let mut replay = Replay::new(&journal[..]).expect("a journal");
        let twin = circuit(RunBy::Owner);
        let conduit = twin.conduit::<i64>().expect("open");
        replay.conduit("conduit", &conduit);
        for tap in 1..=taps {
            let tapped = replay.tapped("conduit", &conduit, &by(2)).expect("open");
            if tap == 1 {
                replay.conduit("conduit#1", tapped.conduit());
            }
        }
        replay.run(&twin)
    };
    assert_eq!(replay(2).expect("as recorded").inputs, 5);
    assert!(matches!(replay(0), Err(ReplayError::UnknownLabel(label)) if label == "conduit#1"));
    assert!(matches!(replay(1), Err(ReplayError::UnknownLabel(label)) if label == "conduit#2"));

    let recording = Recording::new(&one, Vec::new());
    recording.begin().expect("open");
    unknown.tap(&by(2)).expect("open");
    let journal = recording.finish().expect("memory does not fail");
    let replayed = Replay::new(&journal[..]).expect("a journal").run(&circuit(RunBy::Owner));
    assert!(matches!(replayed, Err(ReplayError::Unlabelled(what)) if what.contains("a tap")));
}

#[test]
fn taps_are_counted_by_the_label_that_their_conduit_has_at_the_time() {
    let one = circuit(RunBy::Waiters);
    let conduit = one.conduit::<i64>().expect("open");
    let recording = Recording::new(&one, Vec::new());
    recording.conduit("a", &conduit).expect("its own");
    recording.begin().expect("open");
    let tap = conduit.tap(&by(2)).expect("open");
    tap.conduit().tap(&by(3)).expect("open");
    one.settle().expect("outside");
    recording.conduit("b", tap.conduit()).expect("its own");
    tap.conduit().tap(&by(5)).expect("open");
    let journal = recording.finish().expect("memory does not fail");

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = circuit(RunBy::Owner);
    let conduit = twin.conduit::<i64>().expect("open");
    replay.conduit("a", &conduit);
    let tap = replay.tapped("a", &conduit, &by(2)).expect("open");
    replay.tapped("a#1", tap.conduit(), &by(3)).expect("open");
    replay.conduit("b", tap.conduit());
    replay.tapped("b", tap.conduit(), &by(5)).expect("open");
    assert_eq!(replay.run(&twin).expect("as recorded").inputs, 3);
}

#[test]
fn what_comes_from_outside_to_the_conduit_of_a_tap_is_recorded_if_that_has_a_label() {
    let (sender, receiver) = mpsc::channel();
    let listen = |circuit: &Circuit, tap: &Tap<i64, i64>| {
        let sender = sender.clone();
        let listener = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, i64>| {
            let sender = sender.clone();
            registrar.receptor(move |value| sender.send(value).expect("received"));
        });
        tap.conduit().subscribe(&listener.expect("open")).expect("open");
    };
    let one = circuit(RunBy::Waiters);
    let conduit = one.conduit::<i64>().expect("open");
    let early = conduit.tap(&by(2)).expect("open");
    listen(&one, &early);
    let recording = Recording::new(&one, Vec::new());
    recording.conduit("conduit", &conduit).expect("its own");
    recording.tap("early", &early).expect("its own");
    recording.conduit("early", early.conduit()).expect("its own");
    recording.begin().expect("open");
    conduit.get(name!("a")).emit(1);
    early.conduit().get(name!("a")).emit(5);
    early.close();
    conduit.get(name!("a")).emit(7);
    let journal = recording.finish().expect("memory does not fail");
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [2, 5]);

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = circuit(RunBy::Owner);
    let conduit = twin.conduit::<i64>().expect("open");
    let early = conduit.tap(&by(2)).expect("open");
    listen(&twin, &early);
    replay.conduit("conduit", &conduit);
    replay.tap("early", &early);
    replay.conduit("early", early.conduit());
    replay.run(&twin).expect("as recorded");
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [2, 5]);
}

#[test]
fn a_sink_whose_endpoint_has_no_label_is_a_gap() {
    let one = circuit(RunBy::Waiters);
    let endpoint = one.pipe(|_: Capture<u64>| ()).expect("open");
    let sink = one.sink(&endpoint).expect("open");
    let recording = Recording::new(&one, Vec::new());
    recording.sink("sink", &sink).expect("its own");
    recording.begin().expect("open");
    sink.get(name!("a")).emit(1);
    let journal = recording.finish().expect("memory does not fail");
    let replay = |labels: bool| {
        let mut replay = Replay::new(&journal[..]).expect("a journal");
        let twin = circuit(RunBy::Owner);
        let sink = twin.sink(&twin.pipe(|_: Capture<u64>| ()).expect("open")).expect("open");
        if labels {
            replay.sink("sink", &sink);
        }
        replay.run(&twin)
    };
    assert!(matches!(replay(true), Err(ReplayError::Unlabelled(_))));
    assert!(matches!(replay(false), Err(ReplayError::UnknownLabel(label)) if label == "sink"));
}

#[test]
fn a_sink_that_is_labelled_meanwhile_is_itself_from_there_on() {
    let (sender, receiver) = mpsc::channel();
    let make = |circuit: &Circuit| {
        let (sender, own) = (sender.clone(), Arc::new(Mutex::new(None::<Sink<u64>>)));
        let of = Arc::clone(&own);
        let endpoint = circuit.pipe(move |capture: Capture<u64>| {
            let own = of.lock().expect("no panic").as_ref().map(|sink| sink.subject().clone());
            let is_own = own.as_ref() == capture.subject().enclosure();
            sender.send((capture.into_emission(), is_own)).expect("received");
        });
        let endpoint = endpoint.expect("open");
        let sink = circuit.sink(&endpoint).expect("open");
        *own.lock().expect("no panic") = Some(sink.clone());
        (endpoint, sink)
    };
    let one = circuit(RunBy::Waiters);
    let (endpoint, sink) = make(&one);
    let recording = Recording::new(&one, Vec::new());
    recording.pipe("endpoint", &endpoint).expect("its own");
    recording.begin().expect("open");
    // Until it has a label, the sink and its pipe are different subjects in the replay.
    sink.get(name!("a")).emit(0);
    one.settle().expect("outside");
    recording.sink("sink", &sink).expect("its own");
    sink.get(name!("a")).emit(1);
    sink.get(name!("b")).emit(2);
    let journal = recording.finish().expect("memory does not fail");
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(0, true), (1, true), (2, true)]);

    let mut replay = Replay::new(&journal[..]).expect("a journal");
    let twin = circuit(RunBy::Owner);
    let (endpoint, sink) = make(&twin);
    replay.pipe("endpoint", &endpoint);
    replay.sink("sink", &sink);
    assert_eq!(replay.run(&twin).expect("as recorded").inputs, 3);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(0, false), (1, true), (2, true)]);
    twin.close();
}

/// Gives a label to a part of the structure.
type Label = fn(&mut Replay<&[u8]>, &Structure);

#[test]
fn a_label_is_of_one_thing_of_the_circuit() {
    let recorded = Structure::new(circuit(RunBy::Waiters));
    let recording = Recording::new(&recorded.circuit, Vec::new());
    recording.begin().expect("open");
    let journal = recording.finish().expect("memory does not fail");
    let (one, other) = (Structure::new(circuit(RunBy::Owner)), Structure::new(circuit(RunBy::Owner)));
    let labels: [Label; 3] = [
        |replay, of| replay.tap("it", &of.early),
        |replay, of| replay.sink("it", &of.near),
        |replay, of| {
            let kept = of.kept.lock().expect("no panic");
            replay.reservoir("it", kept.as_ref().expect("it is there"));
        },
    ];
    let run = |label: &dyn Fn(&mut Replay<&[u8]>)| {
        let mut replay = Replay::new(&journal[..]).expect("a journal");
        label(&mut replay);
        replay.run(&one.circuit)
    };
    for label in labels {
        run(&|replay| label(replay, &one)).expect("one thing of the circuit");
        let twice = |replay: &mut Replay<&[u8]>| {
            label(replay, &one);
            label(replay, &one);
        };
        let error = run(&|replay| label(replay, &other)).expect_err("another circuit's");
        assert!(matches!(&error, ReplayError::Mislabelled(label) if label == "it"), "{error}");
        let error = run(&twice).expect_err("two things");
        assert!(matches!(&error, ReplayError::Mislabelled(label) if label == "it"), "{error}");
    }
    let tapped =
        |replay: &mut Replay<&[u8]>| drop(replay.tapped("of it", &other.levels, &by(1)).expect("open"));
    let error = run(&tapped).expect_err("another circuit's");
    assert!(matches!(&error, ReplayError::Mislabelled(label) if label == "of it#1"), "{error}");
}
