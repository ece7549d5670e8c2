//! Writes journals.
#![allow(unsafe_code, reason = "values are looked at on their way from the queue to their node")]

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use super::frame::{self, Kind};
use super::label::{Asked, Labelled, Look, Role, look_at_request, look_at_target, look_at_value};
use super::recorded::{Recorded, write_number};
use super::recorder::Recorder;
use crate::circuit::{Circuit, RunBy};
use crate::error::Fault;
use crate::execution::event::{Event, Hearer};
use crate::failure::thrown::{message_of, shielded};
use crate::identity::extent::Extent;
use crate::identity::subject::{Id, Subject};
use crate::structure::bank::Bank;
use crate::structure::basin::Basin;
use crate::structure::conduit::Conduit;
use crate::structure::pipe::Pipe;
use crate::structure::port::Port;
use crate::structure::reservoir::Reservoir;
use crate::structure::sink::Sink;
use crate::structure::tap::Tap;
use crate::subscription::membership::Subscription;
use crate::subscription::subscriber::Subscriber;
use crate::sync::unpoisoned;

/// Writes the inputs of a circuit into a journal while they are handled.
///
/// A [`Replay`](crate::Replay) finds the counterparts of components by their labels. So label each
/// component that is emitted to, requested from, subscribed to or closed from outside the circuit,
/// and the targets of ports and basins. An input of a component without a label is recorded as a
/// gap, which a replay reports. For a cell, label its pipe ([`crate::Cell::pipe`]); for a ticker,
/// its target; pins cannot be reached from outside. A label stands for one component of this
/// circuit. Components made during the recording are labelled when they are made.
///
/// Taps and reservoirs made during the recording need no label of their own: they are identified by
/// the label of their conduit, see [`Replay::tapped`](crate::Replay::tapped) and
/// [`Replay::on_reservoir`](crate::Replay::on_reservoir). So are the streams of conduits (feature
/// `stream`), for which a replay has reservoirs. The conduit of the first tap of the component
/// labelled `a` has the label `a#1`, and so on, unless it is given another.
///
/// The writer is called in the circuit's context: a slow one slows the circuit down. It must not
/// emit to the circuit, which would be in no journal, nor label anything of this recording, which
/// would deadlock. If it fails or panics, recording ends and [`Recording::finish`] returns the
/// error; the circuit goes on. A recording that is dropped ends there, and its errors are lost.
///
/// ```
/// use std::sync::mpsc;
/// use tidemark_circuit::{Circuit, Error, Name, Recording, Replay, RunBy};
///
/// fn sums(circuit: &Circuit) -> Result<(tidemark_circuit::Pipe<u64>, mpsc::Receiver<u64>), Error> {
///     let (sender, receiver) = mpsc::channel();
///     let mut sum = 0;
///     let pipe = circuit.pipe(move |value: u64| {
///         sum += value;
///         sender.send(sum).unwrap();
///     })?;
///     Ok((pipe, receiver))
/// }
///
/// let circuit = Circuit::new();
/// let (pipe, first) = sums(&circuit)?;
/// let recording = Recording::new(&circuit, Vec::new());
/// recording.pipe("values", &pipe)?;
/// recording.begin()?;
/// (1..=3).for_each(|value| pipe.emit(value));
/// let journal = recording.finish()?;
///
/// let mut replay = Replay::new(&journal[..])?;
/// let circuit = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build()?;
/// let (pipe, second) = sums(&circuit)?;
/// replay.pipe("values", &pipe);
/// assert_eq!(replay.run(&circuit)?.inputs, 3);
/// assert!(first.try_iter().eq(second.try_iter()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a recording ends when it is dropped"]
pub struct Recording<W: Write + Send + 'static> {
    journal: Arc<Journal<W>>,
    circuit: Circuit,
}

struct Journal<W>(Mutex<RecordingState<W>>);

