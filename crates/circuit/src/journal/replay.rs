//! Running a journal again.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use super::allowance::{self, Allowance, Limit};
use super::frame::{self, Beginning, HEADER_BYTES, Kind, NoFrame, VERSION};
use super::input::{Closing, Input, OnEnd, Subscribing};
use super::recorded::{Recorded, read_number};
use crate::basin::Basin;
use crate::circuit::{Circuit, RunBy};
use crate::conduit::Conduit;
use crate::machine::Machine;
use crate::name::Name;
use crate::pipe::Pipe;
use crate::port::Port;
use crate::subscriber::Subscriber;
use crate::subscription::Subscription;

/// See [`Replay::limit_value`].
const VALUE_BYTES_MAX: u64 = 64 << 20;

/// See [`Replay::limit_names`].
const NAMES_MAX: u32 = 1 << 16;

/// Gives the inputs of a journal to a circuit with the same structure as the one that was recorded, so that it does the same
/// again. See [`Recording`](crate::Recording) for an example.
///
/// The circuit must be run by its owner, and must have been made with [`Replay::seed`]. Its clock is the journal's.
pub struct Replay<R> {
    reader: BufReader<R>,
    seed: u64,
    /// Where in the journal the next frame begins.
    position: u64,
    texts: Vec<String>,
    inputs: HashMap<String, Box<dyn Input>>,
    subscribers: HashMap<String, Box<dyn Subscribing>>,
    /// What is called when a subscription ends, by the labels of its conduit and its subscriber: an [`OnEnd`].
    on_close: HashMap<(String, String), Box<dyn Any>>,
    /// The subscriptions of before the replay.
    labelled_subscriptions: HashMap<String, Box<dyn Closing>>,
    /// The subscriptions of the journal.
    subscriptions: HashMap<u64, Box<dyn Closing>>,
    /// A label that was given twice.
    twice: Option<String>,
    value_bytes_max: u64,
    names_max: u32,
    /// What is left of both.
    allowance: Allowance,
    time: u64,
}

/// What a replay has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed {
    /// How many inputs were given to the circuit.
    pub inputs: u64,
    /// Whether the journal was ended properly. Otherwise its recording was cut off, and so may be its last input.
    pub complete: bool,
}

