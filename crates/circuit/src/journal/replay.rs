//! Running a journal again.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Read};

use super::frame::{self, HEADER_BYTES, Kind, NoFrame};
use super::recorded::{Recorded, read_number};
use crate::circuit::{Circuit, RunBy};
use crate::conduit::Conduit;
use crate::name::Name;
use crate::pipe::Pipe;
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
    subscriptions: HashMap<u64, Box<dyn Fn()>>,
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
    /// What was read is no journal, or one of another version.
    NotAJournal,
    /// The journal is damaged in the frame that begins at this byte.
    Damaged(u64),
    /// An input has a label that the replay does not know; label its counterpart before the replay is run.
    UnknownLabel(String),
    /// The recording saw an input to something without a label; label it before the next recording.
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
            Self::NotAJournal => {
                f.write_str("this is not the journal of a circuit, or one of another version")
            }
            Self::Damaged(position) => write!(f, "the journal is damaged in the frame at byte {position}"),
            Self::UnknownLabel(label) => {
                write!(
                    f,
                    "the journal has inputs of \"{label}\"; label its counterpart before the replay is run"
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

/// Something with a label that is emitted to, or subscribed to.
trait Input {
    /// Emits a recorded value; none if it is none of this type.
    fn emit(&self, name: Option<Name>, value: &mut &[u8]) -> Option<()>;
    fn subscribe(&self, subscriber: &dyn Any) -> Option<Box<dyn Fn()>>;
    fn close(&self);
}

impl<E: Recorded + Send + 'static> Input for Pipe<E> {
    fn emit(&self, _: Option<Name>, value: &mut &[u8]) -> Option<()> {
        Pipe::emit(self, E::read(value)?);
        Some(())
    }

    fn subscribe(&self, _: &dyn Any) -> Option<Box<dyn Fn()>> {
        None
    }

    fn close(&self) {}
}

impl<E: Recorded + Clone + Send + 'static> Input for Conduit<E> {
    fn emit(&self, name: Option<Name>, value: &mut &[u8]) -> Option<()> {
        self.get(name?).emit(E::read(value)?);
        Some(())
    }

    fn subscribe(&self, subscriber: &dyn Any) -> Option<Box<dyn Fn()>> {
        let subscription: Subscription<E> = Conduit::subscribe(self, subscriber.downcast_ref()?).ok()?;
        Some(Box::new(move || subscription.close()))
    }

    fn close(&self) {
        Conduit::close(self);
    }
}

trait Subscribing {
    fn as_any(&self) -> &dyn Any;
    fn close(&self);
}

impl<E: Clone + Send + 'static> Subscribing for Subscriber<E> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn close(&self) {
        Subscriber::close(self);
    }
}

impl<R: Read> Replay<R> {
    /// A replay of the journal that is read from here. Reads its beginning.
    pub fn new(reader: R) -> Result<Self, ReplayError> {
        let mut reader = BufReader::new(reader);
        let seed = match frame::read_header(&mut reader) {
            Ok(Some(seed)) => seed,
            Ok(None) => return Err(ReplayError::NotAJournal),
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

    /// Labels a subscriber, as the recording did with its counterpart.
    pub fn subscriber<E: Clone + Send + 'static>(&mut self, label: &str, subscriber: &Subscriber<E>) {
        self.subscribers.insert(label.to_owned(), Box::new(subscriber.clone()));
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
        let mut inputs = 0;
        let mut content = Vec::new();
        let mut given = circuit.machine().has_work();
        loop {
            // What is there from making the structure, and then what each input causes.
            while given && circuit.run(usize::MAX) {}
            match frame::read(&mut self.reader, &mut content) {
                Ok(bytes) => {
                    let Some((kind, mut rest)) = Self::kind(&content) else {
                        return Err(ReplayError::Damaged(self.position));
                    };
                    if kind == Kind::End {
                        return match read_number(&mut rest) {
                            Some(count) if count == inputs => Ok(Replayed { inputs, complete: true }),
                            _ => Err(ReplayError::Damaged(self.position)),
                        };
                    }
                    given = self.give(kind, rest, circuit)?;
                    inputs += u64::from(given);
                    self.position += bytes;
                }
                Err(NoFrame::End | NoFrame::Torn) => return Ok(Replayed { inputs, complete: false }),
                Err(NoFrame::Damaged) => return Err(ReplayError::Damaged(self.position)),
                Err(NoFrame::Io(error)) => return Err(error.into()),
            }
        }
    }

    fn kind(content: &[u8]) -> Option<(Kind, &[u8])> {
        let (kind, rest) = content.split_first()?;
        Some((Kind::of(*kind)?, rest))
    }

    /// Gives the circuit what the frame says. False if it was a text, which is no input.
    fn give(&mut self, kind: Kind, mut rest: &[u8], circuit: &Circuit) -> Result<bool, ReplayError> {
        let damaged = ReplayError::Damaged(self.position);
        if kind == Kind::Text {
            let Ok(text) = str::from_utf8(rest) else { return Err(damaged) };
            self.texts.push(text.to_owned());
            return Ok(false);
        }
        let mut number = || read_number(&mut rest);
        let (Some(later), first) = (number(), if kind == Kind::CloseCircuit { Some(0) } else { number() })
        else {
            return Err(damaged);
        };
        let (Some(first), Some(time)) = (first, self.time.checked_add(later)) else { return Err(damaged) };
        self.time = time;
        circuit.machine().set_time(time);
        let text = |number: u64| usize::try_from(number).ok().and_then(|number| self.texts.get(number));
        match kind {
            // Neither is an input: texts were dealt with above, and an end is not given.
            Kind::Text | Kind::End => return Err(damaged),
            Kind::CloseCircuit => circuit.close(),
            Kind::Unlabelled => {
                return Err(text(first).map_or(damaged, |what| ReplayError::Unlabelled(what.clone())));
            }
            Kind::Unsubscribe => match self.subscriptions.remove(&first) {
                Some(close) => close(),
                None => return Err(damaged),
            },
            Kind::CloseSubscriber => {
                let Some(label) = text(first) else { return Err(damaged) };
                let known = self.subscribers.get(label);
                known.ok_or_else(|| ReplayError::UnknownLabel(label.clone()))?.close();
            }
            Kind::CloseConduit | Kind::Emit | Kind::Subscribe => {
                let Some(label) = text(first) else { return Err(damaged) };
                let input = self.inputs.get(label).ok_or_else(|| ReplayError::UnknownLabel(label.clone()))?;
                let wrong = || ReplayError::WrongType(label.clone());
                if kind == Kind::CloseConduit {
                    input.close();
                } else if kind == Kind::Emit {
                    let name = match number() {
                        Some(0) => None,
                        Some(name) => match text(name - 1).and_then(|path| Name::new(path).ok()) {
                            None => return Err(damaged),
                            name => name,
                        },
                        None => return Err(damaged),
                    };
                    input.emit(name, &mut rest).filter(|()| rest.is_empty()).ok_or_else(wrong)?;
                } else {
                    let (Some(subscriber), Some(subscription)) = (number().and_then(text), number()) else {
                        return Err(damaged);
                    };
                    let known = self.subscribers.get(subscriber);
                    let known = known.ok_or_else(|| ReplayError::UnknownLabel(subscriber.clone()))?;
                    let close = input.subscribe(known.as_any()).ok_or_else(wrong)?;
                    self.subscriptions.insert(subscription, close);
                }
            }
        }
        Ok(true)
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
