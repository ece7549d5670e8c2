//! Journals of every version of the format can be read: `tests/data` has one of each version, and
//! what was observed when it was recorded.
//!
//! With `RECORD_JOURNAL=1` in the environment, the test records the journal of the present version
//! again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::labels::Labels;
use tidemark_circuit::operator::Plan;
use tidemark_circuit::{
    Bank, Basin, Capture, Circuit, Conduit, Fiber, Flow, Name, Pipe, Port, Recording, Registrar, Replay,
    Reservoir, RunBy, Sink, Subject, Subscriber, Subscription, Tap, name,
};

/// The version that is written.
const PRESENT: u32 = 4;

/// Everything that a journal records: names, randomness, time, subscriptions and closes; from
/// version 2 on also requests to ports and basins, and callbacks at the end of subscriptions; from
/// version 3 on also captures, and taps and reservoirs that are made during the recording; from
/// version 4 on also closes of banks.
struct Structure {
    circuit: Circuit,
    topics: Conduit<(u32, String)>,
    samples: Pipe<f64>,
    all: Subscriber<(u32, String)>,
    level: Port<i64>,
    newest: Basin<i64>,
    end: Pipe<i64>,
    first: Subscription<i64>,
    levels: Conduit<i64>,
    captures: Pipe<Capture<i64>>,
    sink: Sink<i64>,
    /// Subscriber of the taps' conduits.
    listener: Subscriber<i64>,
    bank: Bank<i64>,
    /// Asks the bank from inside for a conduit of this name.
    asking: Pipe<Name>,
    seen: Arc<Mutex<String>>,
}

fn note(seen: &Arc<Mutex<String>>, line: &str) {
    let mut seen = seen.lock().expect("no panic");
    seen.push_str(line);
    seen.push('\n');
}

impl Structure {
    fn new(circuit: Circuit) -> Self {
        let seen = Arc::new(Mutex::new(String::new()));
        let log = Arc::clone(&seen);
        let all = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, (u32, String)>| {
                let (name, log) = (subject.name(), Arc::clone(&log));
                registrar.receptor(move |value| note(&log, &format!("{name} {value:?}")));
            })
            .expect("open");
        let log = Arc::clone(&seen);
        let end = circuit.pipe(move |value: f64| note(&log, &format!("{value}"))).expect("open");
        let fiber = Fiber::<f64>::new().chance(0.5).expect("valid");
        let samples =
            fiber.every_duration(Duration::from_millis(2)).expect("valid").pipe(&end).expect("open");
        let topics = circuit.conduit().expect("open");
        let (level, newest) = (circuit.port(10).expect("open"), circuit.basin(2).expect("valid"));
        let log = Arc::clone(&seen);
        let end = circuit.pipe(move |value: i64| note(&log, &format!("end {value}"))).expect("open");
        let levels = circuit.conduit().expect("open");
        let mirror = end.clone();
        let early = circuit
            .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, i64>| registrar.pipe(&mirror))
            .expect("open");
        let first = levels.subscribe(&early).expect("open");
        let log = Arc::clone(&seen);
        let captures = circuit
            .pipe(move |capture: Capture<i64>| {
                let (from, by) = (capture.subject(), capture.current());
                note(&log, &format!("{} of {from} by {by}", capture.emission()));
            })
            .expect("open");
        let sink = circuit.sink(&captures).expect("open");
        let log = Arc::clone(&seen);
        let listener = circuit
            .subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, i64>| {
                let (name, log) = (subject.name(), Arc::clone(&log));
                registrar.receptor(move |value| note(&log, &format!("{name} tapped {value}")));
            })
            .expect("open");
        let bank = circuit.bank::<i64>().expect("open");
        let (asked, log) = (bank.clone(), Arc::clone(&seen));
        let asking = circuit
            .pipe(move |name: Name| {
                let answer = if asked.get(name).is_ok() { "has" } else { "refuses" };
                note(&log, &format!("the bank {answer} {name}"));
            })
            .expect("open");
        Self {
            circuit,
            topics,
            samples,
            all,
            level,
            newest,
            end,
            first,
            levels,
            captures,
            sink,
            listener,
            bank,
            asking,
            seen,
        }
    }

    fn label(&self, mut labels: Labels<'_, '_>) {
        labels.conduit("topics", &self.topics);
        labels.pipe("samples", &self.samples);
        labels.subscriber("all", &self.all);
        labels.port("level", &self.level);
        labels.basin("newest", &self.newest);
        labels.pipe("end", &self.end);
        labels.subscription("first", &self.first);
        labels.conduit("levels", &self.levels);
        labels.pipe("captures", &self.captures);
        labels.sink("sink", &self.sink);
        labels.subscriber("listener", &self.listener);
        labels.bank("bank", &self.bank);
        labels.pipe("asking", &self.asking);
    }

    /// The callback for the end of a subscription.
    fn on_close(&self) -> impl Fn(&Subscription<(u32, String)>) + Send + Sync + 'static {
        let end = self.end.clone();
        move |_| end.emit(-1)
    }

    /// The flow of the tap that is made during the recording.
    fn tapping() -> Flow<i64, i64, impl Plan<i64, Out = i64> + Clone> {
        Flow::new().map(|level: i64| level * 3)
    }

    fn play(&self) -> Reservoir<i64> {
        let subscription = self.topics.subscribe(&self.all).expect("open");
        for number in 0..12_u32 {
            self.topics.get(name!("a.b")).emit((number, "é".repeat(number as usize % 3)));
            self.samples.emit(f64::from(number) / 4.0);
            thread::sleep(Duration::from_millis(1));
        }
        subscription.close();
        self.topics.get(name!("a")).emit((99, "unheard".to_owned()));
        self.topics.subscribe(&self.all).expect("open");
        self.topics.get(name!("a")).emit((100, "heard".to_owned()));
        self.topics.subscribe_with(&self.all, self.on_close()).expect("open");
        self.ask();
        let reservoir = self.watch();
        self.asking.emit(name!("eu"));
        self.bank.close();
        self.asking.emit(name!("eu"));
        self.asking.emit(name!("us"));
        self.all.close();
        self.topics.close();
        self.circuit.close();
        reservoir
    }

    fn watch(&self) -> Reservoir<i64> {
        let tap: Tap<i64, i64> = self.levels.tap(&Self::tapping()).expect("open");
        tap.conduit().subscribe(&self.listener).expect("open");
        let reservoir = tap.conduit().reservoir(2).expect("valid");
        (1..=3).for_each(|level| self.levels.get(name!("watched")).emit(level));
        self.sink.get(name!("here")).emit(8);
        thread::scope(|scope| {
            let away = thread::Builder::new().name("away".to_owned());
            away.spawn_scoped(scope, || self.sink.get(name!("there")).emit(9)).expect("a thread");
        });
        tap.close();
        self.levels.get(name!("watched")).emit(4);
        reservoir
    }

    /// Notes what a reservoir holds.
    fn note_kept(&self, reservoir: &Reservoir<i64>) {
        for capture in reservoir.drain() {
            note(&self.seen, &format!("{} kept {}", capture.name(), capture.emission()));
        }
    }

    fn ask(&self) {
        self.level.emit(&self.end);
        self.level.update(|level| level * 7);
        self.level.emit(self.levels.get(name!("before")));
        self.first.close();
        self.level.emit(self.levels.get(name!("after")));
        self.level.filter_update(|_| None);
        self.level.update(|_| std::panic::resume_unwind(Box::new("no")));
        self.level.emit(self.newest.pipe());
        self.level.replace(-5);
        self.level.emit(self.newest.pipe());
        self.newest.pipe().emit(6);
        self.newest.drain(&self.end);
    }
}

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

