//! Captures as bytes: values with who emitted them, where.
//!
//! Whose they are is written as the path of kinds and names from the cortex on, each with its number in the process that recorded
//! it. A replay makes one subject for each number, so that what was equal is equal again; and what has a label in it is itself.

use std::cell::RefCell;
use std::collections::HashMap;

use super::recorded::{Recorded, read_number, write_number};
use crate::capture::Capture;
use crate::current::Current;
use crate::machine::Machine;
use crate::name::Name;
use crate::sink::Sink;
use crate::subject::{Kind, Subject};

/// No path of a capture is longer: a pipe, what it is of, its circuit and the cortex are four.
const PARTS_MAX: u64 = 16;

thread_local! {
    /// Of the journal that is being read on this thread.
    static KNOWN: RefCell<Option<Origins>> = const { RefCell::new(None) };
}

/// Who the numbers of a journal stand for.
#[derive(Default)]
pub(super) struct Origins {
    subjects: HashMap<u64, Subject>,
    sinks: HashMap<String, Box<dyn Origin>>,
    /// The labels of the sinks with these numbers.
    labels: HashMap<u64, String>,
}

/// A sink with a label.
pub(super) trait Origin: Send {
    fn subject(&self) -> &Subject;

    /// The subject of its pipe of this name.
    fn pipe(&self, name: Name) -> Subject;

    /// Whether the circuit is its own.
    fn is_of(&self, machine: &Machine) -> bool;
}

impl<E: Send + 'static> Origin for Sink<E> {
    fn subject(&self) -> &Subject {
        Sink::subject(self)
    }

    fn pipe(&self, name: Name) -> Subject {
        self.get(name).subject().clone()
    }

    fn is_of(&self, machine: &Machine) -> bool {
        Sink::is_of(self, machine)
    }
}

impl Origins {
    /// Gives a sink a label; false if it is another one's.
    pub(super) fn label(&mut self, label: &str, sink: Box<dyn Origin>) -> bool {
        self.sinks.insert(label.to_owned(), sink).is_none()
    }

    /// The label of a sink that is of another circuit.
    pub(super) fn stranger(&self, machine: &Machine) -> Option<&String> {
        self.sinks.iter().find(|(_, sink)| !sink.is_of(machine)).map(|(label, _)| label)
    }

    /// Has this number stand for the sink with the label; false if there is none.
    pub(super) fn link(&mut self, number: u64, label: &str) -> bool {
        let Some(sink) = self.sinks.get(label) else { return false };
        self.subjects.insert(number, sink.subject().clone());
        self.labels.insert(number, label.to_owned());
        true
    }

    /// Has this number stand for the subject.
    pub(super) fn know(&mut self, number: u64, subject: Subject) {
        self.subjects.insert(number, subject);
    }

    /// Has what is read meanwhile be of these.
    pub(super) fn during<R>(&mut self, read: impl FnOnce() -> R) -> R {
        let outer = KNOWN.replace(Some(std::mem::take(self)));
        let _within = Within { outer, origins: self };
        read()
    }

    /// The subject of a part of a path, within what is around it.
    fn resolve(&mut self, part: &Part, around: &Part, enclosure: Subject) -> Subject {
        let Self { subjects, sinks, labels } = self;
        let subject = subjects.entry(part.number).or_insert_with(|| {
            let sink = labels.get(&around.number).and_then(|label| sinks.get(label));
            match sink {
                Some(sink) if part.kind == Kind::Pipe => sink.pipe(part.name),
                _ => Subject::new(part.kind, part.name, Some(enclosure)),
            }
        });
        subject.clone()
    }
}

/// The time within which what is read is of some origins.
struct Within<'a> {
    outer: Option<Origins>,
    origins: &'a mut Origins,
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        if let Some(known) = KNOWN.replace(self.outer.take()) {
            *self.origins = known;
        }
    }
}

/// Some fifty bytes and those of the names, besides the value. Read back, it is of subjects with the same kinds and names; within one
/// replay they are equal where they were when it was recorded, and those of a sink with a label are the sink's own.
///
/// ```
/// use tidemark_circuit::{Capture, Circuit, Recorded, name};
///
/// let circuit = Circuit::new();
/// let orders = circuit.conduit()?;
/// let reservoir = orders.reservoir(16)?;
/// orders.get(name!("eu")).emit(3);
/// circuit.settle()?;
/// let capture = reservoir.drain().remove(0);
/// let mut bytes = Vec::new();
/// capture.write(&mut bytes);
/// let again = Capture::<i32>::read(&mut &bytes[..]).unwrap();
/// assert_eq!((again.name(), *again.emission()), (name!("eu"), 3));
/// assert_eq!(again.current().to_string(), capture.current().to_string());
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
impl<E: Recorded> Recorded for Capture<E> {
    fn write(&self, bytes: &mut Vec<u8>) {
        write_path(self.subject(), bytes);
        write_path(self.current().subject(), bytes);
        self.emission().write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (subject, current) = (read_path(bytes)?, Current::of_subject(read_path(bytes)?)?);
        Some(Self::new(E::read(bytes)?, subject, current))
    }
}

/// A subject in a path.
struct Part {
    number: u64,
    kind: Kind,
    name: Name,
}

/// Appends the subjects that enclose this one, from below the cortex on, and itself.
fn write_path(subject: &Subject, bytes: &mut Vec<u8>) {
    let enclosures = std::iter::successors(Some(subject), |subject| subject.enclosure());
    let path: Vec<&Subject> = enclosures.take_while(|subject| subject.kind() != Kind::Cortex).collect();
    debug_assert!(path.len() as u64 <= PARTS_MAX, "captures are of pipes of what circuits enclose");
    write_number(path.len() as u64, bytes);
    for part in path.iter().rev() {
        write_number(part.id().number(), bytes);
        bytes.push(number_of(part.kind()));
        part.name().write(bytes);
    }
}

fn read_path(bytes: &mut &[u8]) -> Option<Subject> {
    let length = read_number(bytes).filter(|length| *length <= PARTS_MAX)?;
    let mut subject = Subject::cortex().clone();
    let mut around = Part { number: 0, kind: Kind::Cortex, name: subject.name() };
    for _ in 0..length {
        let (number, kind) = (read_number(bytes)?, kind_of(*bytes.split_off_first()?)?);
        let part = Part { number, kind, name: Name::read(bytes)? };
        subject = KNOWN.with_borrow_mut(|known| match known {
            Some(known) => known.resolve(&part, &around, subject),
            None => Subject::new(part.kind, part.name, Some(subject)),
        });
        around = part;
    }
    Some(subject)
}

/// What stands for a kind, see [`Kind::ALL`].
fn number_of(kind: Kind) -> u8 {
    debug_assert_ne!(kind, Kind::Cortex, "paths begin below it");
    Kind::ALL.iter().skip(1).position(|known| *known == kind).map_or(u8::MAX, |index| index as u8)
}

fn kind_of(number: u8) -> Option<Kind> {
    Kind::ALL.get(usize::from(number) + 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_numbers_that_they_always_had() {
        let words = [
            "bank",
            "basin",
            "cell",
            "circuit",
            "conduit",
            "current",
            "pin",
            "pipe",
            "port",
            "scope",
            "sink",
            "subscriber",
            "subscription",
            "ticker",
        ];
        for (number, word) in (0..).zip(words) {
            let kind = kind_of(number).expect("known");
            assert_eq!((kind.as_str(), number_of(kind)), (word, number));
        }
        assert_eq!(kind_of(words.len() as u8).or(kind_of(u8::MAX)), None);
    }
}
