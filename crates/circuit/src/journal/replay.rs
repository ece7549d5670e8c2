//! Running a journal again.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use super::frame::{self, Beginning, HEADER_BYTES, Kind, NoFrame, VERSION};
use super::input::{End, Input, OnEnd, Subscribing};
use super::recorded::{Recorded, read_number};
use crate::basin::Basin;
use crate::circuit::{Circuit, RunBy};
use crate::conduit::Conduit;
use crate::name::Name;
use crate::pipe::Pipe;
use crate::port::Port;
use crate::subscriber::Subscriber;
use crate::subscription::Subscription;

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
    /// What is called when a subscription of the subscriber with this label ends: an [`OnEnd`].
    on_close: HashMap<String, Box<dyn Any>>,
    /// What ends the subscriptions of before the replay.
    labelled_subscriptions: HashMap<String, End>,
    /// What ends the subscriptions of the journal.
    subscriptions: HashMap<u64, End>,
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
    /// Subscriptions of the subscriber with this label had something to call when they ended; give it with
    /// [`Replay::on_close`].
    NoCallback(String),
    /// The recording saw an input that it could not write down, most often to something without a label; label it before the next
    /// recording.
    Unlabelled(String),
    /// A value of the journal is none of the type that the label has here.
    WrongType(String),
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
            Self::NoCallback(label) => {
                write!(
                    f,
                    "subscriptions of \"{label}\" had something to call when they ended; \
                     give it with Replay::on_close before the replay is run"
                )
            }
            Self::Unlabelled(what) => {
                write!(f, "an input was not recorded, because nobody had labelled it: {what}")
            }
            Self::WrongType(label) => {
                write!(f, "a recorded value of \"{label}\" is not of the type it has here")
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
            time: 0,
        })
    }

    /// The seed that the circuit must have.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Labels a conduit, as the recording did with its counterpart.
    pub fn conduit<E: Recorded + Clone + Send + 'static>(&mut self, label: &str, conduit: &Conduit<E>) {
        self.inputs.insert(label.to_owned(), Box::new(conduit.clone()));
    }

    /// Labels a pipe, as the recording did with its counterpart.
    pub fn pipe<E: Recorded + Send + 'static>(&mut self, label: &str, pipe: &Pipe<E>) {
        self.inputs.insert(label.to_owned(), Box::new(pipe.clone()));
    }

    /// Labels a port, as the recording did with its counterpart.
    pub fn port<E: Recorded + Clone + Send + 'static>(&mut self, label: &str, port: &Port<E>) {
        self.inputs.insert(label.to_owned(), Box::new(port.clone()));
    }

    /// Labels a basin, as the recording did with its counterpart.
    pub fn basin<E: Recorded + Send + 'static>(&mut self, label: &str, basin: &Basin<E>) {
        self.inputs.insert(label.to_owned(), Box::new(basin.clone()));
    }

    /// Labels a subscriber, as the recording did with its counterpart.
    pub fn subscriber<E: Clone + Send + 'static>(&mut self, label: &str, subscriber: &Subscriber<E>) {
        self.subscribers.insert(label.to_owned(), Box::new(subscriber.clone()));
    }

    /// Labels a subscription of before the replay, as the recording did with its counterpart.
    pub fn subscription<E: Clone + Send + 'static>(&mut self, label: &str, subscription: &Subscription<E>) {
        let subscription = subscription.clone();
        self.labelled_subscriptions.insert(label.to_owned(), Box::new(move || subscription.close()));
    }

    /// What the recorded circuit's subscriptions of the subscriber with this label were given to call when they end, see
    /// [`Conduit::subscribe_with`].
    pub fn on_close<E, F>(&mut self, label: &str, on_close: F)
    where
        E: Clone + Send + 'static,
        F: Fn(&Subscription<E>) + Send + Sync + 'static,
    {
        self.on_close.insert(label.to_owned(), Box::new(OnEnd::<E>(Arc::new(on_close))));
    }

    /// Gives the journal's inputs to the circuit, each with all that it causes before the next.
    ///
    /// On an error the inputs before it have been given, and the circuit is as they left it.
    pub fn run(&mut self, circuit: &Circuit) -> Result<Replayed, ReplayError> {
        if !matches!(circuit.run_by(), RunBy::Owner) {
            return Err(ReplayError::WrongCircuit("it is not run by its owner (RunBy::Owner)"));
        }
        if circuit.machine().seed() != self.seed {
            return Err(ReplayError::WrongCircuit("it was not made with the journal's seed"));
        }
        circuit.machine().set_replayed(true);
        let replayed = self.run_frames(circuit);
        circuit.machine().set_replayed(false);
        replayed
    }

    fn run_frames(&mut self, circuit: &Circuit) -> Result<Replayed, ReplayError> {
        let mut inputs = 0;
        let mut content = Vec::new();
        let mut given = circuit.machine().has_work();
        loop {
            // What is there from making the structure, and then what each input causes.
            while given && circuit.run(usize::MAX) {}
            match frame::read(&mut self.reader, &mut content) {
                Ok(bytes) => {
                    let damaged = ReplayError::Damaged(self.position);
                    let Some((kind, rest)) = content.split_first() else { return Err(damaged) };
                    let Some(kind) = Kind::of(*kind) else { return Err(damaged) };
                    if kind == Kind::End {
                        return match read_number(&mut &*rest) {
                            Some(count) if count == inputs => Ok(Replayed { inputs, complete: true }),
                            _ => Err(damaged),
                        };
                    }
                    given = self.take(kind, rest, circuit)?;
                    inputs += u64::from(given);
                    self.position += bytes;
                }
                Err(NoFrame::End | NoFrame::Torn) => return Ok(Replayed { inputs, complete: false }),
                Err(NoFrame::Damaged) => return Err(ReplayError::Damaged(self.position)),
                Err(NoFrame::Io(error)) => return Err(error.into()),
            }
        }
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
            Kind::CloseCircuit => circuit.close(),
            Kind::Unlabelled => return Err(ReplayError::Unlabelled(fields.text()?.to_owned())),
            Kind::CloseSubscriber => known(&self.subscribers, fields.text()?)?.close(),
            Kind::CloseSubscription => known(&self.labelled_subscriptions, fields.text()?)?(),
            Kind::Unsubscribe => {
                let number = fields.number()?;
                self.subscriptions.remove(&number).ok_or_else(|| fields.damaged())?();
            }
            Kind::Subscribe | Kind::SubscribeWith => {
                let (number, close) = self.subscribe(kind, &mut fields)?;
                self.subscriptions.insert(number, close);
            }
            Kind::CloseConduit | Kind::Emit | Kind::Replace | Kind::Fail | Kind::Send => {
                self.give(kind, &mut fields)?;
            }
        }
        Ok(true)
    }

    /// Begins a subscription, and returns its number and what ends it.
    fn subscribe(&self, kind: Kind, fields: &mut Fields<'_>) -> Result<(u64, End), ReplayError> {
        let (label, subscriber_label, number) = (fields.text()?, fields.text()?, fields.number()?);
        let subscriber = known(&self.subscribers, subscriber_label)?.as_any();
        let on_close = if kind == Kind::SubscribeWith {
            let none = || ReplayError::NoCallback(subscriber_label.to_owned());
            Some(&**self.on_close.get(subscriber_label).ok_or_else(none)?)
        } else {
            None
        };
        let close = known(&self.inputs, label)?.subscribe(subscriber, on_close);
        Ok((number, close.ok_or_else(|| ReplayError::WrongType(label.to_owned()))?))
    }

    /// Gives something to what has this label.
    fn give(&self, kind: Kind, fields: &mut Fields<'_>) -> Result<(), ReplayError> {
        let label = fields.text()?;
        let input = known(&self.inputs, label)?;
        let given = match kind {
            Kind::CloseConduit => input.close(),
            Kind::Emit => {
                let name = fields.name()?;
                input.emit(name, fields.rest)
            }
            Kind::Replace => input.replace(fields.rest),
            Kind::Fail => input.fail(str::from_utf8(fields.rest).map_err(|_| fields.damaged())?),
            Kind::Send => {
                let (target_label, name) = (fields.text()?, fields.name()?);
                let target = known(&self.inputs, target_label)?.target(name);
                target.and_then(|target| input.send(&*target))
            }
            _ => return Err(fields.damaged()),
        };
        given.ok_or_else(|| ReplayError::WrongType(label.to_owned()))
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

    /// A name, or nothing.
    fn name(&mut self) -> Result<Option<Name>, ReplayError> {
        match self.number()? {
            0 => Ok(None),
            number => Name::new(self.text_of(number - 1)?).map(Some).map_err(|_| self.damaged()),
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