/// Records a journal; returns it, and what was observed.
fn record() -> (Vec<u8>, String) {
    let circuit = Circuit::builder().run_by(RunBy::Thread).seed(42).build().expect("a thread");
    let structure = Structure::new(circuit);
    let recording = Recording::new(&structure.circuit, Vec::new());
    structure.label(Labels::Recorded(&recording));
    recording.begin().expect("open");
    let reservoir = structure.play();
    let journal = recording.finish().expect("memory does not fail");
    structure.note_kept(&reservoir);
    let seen = structure.seen.lock().expect("no panic").clone();
    (journal, seen)
}

fn replay(journal: &[u8]) -> String {
    let mut replay = Replay::new(journal).expect("a journal");
    let circuit = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build().expect("valid");
    let structure = Structure::new(circuit);
    structure.label(Labels::Replayed(&mut replay));
    replay.on_close("topics", "all", structure.on_close());
    replay.tapped("levels", &structure.levels, &Structure::tapping()).expect("open");
    let (sender, reservoirs) = mpsc::channel();
    replay.on_reservoir::<i64, _>("levels#1", move |reservoir| sender.send(reservoir).expect("received"));
    assert!(replay.run(&structure.circuit).expect("as recorded").complete);
    reservoirs.try_iter().for_each(|reservoir| structure.note_kept(&reservoir));
    structure.seen.lock().expect("no panic").clone()
}

#[test]
fn journals_of_all_versions_are_observed_again() {
    if std::env::var_os("RECORD_JOURNAL").is_some() {
        let (journal, seen) = record();
        std::fs::write(data(&format!("journal-{PRESENT}")), journal).expect("written");
        std::fs::write(data(&format!("journal-{PRESENT}.txt")), seen).expect("written");
    }
    for version in 1..=PRESENT {
        let journal = std::fs::read(data(&format!("journal-{version}"))).expect("it is there");
        let seen = std::fs::read_to_string(data(&format!("journal-{version}.txt"))).expect("it is there");
        assert!(seen.lines().count() > 14, "there is something to see");
        assert_eq!(replay(&journal), seen, "version {version}");
    }
}

#[test]
fn what_is_recorded_now_is_of_the_present_version() {
    let (journal, seen) = record();
    let kept = std::fs::read(data(&format!("journal-{PRESENT}"))).expect("it is there");
    assert_eq!(journal.split(|byte| *byte == b'\n').next(), kept.split(|byte| *byte == b'\n').next());
    assert_eq!(replay(&journal), seen);
}
