//! Writing a journal.
#![allow(unsafe_code, reason = "values are looked at on their way from the queue to their node")]

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frame::{self, Kind};
use super::recorded::{Recorded, write_number};
use crate::circuit::Circuit;
use crate::conduit::Conduit;
use crate::error::{ContextError, Fault};
use crate::event::Event;
use crate::pipe::Pipe;
use crate::subject::{Id, Subject};
use crate::subscriber::Subscriber;

/// Writes the inputs of a circuit into a journal while they are handled.
///
/// Inputs are known by labels, under which a [`Replay`](crate::Replay) finds their counterparts: conduits, pipes that are emitted to from outside, and
/// subscribers. Whatever happens to something without a label is noted as a gap, which a replay reports.
///
/// The writer is called in the circuit's context: one that is slow slows the circuit down. When it fails, recording ends, and
/// [`Recording::finish`] says so; the circuit goes on.
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
/// let recording = Recording::begin(&circuit, Vec::new())?;
/// recording.pipe("values", &pipe);
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
pub struct Recording<W: Write + Send + 'static> {
    journal: Arc<Journal<W>>,
    circuit: Circuit,
}

struct Journal<W>(Mutex<State<W>>);

struct State<W> {
    /// Gone when the recording is finished.
    writer: Option<W>,
    failed: Option<io::Error>,
    /// Numbers of texts.
    texts: HashMap<String, u64>,
    /// Labels of conduits, pipes and subscribers, and how values of the first two are written.
    labels: HashMap<Id, Labelled>,
    subscriptions: HashMap<Id, u64>,
    inputs: u64,
    ended: bool,
    /// The time of the input before, in nanoseconds.
    time: u64,
    content: Vec<u8>,
}

struct Labelled {
    label: String,
    write: Option<WriteValue>,
}

/// Appends the value that lies somewhere, without an alignment.
type WriteValue = unsafe fn(*mut u8, &mut Vec<u8>);

/// What is told of inputs, before they are handled.
pub(crate) trait Recorder: Send + Sync {
    /// An emission from outside.
    ///
    /// # Safety
    ///
    /// The value is one of the type of the pipe with this subject.
    unsafe fn emission(&self, time: u64, pipe: &Subject, value: *mut u8);

    /// Something else from outside.
    fn event(&self, time: u64, event: Event);
}

impl<W: Write + Send + 'static> Recording<W> {
    /// Begins to record what the circuit handles from now on. Fails if it is closed, or recorded already.
    pub fn begin(circuit: &Circuit, mut writer: W) -> Result<Self, Fault> {
        circuit.machine().check_open("record")?;
        let failed = writer.write_all(&frame::header(circuit.machine().seed())).err();
        let journal = Arc::new(Journal(Mutex::new(State {
            writer: Some(writer),
            failed,
            texts: HashMap::new(),
            labels: HashMap::new(),
            subscriptions: HashMap::new(),
            inputs: 0,
            ended: false,
            time: 0,
            content: Vec::new(),
        })));
        if !circuit.machine().begin_recording(Arc::<Journal<W>>::clone(&journal)) {
            let message = "the circuit is being recorded already";
            return Err(Fault::new(circuit.subject().clone(), "record", message));
        }
        Ok(Self { journal, circuit: circuit.clone() })
    }

    /// Labels a conduit: what is emitted to its pipes, its subscriptions and its close are recorded.
    pub fn conduit<E: Recorded + Clone + Send + 'static>(&self, label: &str, conduit: &Conduit<E>) {
        self.label(conduit.subject(), label, Some(write_value::<E>));
    }

    /// Labels a pipe: what is emitted to it is recorded.
    pub fn pipe<E: Recorded + Send + 'static>(&self, label: &str, pipe: &Pipe<E>) {
        self.label(pipe.subject(), label, Some(write_value::<E>));
    }

    /// Labels a subscriber: its subscriptions and its close are recorded.
    pub fn subscriber<E: Clone + Send + 'static>(&self, label: &str, subscriber: &Subscriber<E>) {
        self.label(subscriber.subject(), label, None);
    }

    fn label(&self, subject: &Subject, label: &str, write: Option<WriteValue>) {
        self.journal.lock().labels.insert(subject.id(), Labelled { label: label.to_owned(), write });
    }

    /// Waits for what the caller emitted before, ends the journal and gives the writer back. Fails if writing failed at some
    /// time, or when called inside of the circuit, for which it would have to wait.
    pub fn finish(self) -> io::Result<W> {
        let inside = |error: ContextError| io::Error::new(io::ErrorKind::InvalidInput, error);
        self.circuit.settle().map_err(inside)?;
        self.circuit.machine().end_recording();
        self.circuit.settle().map_err(inside)?;
        let mut state = self.journal.lock();
        state.end();
        match (state.failed.take(), state.writer.take()) {
            (None, Some(writer)) => Ok(writer),
            (failed, _) => {
                Err(failed.unwrap_or_else(|| io::Error::other("the recording is finished already")))
            }
        }
    }
}