/// Why a journal could not be replayed further.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// What was read is no journal.
    NotAJournal,
    /// The journal has this version, of which nothing is known here.
    OtherVersion(char),
    /// The journal is damaged in the frame that begins at this byte.
    Damaged(u64),
    /// An input has a label that the replay does not know; label its counterpart before the replay is run.
    UnknownLabel(String),
    /// Subscriptions had something to call when they ended; give it with [`Replay::on_close`].
    NoCallback {
        /// The label of what they are to.
        conduit: String,
        /// The label of whose they are.
        subscriber: String,
    },
    /// The recording saw an input that it could not write down, most often to something without a label; label it before the next
    /// recording.
    Unlabelled(String),
    /// A value of the journal is none of the type that the label has here.
    WrongType(String),
    /// The frame that begins at this byte has a value that takes more bytes than these; see [`Replay::limit_value`].
    TooLarge {
        /// Where the frame begins.
        position: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The journal has more new names than these; see [`Replay::limit_names`].
    TooManyNames(u32),
    /// This label was given to two things, or to something of another circuit than the one that is to do the same again.
    Mislabelled(String),
    /// The circuit is not run by its owner, is closed, or has another seed than the journal.
    WrongCircuit(&'static str),
    /// Reading the journal failed.
    Io(io::Error),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAJournal => f.write_str("this is not the journal of a circuit"),
            Self::OtherVersion(version) => {
                write!(
                    f,
                    "the journal has version {version}, and versions 1 to {VERSION} can be read; \
                     replay it with what has recorded it"
                )
            }
            Self::Damaged(position) => write!(f, "the journal is damaged in the frame at byte {position}"),
            Self::UnknownLabel(label) => {
                write!(
                    f,
                    "the journal has inputs of \"{label}\"; label its counterpart before the replay is run"
                )
            }
            Self::NoCallback { conduit, subscriber } => {
                write!(
                    f,
                    "subscriptions of \"{subscriber}\" to \"{conduit}\" had something to call when they ended; \
                     give it with Replay::on_close before the replay is run"
                )
            }
            Self::Unlabelled(what) => {
                write!(f, "an input was not recorded, because nobody had labelled it: {what}")
            }
            Self::WrongType(label) => {
                write!(f, "a recorded value of \"{label}\" is not of the type it has here")
            }
            Self::TooLarge { position, bytes_max } => {
                write!(
                    f,
                    "the value in the frame at byte {position} takes more than {bytes_max} bytes; \
                     if the journal is to be trusted, allow more with Replay::limit_value"
                )
            }
            Self::TooManyNames(names_max) => {
                write!(
                    f,
                    "the journal has more than {names_max} new names; \
                     if it is to be trusted, allow more with Replay::limit_names"
                )
            }
            Self::Mislabelled(label) => {
                write!(f, "the label \"{label}\" is of two things, or of something of another circuit")
            }
            Self::WrongCircuit(why) => write!(f, "the circuit cannot replay this journal: {why}"),
            Self::Io(error) => write!(f, "the journal cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReplayError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> Replay<R> {
    /// A replay of the journal that is read from here. Reads its beginning.
    pub fn new(reader: R) -> Result<Self, ReplayError> {
        let mut reader = BufReader::new(reader);
        let seed = match frame::read_header(&mut reader) {
            Ok(Beginning::Journal(seed)) => seed,
            Ok(Beginning::OtherVersion(version)) => return Err(ReplayError::OtherVersion(version)),
            Ok(Beginning::NoJournal) => return Err(ReplayError::NotAJournal),
            Err(NoFrame::Io(error)) => return Err(error.into()),
            Err(_) => return Err(ReplayError::Damaged(0)),
        };
        Ok(Self {
            reader,
            seed,
            position: HEADER_BYTES as u64,
            texts: Vec::new(),
            inputs: HashMap::new(),
            subscribers: HashMap::new(),
            on_close: HashMap::new(),
            labelled_subscriptions: HashMap::new(),
            subscriptions: HashMap::new(),
            twice: None,
            value_bytes_max: VALUE_BYTES_MAX,
            names_max: NAMES_MAX,
            allowance: Allowance { bytes: VALUE_BYTES_MAX, names: NAMES_MAX, exceeded: None },
            time: 0,
        })
    }

    /// Refuses values that take more bytes than these: in the journal, or in memory for the elements of their vectors. It is 64 MiB
    /// unless set otherwise; a journal has at most 1 GiB for one.
    pub fn limit_value(&mut self, bytes_max: u64) {
        self.value_bytes_max = bytes_max;
    }

    /// Refuses more names than these that are new to the process, because names are never freed. It is 65,536 unless set otherwise.
    pub fn limit_names(&mut self, names_max: u32) {
        self.names_max = names_max;
        self.allowance.names = names_max;
    }

    /// The seed that the circuit must have.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Labels a conduit, as the recording did with its counterpart.
    pub fn conduit<E: Recorded + Clone + Send + 'static>(&mut self, label: &str, conduit: &Conduit<E>) {
        self.input(label, Box::new(conduit.clone()));
    }

    /// Labels a pipe, as the recording did with its counterpart.
    pub fn pipe<E: Recorded + Send + 'static>(&mut self, label: &str, pipe: &Pipe<E>) {
        self.input(label, Box::new(pipe.clone()));
    }

    /// Labels a port, as the recording did with its counterpart.
    pub fn port<E: Recorded + Clone + Send + 'static>(&mut self, label: &str, port: &Port<E>) {
        self.input(label, Box::new(port.clone()));
    }

    /// Labels a basin, as the recording did with its counterpart.
    pub fn basin<E: Recorded + Send + 'static>(&mut self, label: &str, basin: &Basin<E>) {
        self.input(label, Box::new(basin.clone()));
    }

    fn input(&mut self, label: &str, input: Box<dyn Input>) {
        if self.inputs.insert(label.to_owned(), input).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// Labels a subscriber, as the recording did with its counterpart.
    pub fn subscriber<E: Clone + Send + 'static>(&mut self, label: &str, subscriber: &Subscriber<E>) {
        if self.subscribers.insert(label.to_owned(), Box::new(subscriber.clone())).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// Labels a subscription of before the replay, as the recording did with its counterpart.
    pub fn subscription<E: Clone + Send + 'static>(&mut self, label: &str, subscription: &Subscription<E>) {
        let subscription = Box::new(subscription.clone());
        if self.labelled_subscriptions.insert(label.to_owned(), subscription).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// What the recorded circuit's subscriptions of the subscriber with this label to the conduit with that one were given to call
    /// when they end, see [`Conduit::subscribe_with`]. If several were given something else each, it is for this to tell them
    /// apart, by their order.
    pub fn on_close<E, F>(&mut self, conduit: &str, subscriber: &str, on_close: F)
    where
        E: Clone + Send + 'static,
        F: Fn(&Subscription<E>) + Send + Sync + 'static,
    {
        self.on_close
            .insert((conduit.to_owned(), subscriber.to_owned()), Box::new(OnEnd::<E>(Arc::new(on_close))));
    }

    /// Gives the journal's inputs to the circuit, each with all that it causes before the next.
    ///
    /// The journal is read to its end, behind which there must be nothing. On an error the inputs before it have been given, and
    /// the circuit is as they left it; none have been if the circuit or a label is the wrong one.
    pub fn run(&mut self, circuit: &Circuit) -> Result<Replayed, ReplayError> {
        if !matches!(circuit.run_by(), RunBy::Owner) {
            return Err(ReplayError::WrongCircuit("it is not run by its owner (RunBy::Owner)"));
        }
        if circuit.machine().seed() != self.seed {
            return Err(ReplayError::WrongCircuit("it was not made with the journal's seed"));
        }
        if circuit.is_closed() {
            return Err(ReplayError::WrongCircuit("it is closed"));
        }
        if let Some(label) = self.twice.as_ref().or_else(|| self.stranger(circuit.machine())) {
            return Err(ReplayError::Mislabelled(label.clone()));
        }
        let Some(_replayed) = InReplay::begin(circuit.machine()) else {
            return Err(ReplayError::WrongCircuit("it is being run by somebody else"));
        };
        self.run_frames(circuit)
    }

    /// The label of something that is of another circuit.
    fn stranger(&self, machine: &Machine) -> Option<&String> {
        let input = self.inputs.iter().find(|(_, input)| !input.is_of(machine)).map(|(label, _)| label);
        let subscriber = || {
            self.subscribers.iter().find(|(_, subscriber)| !subscriber.is_of(machine)).map(|(label, _)| label)
        };
        let subscription = || {
            self.labelled_subscriptions
                .iter()
                .find(|(_, subscription)| !subscription.is_of(machine))
                .map(|(label, _)| label)
        };
        input.or_else(subscriber).or_else(subscription)
    }

    fn run_frames(&mut self, circuit: &Circuit) -> Result<Replayed, ReplayError> {
        let mut inputs = 0;
        let mut content = Vec::new();
        let mut given = circuit.machine().has_work();
        loop {
            // What is there from making the structure, and then what each input causes.
            while given && circuit.run(usize::MAX) {}
            match frame::read(&mut self.reader, &mut content, self.value_bytes_max) {
                Ok(bytes) => {
                    let damaged = ReplayError::Damaged(self.position);
                    let Some((kind, rest)) = content.split_first() else { return Err(damaged) };
                    let Some(kind) = Kind::of(*kind) else { return Err(damaged) };
                    if kind == Kind::End {
                        let mut rest = rest;
                        if read_number(&mut rest) != Some(inputs) || !rest.is_empty() {
                            return Err(damaged);
                        }
                        self.position += bytes;
                        return self.expect_nothing().map(|()| Replayed { inputs, complete: true });
                    }
                    given = self.take_within_limits(kind, rest, circuit)?;
                    inputs += u64::from(given);
                    self.position += bytes;
                }
                Err(NoFrame::End | NoFrame::Torn) => return Ok(Replayed { inputs, complete: false }),
                Err(NoFrame::Damaged) => return Err(ReplayError::Damaged(self.position)),
                Err(NoFrame::TooLong) => return Err(self.too_large()),
                Err(NoFrame::Io(error)) => return Err(error.into()),
            }
        }
    }

    /// Behind the end there is nothing.
    fn expect_nothing(&mut self) -> Result<(), ReplayError> {
        match frame::read(&mut self.reader, &mut Vec::new(), self.value_bytes_max) {
            Err(NoFrame::End) => Ok(()),
            Err(NoFrame::Io(error)) => Err(error.into()),
            Ok(_) | Err(NoFrame::Torn | NoFrame::Damaged | NoFrame::TooLong) => {
                Err(ReplayError::Damaged(self.position))
            }
        }
    }

    /// As `take`, unless that takes more memory than is allowed.
    fn take_within_limits(
        &mut self,
        kind: Kind,
        rest: &[u8],
        circuit: &Circuit,
    ) -> Result<bool, ReplayError> {
        let mut allowance = Allowance { bytes: self.value_bytes_max, ..self.allowance };
        let taken = allowance.during(|| self.take(kind, rest, circuit));
        self.allowance = allowance;
        match allowance.exceeded {
            None => taken,
            Some(Limit::Bytes) => Err(self.too_large()),
            Some(Limit::Names) => Err(ReplayError::TooManyNames(self.names_max)),
        }
    }

    fn too_large(&self) -> ReplayError {
        ReplayError::TooLarge { position: self.position, bytes_max: self.value_bytes_max }
    }

    /// Takes what the frame says. False if it was a text, which is no input.
    fn take(&mut self, kind: Kind, rest: &[u8], circuit: &Circuit) -> Result<bool, ReplayError> {
        let damaged = || ReplayError::Damaged(self.position);
        if kind == Kind::Text {
            let text = str::from_utf8(rest).map_err(|_| damaged())?;
            self.texts.push(text.to_owned());
            return Ok(false);
        }
        let mut rest = rest;
        let later = read_number(&mut rest).ok_or_else(damaged)?;
        self.time = self.time.checked_add(later).ok_or_else(damaged)?;
        circuit.machine().set_time(self.time);
        let mut fields = Fields { rest, texts: &self.texts, position: self.position };
        match kind {
            // Neither is an input: texts were dealt with above, and an end is not given.
            Kind::Text | Kind::End => return Err(damaged()),
            Kind::CloseCircuit => {
                fields.end()?;
                circuit.close();
            }
            Kind::Unlabelled => return Err(ReplayError::Unlabelled(fields.last_text()?.to_owned())),
            Kind::CloseSubscriber => known(&self.subscribers, fields.last_text()?)?.close(),
            Kind::CloseSubscription => known(&self.labelled_subscriptions, fields.last_text()?)?.close(),
            Kind::Unsubscribe => {
                let number = fields.number()?;
                fields.end()?;
                self.subscriptions.remove(&number).ok_or_else(|| fields.damaged())?.close();
            }
            Kind::Subscribe | Kind::SubscribeWith => {
                let (number, subscription) = self.subscribe(kind, &mut fields)?;
                self.subscriptions.insert(number, subscription);
            }
            Kind::CloseConduit | Kind::Emit | Kind::Replace | Kind::Fail | Kind::Send => {
                self.give(kind, &mut fields)?;
            }
        }
        Ok(true)
    }

    /// Begins a subscription, and returns it with its number.
    fn subscribe(&self, kind: Kind, fields: &mut Fields<'_>) -> Result<(u64, Box<dyn Closing>), ReplayError> {
        let (label, subscriber_label, number) = (fields.text()?, fields.text()?, fields.number()?);
        fields.end()?;
        if self.subscriptions.contains_key(&number) {
            return Err(fields.damaged());
        }
        let subscriber = known(&self.subscribers, subscriber_label)?.as_any();
        let on_close = if kind == Kind::SubscribeWith {
            let labels = (label.to_owned(), subscriber_label.to_owned());
            let Some(on_close) = self.on_close.get(&labels) else {
                return Err(ReplayError::NoCallback { conduit: labels.0, subscriber: labels.1 });
            };
            Some(&**on_close)
        } else {
            None
        };
        let subscription = known(&self.inputs, label)?.subscribe(subscriber, on_close);
        Ok((number, subscription.ok_or_else(|| ReplayError::WrongType(label.to_owned()))?))
    }

    /// Gives something to what has this label.
    fn give(&self, kind: Kind, fields: &mut Fields<'_>) -> Result<(), ReplayError> {
        let label = fields.text()?;
        let input = known(&self.inputs, label)?;
        let given = match kind {
            Kind::CloseConduit => {
                fields.end()?;
                input.close()
            }
            Kind::Emit => {
                let name = fields.name()?;
                input.emit(name, fields.rest)
            }
            Kind::Replace => input.replace(fields.rest),
            Kind::Fail => input.fail(str::from_utf8(fields.rest).map_err(|_| fields.damaged())?),
            Kind::Send => {
                let (target_label, name) = (fields.text()?, fields.name()?);
                fields.end()?;
                let target = known(&self.inputs, target_label)?.target(name);
                target.and_then(|target| input.send(&*target))
            }
            _ => return Err(fields.damaged()),
        };
        given.ok_or_else(|| ReplayError::WrongType(label.to_owned()))
    }
}