struct RecordingState<W> {
    /// None once the recording has ended.
    writer: Option<W>,
    failed: Option<io::Error>,
    phase: Phase,
    /// Numbers of texts.
    texts: HashMap<String, u64>,
    /// The subjects of labels.
    subjects: HashMap<String, Subject>,
    labels: HashMap<Id, Labelled>,
    /// Numbers of the subscriptions that began during the recording and were not closed
    /// individually.
    subscriptions: HashMap<Id, u64>,
    /// Number of subscriptions that have begun.
    begun: u64,
    /// Labels of the conduits of taps made during the recording, unless they were given one.
    taps: HashMap<Id, String>,
    /// Number of taps made during the recording, by the label of their source.
    tapped: HashMap<String, u64>,
    /// Labels and numbers of sinks, with the number of the circuit's own context, to be written
    /// when recording begins.
    sinks: Vec<(String, [u64; 2])>,
    inputs: u64,
    /// Time of the last input, in nanoseconds.
    time: u64,
    /// The frame that is being built.
    content: Vec<u8>,
    /// The value for it.
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is written.
    Before,
    /// Inputs are written.
    Open,
    /// The end is written, and nothing after it.
    Over,
}

impl<W: Write + Send + 'static> Recording<W> {
    /// Makes a recording that has not begun. Label the components that already get inputs before it
    /// begins.
    pub fn new(circuit: &Circuit, writer: W) -> Self {
        let state = RecordingState {
            writer: Some(writer),
            failed: None,
            phase: Phase::Before,
            texts: HashMap::new(),
            subjects: HashMap::new(),
            labels: HashMap::new(),
            subscriptions: HashMap::new(),
            begun: 0,
            taps: HashMap::new(),
            tapped: HashMap::new(),
            sinks: Vec::new(),
            inputs: 0,
            time: 0,
            content: Vec::new(),
            value: Vec::new(),
        };
        Self { journal: Arc::new(Journal(Mutex::new(state))), circuit: circuit.clone() }
    }

    /// Begins to record what the circuit handles from now on; the journal does not have what the
    /// caller emitted before. Fails if the circuit is closed, or is already recorded.
    pub fn begin(&self) -> Result<(), Fault> {
        let machine = self.circuit.machine();
        machine.check_open("record")?;
        if !machine.reserve_recording() {
            let message = "the circuit is being recorded already";
            return Err(Fault::new(self.circuit.subject().clone(), "record", message));
        }
        // Written first: the circuit may handle its first input immediately.
        self.journal.lock().begin(machine.seed());
        machine.begin_recording(Arc::<Journal<W>>::clone(&self.journal));
        Ok(())
    }

    /// Labels a conduit: emissions to its pipes, its subscriptions and its close are recorded.
    /// Fails, as do the methods below, if the label stands for something else, or if the conduit
    /// has another label or belongs to another circuit.
    pub fn conduit<E: Recorded + Clone + Send + 'static>(
        &self,
        label: &str,
        conduit: &Conduit<E>,
    ) -> Result<(), Fault> {
        self.label(conduit.subject(), label, Role::Conduit(look_at_value::<E>))
    }

    /// Labels a pipe: emissions to it are recorded.
    pub fn pipe<E: Recorded + Send + 'static>(&self, label: &str, pipe: &Pipe<E>) -> Result<(), Fault> {
        self.label(pipe.subject(), label, Role::Node(look_at_value::<E>))
    }

    /// Labels a port: requests to it are recorded, updates as the value that they make or the
    /// message of their panic. An update with another effect on the circuit, such as an emission,
    /// is a gap. Effects elsewhere, or on a [`crate::Pin`], are not detected and do not happen
    /// again in a replay.
    pub fn port<E>(&self, label: &str, port: &Port<E>) -> Result<(), Fault>
    where
        E: Recorded + Clone + Send + 'static,
    {
        self.label(port.subject(), label, Role::Node(look_at_request::<E>))
    }

    /// Labels a basin: emissions to its pipe, and the targets it is drained to, are recorded.
    pub fn basin<E: Recorded + Send + 'static>(&self, label: &str, basin: &Basin<E>) -> Result<(), Fault> {
        let (pipe, role) = (basin.pipe().subject(), Role::Node(look_at_value::<E>));
        self.label_all(
            label,
            basin.subject(),
            &[(basin.subject(), Role::Node(look_at_target::<E>)), (pipe, role)],
        )
    }

    /// Labels a bank: its close is recorded. Its conduits have labels of their own.
    pub fn bank<E: Clone + Send + 'static>(&self, label: &str, bank: &Bank<E>) -> Result<(), Fault> {
        self.label(bank.subject(), label, Role::Life)
    }

    /// Labels a subscriber: its subscriptions and its close are recorded.
    pub fn subscriber<E>(&self, label: &str, subscriber: &Subscriber<E>) -> Result<(), Fault>
    where
        E: Clone + Send + 'static,
    {
        self.label(subscriber.subject(), label, Role::Life)
    }

    /// Labels a subscription from before the recording: its close is recorded. Later ones need no
    /// label.
    pub fn subscription<E>(&self, label: &str, subscription: &Subscription<E>) -> Result<(), Fault>
    where
        E: Clone + Send + 'static,
    {
        self.label(subscription.subject(), label, Role::Life)
    }

    /// Labels a tap from before the recording: its close, and subscriptions to its conduit, are
    /// recorded. To record emissions from outside to its conduit too, give that the same label with
    /// [`Recording::conduit`].
    pub fn tap<E, O>(&self, label: &str, tap: &Tap<E, O>) -> Result<(), Fault>
    where
        E: Clone + Send + 'static,
        O: Clone + Send + 'static,
    {
        let (mirror, subscription) = (tap.conduit().subject(), tap.subscription().subject());
        self.label_all(label, mirror, &[(mirror, Role::Life), (subscription, Role::Life)])
    }

    /// Labels a reservoir from before the recording: its close is recorded.
    pub fn reservoir<E>(&self, label: &str, reservoir: &Reservoir<E>) -> Result<(), Fault>
    where
        E: Clone + Send + 'static,
    {
        self.label(reservoir.subscription().subject(), label, Role::Life)
    }

    /// Labels a sink: in a replay its captures are of its own pipes, not only of pipes with the
    /// same names. What it captures outside the circuit is recorded if its endpoint has a label, of
    /// its own or as a basin.
    pub fn sink<E: Send + 'static>(&self, label: &str, sink: &Sink<E>) -> Result<(), Fault> {
        self.label(sink.subject(), label, Role::Life)?;
        let context = self.circuit.current().subject().id();
        let mut state = self.journal.lock();
        state.sinks.push((label.to_owned(), [sink.subject().id().number(), context.number()]));
        if state.phase == Phase::Open {
            // A panic is stored in `failed`.
            shielded(|| state.write_sinks());
        }
        Ok(())
    }

    fn label(&self, subject: &Subject, label: &str, role: Role) -> Result<(), Fault> {
        self.label_all(label, subject, &[(subject, role)])
    }

    /// Labels the parts of this subject, which share the label.
    fn label_all(&self, label: &str, subject: &Subject, parts: &[(&Subject, Role)]) -> Result<(), Fault> {
        let refuse = |message: String| Err(Fault::new(subject.clone(), "label", message));
        if !subject.within(self.circuit.subject()) {
            return refuse(format!("it is not of {:?}, which is recorded", self.circuit.subject()));
        }
        let mut state = self.journal.lock();
        if let Some(other) = state.subjects.get(label).filter(|other| *other != subject) {
            return refuse(format!("\"{label}\" is the label of {other:?}; give each its own"));
        }
        if state.taps.iter().any(|(mirror, tap)| tap == label && *mirror != subject.id()) {
            return refuse(format!("a tap is known as \"{label}\"; give this another label"));
        }
        let mut known = parts.iter().filter_map(|(part, _)| state.labels.get(&part.id()));
        if let Some(other) = known.find(|known| known.label != label) {
            return refuse(format!("it has the label \"{}\" already", other.label));
        }
        state.subjects.insert(label.to_owned(), subject.clone());
        for (part, role) in parts {
            let labelled = Labelled { label: label.to_owned(), role: *role };
            if matches!(role, Role::Life) {
                // A part that was labelled with another role keeps that.
                state.labels.entry(part.id()).or_insert(labelled);
            } else {
                state.labels.insert(part.id(), labelled);
            }
        }
        Ok(())
    }

    /// Waits for what the caller emitted before, and for the end of the circuit if that closed it.
    /// Then ends the journal and returns the writer. Fails if writing has failed, and if the
    /// recording has not [begun](Recording::begin): then nothing was written.
    ///
    /// Where waiting would not end, it ends the journal immediately: inside the circuit, whose own
    /// emissions are no inputs, and for a circuit that its owner or a [`crate::Simulation`] runs.
    /// What these have not run yet is not in the journal.
    pub fn finish(self) -> io::Result<W> {
        if self.journal.lock().phase == Phase::Before {
            let message =
                "the recording has not begun: call Recording::begin ahead of what is to be in the journal";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if !matches!(self.circuit.run_by(), RunBy::Owner) {
            // Waiting is refused inside the circuit, see above. If an input waited for here closes
            // the circuit, the ends that follow notify callbacks: wait for those too, so that the
            // journal has all that they cause.
            let machine = self.circuit.machine();
            let _ = machine
                .settle()
                .and_then(|()| if machine.is_closed() { machine.settle_closed() } else { Ok(()) });
        }
        self.end().unwrap_or_else(|| Err(io::Error::other("the recording is finished already")))
    }

    /// Ends the journal at the circuit's current position. None if it has ended before.
    fn end(&self) -> Option<io::Result<W>> {
        let has_begun = self.journal.lock().phase != Phase::Before;
        let ended = self.journal.finish()?;
        if !has_begun {
            return Some(ended);
        }
        let recorder: Arc<dyn Recorder> = Arc::<Journal<W>>::clone(&self.journal);
        self.circuit.machine().end_recording(recorder);
        Some(ended)
    }
}

