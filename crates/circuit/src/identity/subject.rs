//! Subjects: the identity of every component, and its enclosing component.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering as Memory};
use std::sync::{Arc, OnceLock};

use crate::Extent;
use crate::Name;
use crate::State;
use crate::name;

/// An identity, equal only to itself. Of two made by the same thread, the later one is greater.
///
/// ```
/// use tidemark_circuit::{Current, Subject};
///
/// let cortex = Subject::cortex().id();
/// assert_eq!(cortex, cortex);
/// assert_ne!(cortex, Current::of_thread().subject().id());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    pub(crate) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Memory::Relaxed))
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kind of component that a subject identifies.
///
/// ```
/// use tidemark_circuit::{Kind, Subject};
///
/// assert_eq!(Subject::cortex().kind(), Kind::Cortex);
/// assert_eq!(Kind::Conduit.to_string(), "conduit");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is the component of its name")]
pub enum Kind {
    Cortex,
    Bank,
    Basin,
    Cell,
    Circuit,
    Conduit,
    Current,
    Pin,
    Pipe,
    Port,
    Scope,
    Sink,
    Subscriber,
    Subscription,
    Ticker,
}

impl Kind {
    /// All kinds. The order is part of the journal format, in which a kind is its index here minus
    /// one, as the cortex is never written. Append new kinds; remove none.
    pub(crate) const ALL: [Self; 15] = [
        Self::Cortex,
        Self::Bank,
        Self::Basin,
        Self::Cell,
        Self::Circuit,
        Self::Conduit,
        Self::Current,
        Self::Pin,
        Self::Pipe,
        Self::Port,
        Self::Scope,
        Self::Sink,
        Self::Subscriber,
        Self::Subscription,
        Self::Ticker,
    ];

    /// Returns the name of the kind, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cortex => "cortex",
            Self::Bank => "bank",
            Self::Basin => "basin",
            Self::Cell => "cell",
            Self::Circuit => "circuit",
            Self::Conduit => "conduit",
            Self::Current => "current",
            Self::Pin => "pin",
            Self::Pipe => "pipe",
            Self::Port => "port",
            Self::Scope => "scope",
            Self::Sink => "sink",
            Self::Subscriber => "subscriber",
            Self::Subscription => "subscription",
            Self::Ticker => "ticker",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The identity of a component: its name, its kind, and the subject that encloses it.
///
/// A subject is equal only to itself, even if others have the same name. An enclosing subject is
/// less than those that it encloses. Subjects in the same enclosure are ordered by name, then by
/// age. It prints as the path of `kind:name` from the cortex. Cloning it counts a reference.
///
/// ```
/// use tidemark_circuit::{Current, Kind, Subject};
///
/// let cortex = Subject::cortex();
/// assert_eq!(cortex.kind(), Kind::Cortex);
/// assert_eq!(cortex.to_string(), "cortex:cortex");
///
/// let current = Current::of_thread();
/// assert_eq!(current.subject().enclosure(), Some(cortex));
/// assert!(cortex < current.subject());
/// ```
#[derive(Clone)]
pub struct Subject(Arc<Data>);

struct Data {
    id: Id,
    name: Name,
    kind: Kind,
    depth: u32,
    state: State,
    enclosure: Option<Subject>,
}

impl Subject {
    pub(crate) fn new(kind: Kind, name: Name, enclosure: Option<Subject>) -> Self {
        let depth = enclosure.as_ref().map_or(1, |enclosure| enclosure.0.depth + 1);
        Self(Arc::new(Data { id: Id::fresh(), name, kind, depth, state: State::empty(), enclosure }))
    }

    /// Returns the subject that encloses all others, directly or not.
    pub fn cortex() -> &'static Self {
        static CORTEX: OnceLock<Subject> = OnceLock::new();
        CORTEX.get_or_init(|| Self::new(Kind::Cortex, name!("cortex"), None))
    }

    /// Returns the identity.
    pub fn id(&self) -> Id {
        self.0.id
    }

    /// Returns the name.
    pub fn name(&self) -> Name {
        self.0.name
    }

    /// Returns the kind of the component.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the state of the component: empty, unless its creator has set one.
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// Returns the subject of the enclosing component; none for the cortex.
    pub fn enclosure(&self) -> Option<&Subject> {
        self.0.enclosure.as_ref()
    }

    /// Returns the number of subjects from this one to the outermost, both included. Costs one
    /// read.
    pub fn depth(&self) -> usize {
        self.0.depth as usize
    }

    /// Returns this subject or its enclosure of this depth.
    fn at_depth(&self, depth: u32) -> &Self {
        let mut subject = self;
        while subject.0.depth > depth
            && let Some(enclosure) = subject.enclosure()
        {
            subject = enclosure;
        }
        subject
    }
}

impl Extent for Subject {
    fn part(&self) -> Cow<'_, str> {
        Cow::Owned(format!("{}:{}", self.0.kind, self.0.name))
    }

    fn enclosure(&self) -> Option<&Self> {
        Subject::enclosure(self)
    }

    fn depth(&self) -> usize {
        Subject::depth(self)
    }

    fn within(&self, enclosure: &Self) -> bool {
        self.0.depth > enclosure.0.depth && self.at_depth(enclosure.0.depth) == enclosure
    }
}

/// Returns the name of the subject.
impl From<&Subject> for Name {
    fn from(subject: &Subject) -> Self {
        subject.name()
    }
}