/// A circuit for as long as it gets its inputs from a journal.
struct InReplay<'a>(&'a Machine);

impl<'a> InReplay<'a> {
    /// None if the circuit is being run.
    fn begin(machine: &'a Machine) -> Option<Self> {
        machine.set_replayed(true).then_some(Self(machine))
    }
}

impl Drop for InReplay<'_> {
    fn drop(&mut self) {
        self.0.set_replayed(false);
    }
}

/// What is known by a label.
fn known<'a, T: ?Sized>(all: &'a HashMap<String, Box<T>>, label: &str) -> Result<&'a T, ReplayError> {
    let found = all.get(label).ok_or_else(|| ReplayError::UnknownLabel(label.to_owned()))?;
    Ok(found)
}

/// What is left of a frame.
struct Fields<'a> {
    rest: &'a [u8],
    texts: &'a [String],
    position: u64,
}

impl<'a> Fields<'a> {
    fn damaged(&self) -> ReplayError {
        ReplayError::Damaged(self.position)
    }

    fn number(&mut self) -> Result<u64, ReplayError> {
        read_number(&mut self.rest).ok_or_else(|| self.damaged())
    }

    fn text_of(&self, number: u64) -> Result<&'a str, ReplayError> {
        let text = usize::try_from(number).ok().and_then(|number| self.texts.get(number));
        text.map(String::as_str).ok_or_else(|| self.damaged())
    }

    fn text(&mut self) -> Result<&'a str, ReplayError> {
        let number = self.number()?;
        self.text_of(number)
    }

    /// A text, behind which there is nothing.
    fn last_text(&mut self) -> Result<&'a str, ReplayError> {
        let text = self.text()?;
        self.end()?;
        Ok(text)
    }

    /// Behind what was taken there is nothing.
    fn end(&self) -> Result<(), ReplayError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.damaged()) }
    }

    /// A name, or nothing.
    fn name(&mut self) -> Result<Option<Name>, ReplayError> {
        match self.number()? {
            0 => Ok(None),
            number => {
                let name = allowance::name(self.text_of(number - 1)?);
                name.map(Some).ok_or_else(|| self.damaged())
            }
        }
    }
}

impl<R> fmt::Debug for Replay<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("seed", &self.seed)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