/// Ends a recording that was not finished, at the circuit's current position. Write errors are
/// lost.
impl<W: Write + Send + 'static> Drop for Recording<W> {
    fn drop(&mut self) {
        shielded(|| drop(self.end()));
    }
}

impl<W: Write + Send + 'static> fmt::Debug for Recording<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("circuit", &self.circuit).finish_non_exhaustive()
    }
}

impl<W: Write + Send> Journal<W> {
    fn lock(&self) -> MutexGuard<'_, RecordingState<W>> {
        unpoisoned(self.0.lock())
    }

    /// Writes the end and returns the writer. None if that was done before.
    fn finish(&self) -> Option<io::Result<W>> {
        let mut state = self.lock();
        // A panic is stored in `failed`.
        shielded(|| state.end());
        let writer = state.writer.take()?;
        let failed = state.failed.take();
        drop(state);
        Some(match failed {
            None => Ok(writer),
            Some(error) => {
                shielded(|| drop(writer));
                Err(error)
            }
        })
    }
}

impl<W: Write + Send> Recorder for Journal<W> {
    unsafe fn emission(&self, time: u64, pipe: &Subject, value: *mut u8) {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return;
        }
        let Some((label, name, look)) = state.find(pipe) else {
            return state.unlabelled(time, &format!("{pipe:?}"));
        };
        let mut bytes = std::mem::take(&mut state.value);
        bytes.clear();
        // SAFETY: the label was given for this type.
        let asked = catch_unwind(AssertUnwindSafe(|| unsafe { look(value, &mut bytes) }));
        match asked {
            Ok(Asked::Receive) => state.input(Kind::Emit, time, &[label, name], &bytes),
            Ok(Asked::Replace) => state.input(Kind::Replace, time, &[label], &bytes),
            Ok(Asked::Fail(message)) => state.input(Kind::Fail, time, &[label], message.as_bytes()),
            Ok(Asked::Send(target)) => match state.find(&target) {
                Some((target, name, _)) => state.input(Kind::Send, time, &[label, target, name], &[]),
                None => state.unlabelled(time, &format!("{target:?}, the target of {pipe:?}")),
            },
            Ok(Asked::Later) => {}
            Err(panic) => {
                let message = message_of(panic);
                let what = format!("a value of {pipe:?}, which panicked when it was to be written");
                state.unlabelled(time, &what);
                drop(state);
                resume_unwind(Box::new(message.to_string()));
            }
        }
        state.value = bytes;
    }

    fn gap(&self, time: u64, what: &str) {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.unlabelled(time, what);
        }
    }

    fn event(&self, time: u64, event: Event) {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return;
        }
        match event {
            Event::Other => {}
            Event::Subscribe { source, subscription, hearer } => {
                state.subscribe(time, source, subscription, hearer);
            }
            Event::Unsubscribe { subscription } => match state.subscriptions.remove(&subscription) {
                Some(number) => state.input(Kind::Unsubscribe, time, &[number], &[]),
                None => state.close(Kind::CloseSubscription, time, subscription, "a subscription"),
            },
            Event::CloseConduit { source } => state.close(Kind::CloseConduit, time, source, "a conduit"),
            Event::CloseBank { bank } => state.close(Kind::CloseBank, time, bank, "a bank"),
            Event::CloseSubscriber { subscriber } => {
                state.close(Kind::CloseSubscriber, time, subscriber, "a subscriber");
            }
            Event::CloseCircuit => {
                state.input(Kind::CloseCircuit, time, &[], &[]);
                state.end();
            }
        }
    }
}