impl<W: Write + Send> fmt::Debug for Recording<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("circuit", &self.circuit).finish_non_exhaustive()
    }
}

unsafe fn write_value<E: Recorded>(value: *mut u8, bytes: &mut Vec<u8>) {
    /// The value while it is away from its place, which need not be aligned for it.
    struct Lent<E>(*mut E, ManuallyDrop<E>);

    impl<E> Drop for Lent<E> {
        fn drop(&mut self) {
            // SAFETY: the value goes back to where it came from, also if writing it has changed or panicked.
            unsafe { self.0.write_unaligned(ManuallyDrop::take(&mut self.1)) };
        }
    }

    let place = value.cast::<E>();
    // SAFETY: the caller says that an `E` lies there.
    let lent = Lent(place, ManuallyDrop::new(unsafe { place.read_unaligned() }));
    lent.1.write(bytes);
}

impl<W: Write + Send> Journal<W> {
    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write + Send> Recorder for Journal<W> {
    unsafe fn emission(&self, time: u64, pipe: &Subject, value: *mut u8) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        let by_itself = state.labels.get(&pipe.id()).map(|labelled| (labelled, None));
        let conduit = || pipe.enclosure().and_then(|conduit| state.labels.get(&conduit.id()));
        let found = by_itself.or_else(|| conduit().map(|labelled| (labelled, Some(pipe.name()))));
        let Some((Labelled { label, write: Some(write) }, name)) = found else {
            return state.unlabelled(time, &pipe.to_string());
        };
        let (label, write) = (label.clone(), *write);
        let label = state.text(&label);
        let name = name.map_or(0, |name| 1 + state.text(name.path()));
        state.begin(Kind::Emit, time);
        write_number(label, &mut state.content);
        write_number(name, &mut state.content);
        // SAFETY: the label was given with this type.
        unsafe { write(value, &mut state.content) };
        state.finish_input();
    }

    fn event(&self, time: u64, event: Event) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        match event {
            Event::Other => {}
            Event::Subscribe { source, subscriber, subscription } => {
                let (Some(source), Some(subscriber)) = (state.label_of(source), state.label_of(subscriber))
                else {
                    return state.unlabelled(time, "a subscription");
                };
                let number = state.subscriptions.len() as u64;
                state.subscriptions.insert(subscription, number);
                state.input(Kind::Subscribe, time, &[source, subscriber, number]);
            }
            Event::Unsubscribe { subscription } => {
                // One of before the recording, or without labels, was not known to begin.
                match state.subscriptions.get(&subscription).copied() {
                    Some(number) => state.input(Kind::Unsubscribe, time, &[number]),
                    None => state.unlabelled(time, "the close of a subscription"),
                }
            }
            Event::CloseConduit { source } => match state.label_of(source) {
                Some(label) => state.input(Kind::CloseConduit, time, &[label]),
                None => state.unlabelled(time, "the close of a conduit"),
            },
            Event::CloseSubscriber { subscriber } => match state.label_of(subscriber) {
                Some(label) => state.input(Kind::CloseSubscriber, time, &[label]),
                None => state.unlabelled(time, "the close of a subscriber"),
            },
            Event::CloseCircuit => {
                state.input(Kind::CloseCircuit, time, &[]);
                state.end();
            }
        }
    }
}

impl<W: Write> State<W> {
    /// The number of a text, which is written if it is new.
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
        let label = self.labels.get(&id)?.label.clone();
        Some(self.text(&label))
    }

    fn unlabelled(&mut self, time: u64, what: &str) {
        let text = self.text(what);
        self.input(Kind::Unlabelled, time, &[text]);
    }

    fn input(&mut self, kind: Kind, time: u64, numbers: &[u64]) {
        self.begin(kind, time);
        numbers.iter().for_each(|number| write_number(*number, &mut self.content));
        self.finish_input();
    }

    fn begin(&mut self, kind: Kind, time: u64) {
        self.content.clear();
        self.content.push(kind as u8);
        write_number(time.saturating_sub(self.time), &mut self.content);
        self.time = self.time.max(time);
    }

    fn finish_input(&mut self) {
        self.inputs += 1;
        self.write();
    }

    fn write(&mut self) {
        debug_assert!(
            !self.ended || self.content.first() == Some(&(Kind::End as u8)),
            "nothing comes after the end"
        );
        if let (None, Some(writer)) = (&self.failed, &mut self.writer) {
            self.failed = frame::write(&self.content, writer).err();
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.content.clear();
        self.content.push(Kind::End as u8);
        write_number(self.inputs, &mut self.content);
        self.write();
        if let (None, Some(writer)) = (&self.failed, &mut self.writer) {
            self.failed = writer.flush().err();
        }
    }
}