impl PartialEq for Subject {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Subject {}

impl Hash for Subject {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl Ord for Subject {
    fn cmp(&self, other: &Self) -> Ordering {
        let depth = self.0.depth.min(other.0.depth);
        let (mut left, mut right) = (self.at_depth(depth), other.at_depth(depth));
        if left == right {
            return self.0.depth.cmp(&other.0.depth);
        }
        // Ascends until both have the same enclosure, or both are outermost.
        while let (Some(left_next), Some(right_next)) = (left.enclosure(), right.enclosure())
            && left_next != right_next
        {
            (left, right) = (left_next, right_next);
        }
        (left.0.name, left.0.id).cmp(&(right.0.name, right.0.id))
    }
}

impl PartialOrd for Subject {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.path())
    }
}

/// Prints the path and the id. Names may be untrusted and logs go to terminals, so control
/// characters are escaped.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.path().chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        write!(f, "#{}", self.0.id)
    }
}

impl Drop for Data {
    /// Drops the enclosures in a loop: recursion could overflow the stack on a long chain.
    fn drop(&mut self) {
        let mut enclosure = self.enclosure.take();
        while let Some(Subject(data)) = enclosure {
            enclosure = Arc::into_inner(data).and_then(|mut data| data.enclosure.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn below(enclosure: &Subject, name: Name) -> Subject {
        Subject::new(Kind::Scope, name, Some(enclosure.clone()))
    }

    #[test]
    fn there_is_one_cortex() {
        let cortex = Subject::cortex();
        assert_eq!(cortex, Subject::cortex());
        assert_eq!((cortex.kind(), cortex.name().path(), cortex.depth()), (Kind::Cortex, "cortex", 1));
        assert_eq!(cortex.enclosure(), None);
        assert!(cortex.state().is_empty());
    }

    #[test]
    fn every_kind_has_its_own_word() {
        let words: HashSet<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert_eq!(format!("{kind:?}").to_lowercase(), kind.to_string());
        }
    }

    #[test]
    fn what_logs_show_has_no_control_characters() {
        let bell = below(Subject::cortex(), Name::new("a\u{7}\n\u{1b}[31mü").unwrap());
        assert_eq!(
            format!("{bell:?}"),
            format!("cortex:cortex/scope:a\\u{{7}}\\n\\u{{1b}}[31mü#{}", bell.id())
        );
        assert_eq!(
            bell.to_string(),
            "cortex:cortex/scope:a\u{7}\n\u{1b}[31mü",
            "the path itself stays as it is"
        );
    }

    #[test]
    fn the_text_is_the_path_from_the_cortex() {
        let circuit = Subject::new(Kind::Circuit, name!("orders"), Some(Subject::cortex().clone()));
        let conduit = Subject::new(Kind::Conduit, name!("fills.eu"), Some(circuit.clone()));
        assert_eq!(conduit.part(), "conduit:fills.eu");
        assert_eq!(conduit.to_string(), "cortex:cortex/circuit:orders/conduit:fills.eu");
        assert_eq!(conduit.path(), conduit.to_string());
        assert_eq!(format!("{conduit:?}"), format!("{conduit}#{}", conduit.id()));
        assert!(conduit.within(&circuit) && conduit.within(Subject::cortex()));
        assert!(!circuit.within(&conduit) && !circuit.within(&circuit));
        assert_eq!(conduit.extremity(), Subject::cortex());
        assert_eq!(conduit.depth(), 3);
    }

    #[test]
    fn namesakes_differ_and_the_older_one_comes_first() {
        let first = below(Subject::cortex(), name!("namesake"));
        let second = below(Subject::cortex(), name!("namesake"));
        assert_eq!(first.name(), second.name());
        assert_ne!(first, second);
        assert!(first < second);
        assert_eq!(first, first.clone());
        // The enclosures decide, not the names inside.
        assert!(below(&first, name!("z")) < below(&second, name!("a")));
    }

    #[test]
    fn a_long_chain_is_dropped_without_recursion() {
        let length = if cfg!(miri) { 1_000 } else { 1_000_000 };
        let name = name!("link");
        let mut innermost = Subject::new(Kind::Scope, name, None);
        for _ in 1..length {
            innermost = below(&innermost, name);
        }
        assert_eq!(innermost.depth(), length);
        drop(innermost);
    }

    /// Makes subjects with the given enclosures: each is in one of those before it, or in none.
    fn forest(shape: &[(usize, usize)]) -> Vec<Subject> {
        let names = [name!("a"), name!("a.b"), name!("a-b"), name!("b")];
        let mut all: Vec<Subject> = Vec::new();
        for (enclosure, name) in shape {
            let enclosure = all.get(enclosure % (all.len() + 1)).cloned();
            all.push(Subject::new(Kind::Scope, names[name % names.len()], enclosure));
        }
        all
    }

    fn key(subject: &Subject) -> Vec<(Name, Id)> {
        let mut key: Vec<_> = subject.iter().map(|subject| (subject.name(), subject.id())).collect();
        key.reverse();
        key
    }

    proptest! {
        #[test]
        fn subjects_are_ordered_by_names_and_ids_from_the_outermost_on(
            shape in prop::collection::vec((0_usize..30, 0_usize..4), 1..25)
        ) {
            let all = forest(&shape);
            for left in &all {
                for right in &all {
                    prop_assert_eq!(left.cmp(right), key(left).cmp(&key(right)));
                    prop_assert_eq!(left == right, left.cmp(right) == Ordering::Equal);
                    let within = left != right && key(left).starts_with(&key(right));
                    prop_assert_eq!(left.within(right), within);
                    prop_assert!(!within || right < left);
                }
            }
        }
    }
}