impl<W: Write> RecordingState<W> {
    fn begin(&mut self, seed: u64) {
        assert_eq!(self.phase, Phase::Before, "a circuit that is recorded is not recorded again");
        self.phase = Phase::Open;
        self.content = frame::header(seed);
        // A panic is stored in `failed`.
        shielded(|| {
            self.attempt(W::write_all);
            self.write_sinks();
        });
    }

    /// Writes the sinks with labels that were not written yet.
    fn write_sinks(&mut self) {
        for (label, numbers) in std::mem::take(&mut self.sinks) {
            let label = self.text(&label);
            self.content.clear();
            self.content.push(Kind::Origin as u8);
            [label, numbers[0], numbers[1]]
                .iter()
                .for_each(|number| write_number(*number, &mut self.content));
            self.write();
        }
    }

    /// Records the begin of a subscription, tap or reservoir.
    fn subscribe(&mut self, time: u64, source: Id, subscription: Id, hearer: Hearer) {
        let (what, known) = match hearer {
            Hearer::Subscriber { id, .. } => ("a subscription", self.label_of(id)),
            Hearer::Tap { mirror } => ("a tap", self.name_tap(source, mirror)),
            Hearer::Reservoir { capacity } => ("a reservoir or a stream", Some(capacity as u64)),
        };
        let (Some(label), Some(known)) = (self.label_of(source), known) else {
            return self.unlabelled(time, what);
        };
        let number = self.begun;
        self.begun += 1;
        self.subscriptions.insert(subscription, number);
        let (kind, numbers) = match hearer {
            Hearer::Reservoir { .. } => (Kind::Reservoir, [label, number, known]),
            Hearer::Subscriber { has_on_close: true, .. } => (Kind::SubscribeWith, [label, known, number]),
            Hearer::Subscriber { .. } | Hearer::Tap { .. } => (Kind::Subscribe, [label, known, number]),
        };
        self.input(kind, time, &numbers, &[]);
    }

