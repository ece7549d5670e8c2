//! Captures as bytes: values with where they were emitted and by which context.
//!
//! Subjects are written as the path of kinds and names below the cortex, each with its number in
//! the process that recorded it. A replay makes one subject for each number, so subjects that were
//! equal are equal again. A labelled sink stands for itself.

use std::cell::RefCell;
use std::collections::HashMap;

use super::allowance;
use super::recorded::{Recorded, read_number, write_number};
use crate::execution::current::Current;
use crate::execution::machine::Machine;
use crate::identity::name::Name;
use crate::identity::subject::{Kind, Subject};
use crate::structure::capture::Capture;
use crate::structure::sink::Sink;

/// Maximum length of a path: a pipe, its component, its circuit and the cortex are four.
const PARTS_MAX: u64 = 16;

thread_local! {
    /// The origins of the journal that is being read on this thread.
    static KNOWN: RefCell<Option<Origins>> = const { RefCell::new(None) };
}

/// Upper bound of the memory for a subject and its entry by number.
const SUBJECT_BYTES: usize = 192;

/// The subjects that the numbers of a journal stand for. Each number stands for one subject, and
/// later frames must agree.
#[derive(Default)]
pub(super) struct Origins {
    subjects: HashMap<u64, Known>,
    sinks: HashMap<String, LabelledSink>,
    /// Labels of the sinks with these numbers.
    labels: HashMap<u64, String>,
    /// Number of the circuit's own context.
    context: Option<u64>,
    /// A number that a frame has contradicted.
    contradicted: Option<u64>,
}

/// The subject of a number.
struct Known {
    subject: Subject,
    /// Its name and the number of its enclosure, from the first path that had it; none if there was
    /// none yet. In the replay, those of a labelled sink and of the circuit's context may differ.
    said: Option<(Name, Option<u64>)>,
}

struct LabelledSink {
    sink: Box<dyn Origin>,
    number: Option<u64>,
}

/// Why numbers cannot be linked to a label.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoLink {
    /// There is no sink with the label.
    Unknown,
    /// This number, or the one linked before, stands for something else.
    Contradiction(u64),
}

/// A sink with a label and the type of its values erased.
pub(super) trait Origin: Send {
    fn subject(&self) -> &Subject;

    /// The subject of its pipe of this name.
    fn pipe(&self, name: Name) -> Subject;

    /// Returns whether it belongs to the circuit.
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
    /// Gives a sink a label; returns false if the label was given before.
    pub(super) fn label(&mut self, label: &str, sink: Box<dyn Origin>) -> bool {
        self.sinks.insert(label.to_owned(), LabelledSink { sink, number: None }).is_none()
    }

    /// Returns the label of a sink of another circuit, if there is one.
    pub(super) fn stranger(&self, machine: &Machine) -> Option<&String> {
        self.sinks.iter().find(|(_, labelled)| !labelled.sink.is_of(machine)).map(|(label, _)| label)
    }

    /// Links the numbers to the sink with the label and to the circuit's own context. Removes what
    /// the sink's number enclosed while it had no label: from now on the pipes are the sink's own.
    /// That scan is done once for each label.
    pub(super) fn link(&mut self, label: &str, number: u64, context: (u64, &Subject)) -> Result<(), NoLink> {
        let Self { subjects, sinks, labels, context: own, .. } = self;
        let LabelledSink { sink, number: known } = sinks.get_mut(label).ok_or(NoLink::Unknown)?;
        let is_new = known.is_none();
        if *known.get_or_insert(number) != number
            || is_new && labels.insert(number, label.to_owned()).is_some()
        {
            return Err(NoLink::Contradiction(number));
        }
        if *own.get_or_insert(context.0) != context.0 {
            return Err(NoLink::Contradiction(context.0));
        }
        stand_for(subjects, context.0, context.1)?;
        stand_for(subjects, number, sink.subject())?;
        if is_new {
            subjects.retain(|_, known| known.said.is_none_or(|(_, around)| around != Some(number)));
        }
        Ok(())
    }

    /// Removes and returns the number that a frame has contradicted.
    pub(super) fn take_contradiction(&mut self) -> Option<u64> {
        self.contradicted.take()
    }

    /// Resolves the numbers that `read` meets with these origins.
    pub(super) fn during<R>(&mut self, read: impl FnOnce() -> R) -> R {
        let outer = KNOWN.replace(Some(std::mem::take(self)));
        let _within = Within { outer, origins: self };
        read()
    }

    /// Returns the subject of a part of a path, within its enclosure. None if it contradicts what
    /// the number stands for, or if there are too many subjects.
    fn resolve(&mut self, part: &Part, around: Option<u64>, enclosure: Subject) -> Option<Subject> {
        let said = (part.name, around);
        if let Some(known) = self.subjects.get_mut(&part.number) {
            if known.subject.kind() != part.kind || *known.said.get_or_insert(said) != said {
                self.contradicted = Some(part.number);
                return None;
            }
            return Some(known.subject.clone());
        }
        allowance::take_subject()?;
        allowance::take_bytes(SUBJECT_BYTES)?;
        let labelled = around.and_then(|around| self.sinks.get(self.labels.get(&around)?));
        let subject = match labelled {
            Some(LabelledSink { sink, .. }) if part.kind == Kind::Pipe => sink.pipe(part.name),
            _ => Subject::new(part.kind, part.name, Some(enclosure)),
        };
        self.subjects.insert(part.number, Known { subject: subject.clone(), said: Some(said) });
        Some(subject)
    }
}

/// Makes a number stand for this subject, if it stood for one of the same kind or for none.
fn stand_for(subjects: &mut HashMap<u64, Known>, number: u64, subject: &Subject) -> Result<(), NoLink> {
    let known = subjects.entry(number).or_insert_with(|| Known { subject: subject.clone(), said: None });
    if known.subject.kind() != subject.kind() {
        return Err(NoLink::Contradiction(number));
    }
    known.subject = subject.clone();
    Ok(())
}

/// Scope in which some origins are active.
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

/// Takes some fifty bytes and the names, besides the value. Read back, it has subjects of the same
/// kinds and names. Within one replay they are equal where they were equal when recorded, and those
/// of a labelled sink are the sink's own.
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

/// Appends the path of this subject: its enclosures below the cortex, then itself.
fn write_path(subject: &Subject, bytes: &mut Vec<u8>) {
    let enclosures = std::iter::successors(Some(subject), |subject| subject.enclosure());
    let path: Vec<&Subject> = enclosures.take_while(|subject| subject.kind() != Kind::Cortex).collect();
    assert!(path.len() as u64 <= PARTS_MAX, "{subject} has {} parts, of at most {PARTS_MAX}", path.len());
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
    let mut around = None;
    for _ in 0..length {
        let (number, kind) = (read_number(bytes)?, kind_of(*bytes.split_off_first()?)?);
        let part = Part { number, kind, name: Name::read(bytes)? };
        subject = KNOWN.with_borrow_mut(|known| match known {
            Some(known) => known.resolve(&part, around, subject),
            None => Some(Subject::new(part.kind, part.name, Some(subject))),
        })?;
        around = Some(part.number);
    }
    Some(subject)
}

/// Encodes a kind, see [`Kind::ALL`].
fn number_of(kind: Kind) -> u8 {
    let index = Kind::ALL.iter().skip(1).position(|known| *known == kind);
    index.expect("paths begin below the cortex") as u8
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