    /// Returns the label of a tap that begins: its conduit's label and the tap's number there. None
    /// if the conduit has no label, or something else has this one.
    fn name_tap(&mut self, source: Id, mirror: Id) -> Option<u64> {
        let label = self.label_text(source)?.to_owned();
        let count = self.tapped.entry(label.clone()).or_default();
        *count += 1;
        let name = tap_name(&label, *count);
        if self.subjects.get(&name).is_some_and(|other| other.id() != mirror) {
            return None;
        }
        let number = self.text(&name);
        self.taps.insert(mirror, name);
        Some(number)
    }

    /// Returns the number of a text, which is written if it is new.
    fn text(&mut self, text: &str) -> u64 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.texts.insert(text.to_owned(), number);
        self.content.clear();
        self.content.push(Kind::Text as u8);
        self.content.extend_from_slice(text.as_bytes());
        self.write();
        number
    }

    fn label_of(&mut self, id: Id) -> Option<u64> {
        let label = self.label_text(id)?.to_owned();
        Some(self.text(&label))
    }

    fn label_text(&self, id: Id) -> Option<&str> {
        let label = self.labels.get(&id).map(|labelled| &labelled.label);
        label.or_else(|| self.taps.get(&id)).map(String::as_str)
    }

    /// Finds the label of a pipe, or else that of its conduit with one more than the number of its
    /// name, and how its values are read. Only a conduit stands for what it encloses: all its pipes
    /// have its type.
    fn find(&mut self, pipe: &Subject) -> Option<(u64, u64, Look)> {
        let by_itself = match self.labels.get(&pipe.id()) {
            Some(Labelled { label, role: Role::Node(look) }) => Some((label.clone(), None, *look)),
            _ => None,
        };
        let by_conduit = || match self.labels.get(&pipe.enclosure()?.id())? {
            Labelled { label, role: Role::Conduit(look) } => Some((label.clone(), Some(pipe.name()), *look)),
            _ => None,
        };
        let (label, name, look) = by_itself.or_else(by_conduit)?;
        let label = self.text(&label);
        Some((label, name.map_or(0, |name| 1 + self.text(name.path())), look))
    }

    fn unlabelled(&mut self, time: u64, what: &str) {
        let text = self.text(what);
        self.input(Kind::Unlabelled, time, &[text], &[]);
    }

    fn close(&mut self, kind: Kind, time: u64, id: Id, what: &str) {
        match self.label_of(id) {
            Some(label) => self.input(kind, time, &[label], &[]),
            None => self.unlabelled(time, &format!("the close of {what}")),
        }
    }

    fn input(&mut self, kind: Kind, time: u64, numbers: &[u64], value: &[u8]) {
        self.content.clear();
        self.content.push(kind as u8);
        write_number(time.saturating_sub(self.time), &mut self.content);
        self.time = self.time.max(time);
        numbers.iter().for_each(|number| write_number(*number, &mut self.content));
        self.content.extend_from_slice(value);
        self.inputs += 1;
        self.write();
    }

    fn write(&mut self) {
        assert!(
            self.phase == Phase::Open || self.content.first() == Some(&(Kind::End as u8)),
            "nothing comes after the end"
        );
        self.attempt(|writer, content| frame::write(content, writer));
    }

    /// Calls the writer, unless it has failed before. A panic counts as a failure too and is
    /// propagated; a partial frame may have been written.
    fn attempt(&mut self, work: impl FnOnce(&mut W, &[u8]) -> io::Result<()>) {
        let (None, Some(writer)) = (&self.failed, &mut self.writer) else { return };
        match catch_unwind(AssertUnwindSafe(|| work(writer, &self.content))) {
            Ok(outcome) => self.failed = outcome.err(),
            Err(panic) => {
                let message = message_of(panic);
                self.failed =
                    Some(io::Error::other(format!("the writer of the journal panicked: {message}")));
                resume_unwind(Box::new(message.to_string()));
            }
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.phase, Phase::Over) != Phase::Open {
            return;
        }
        self.content.clear();
        self.content.push(Kind::End as u8);
        write_number(self.inputs, &mut self.content);
        self.write();
        self.attempt(|writer, _| writer.flush());
    }
}

/// The label of a tap's conduit without one of its own: tap number `number` of the component with
/// this label.
pub(super) fn tap_name(label: &str, number: u64) -> String {
    format!("{label}#{number}")
}
