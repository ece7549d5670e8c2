//! Vocabularies for saying what a system does and how it is: typed signals instead of numbers and texts.
//!
//! A *sign* is one of the few things that can be said about a kind of subject: a cache says [`Hit`](caches::Sign::Hit) or
//! [`Miss`](caches::Sign::Miss). Where the same sign means something else depending on a point of view, it is qualified by a
//! *dimension*, and the two make a [`Signal`]: a service's failure as the [`Caller`](services::Dimension::Caller) saw it, or the
//! [`Callee`](services::Dimension::Callee). A sign takes one byte and a signal two. *Instruments* are what code says them
//! with, one method per sign; each is a pipe of a conduit, so whoever subscribes to the conduit hears all instruments of
//! the kind, by name and in order.
//!
//! ```
//! use std::sync::mpsc;
//! use tidemark_circuit::signals::{Sign as _, caches, situations, statuses};
//! use tidemark_circuit::{Circuit, Registrar, Subject, name};
//!
//! let circuit = Circuit::new();
//! let conduit = circuit.conduit::<caches::Sign>()?;
//! let (sender, receiver) = mpsc::channel();
//! conduit.subscribe(&circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, caches::Sign>| {
//!     let sender = sender.clone();
//!     registrar.receptor(move |sign| sender.send(sign).unwrap());
//! })?)?;
//!
//! let caches = caches::pool(&conduit);
//! let sessions = caches.get(name!("web.sessions")).unwrap();
//! sessions.lookup();
//! sessions.miss();
//! circuit.settle()?;
//! let heard: Vec<_> = receiver.try_iter().collect();
//! assert_eq!(heard, [caches::Sign::Lookup, caches::Sign::Miss]);
//!
//! // What signs say of the state of things. An act, such as a lookup, says nothing.
//! assert_eq!(heard[0].status(), None);
//! assert_eq!(heard[1].status(), Some(statuses::Sign::Degraded));
//! assert_eq!(heard[1].situation(), Some(situations::Sign::Warning));
//! # Ok::<(), tidemark_circuit::Error>(())
//! ```
//!
//! # Lifting
//!
//! Signs of a kind of subject are lifted to a common language: [`Sign::status`] says what a sign alone tells of its subject's
//! condition, if it tells anything, and [`Sign::situation`] how urgent that is. Both are tables and cost as much. What follows from
//! many signs (ratios, trends, agreement) is for operators to find out; the universal vocabularies are the words to say it in.
//!
//! # The vocabularies
//!
//! They are those of Humainary's Serventis, version 3.6: the same vocabularies, signs, dimensions, kinds of signs, and readings
//! as a status. Names are written as Rust writes them; of its keywords, `await` and `yield` are the methods `awaits` and `yields`,
//! and `DROP` is `dropped`; the dimension `SELF` of [`members`] is `Own`. These are this crate's own choice: which situation a status makes (Serventis leaves it open); that signs of
//! [`statuses`] are lifted to themselves; and the kinds of the universal signs. What Serventis has beyond that is not here:
//! readings as an operation or an outcome, sequencers, scorecards.
//!
//! | of what | vocabularies |
//! |---|---|
//! | anything | [`statuses`], [`situations`], [`operations`], [`outcomes`], [`systems`], [`trends`], [`surveys`], [`cycles`] |
//! | execution | [`tasks`], [`services`], [`processes`], [`transactions`], [`timers`], [`changes`] |
//! | synchronisation | [`locks`], [`latches`], [`atomics`] |
//! | what is scarce | [`resources`], [`leases`], [`pools`], [`exchanges`] |
//! | data | [`queues`], [`stacks`], [`caches`], [`pipelines`], [`messages`] |
//! | what passes | [`flows`], [`routers`], [`valves`], [`breakers`], [`guards`] |
//! | instruments | [`counters`], [`gauges`], [`probes`], [`sensors`], [`logs`], [`evals`] |
//! | who acts together | [`agents`], [`actors`], [`members`] |
//!
//! # Export
//!
//! With the feature `tracing` too, `trace` has everything that a conduit's instruments say go to `tracing`. There is no exporter for
//! OpenTelemetry.

#[macro_use]
mod vocabulary;
mod coordination;
mod data;
mod execution;
mod flow;
mod pooling;
mod synchronization;
mod template;
mod tool;
#[cfg(feature = "tracing")]
mod trace;
mod universal;

use std::fmt;
use std::hash::Hash;

pub use coordination::{actors, agents, members};
pub use data::{caches, messages, pipelines, queues, stacks};
pub use execution::{changes, processes, services, tasks, timers, transactions};
pub use flow::{breakers, flows, guards, routers, valves};
pub use pooling::{exchanges, leases, pools, resources};
pub use synchronization::{atomics, latches, locks};
pub use template::{cycles, surveys};
pub use tool::{counters, evals, gauges, logs, probes, sensors};
#[cfg(feature = "tracing")]
pub use trace::trace;
pub use universal::{operations, outcomes, situations, statuses, systems, trends};

/// One of a fixed set of words: a sign or a dimension.
pub trait Symbol: Copy + Eq + Ord + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// All of the set, in the order of their indexes.
    const ALL: &'static [Self];

    /// The word.
    fn name(self) -> &'static str;

    /// The place in [`Symbol::ALL`].
    fn index(self) -> usize;
}

/// What can be said of a kind of subject.
pub trait Sign: Symbol {
    /// What the vocabulary is called.
    const VOCABULARY: &'static str;

    /// Whether the sign says what was done, or what came of it.
    fn kind(self) -> Kind;

    /// What the sign alone says of its subject's condition, if anything.
    fn status(self) -> Option<statuses::Sign>;

    /// How urgent that condition is.
    fn situation(self) -> Option<situations::Sign> {
        self.status().map(statuses::Sign::urgency)
    }
}

/// What qualifies a sign.
pub trait Dimension: Symbol {
    /// Whether the members are steps from less to more, rather than peers. Then their order is that of their indexes.
    const ORDERED: bool;
}

/// What a sign is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Something was done.
    Operation,
    /// Something came of it.
    Outcome,
}

/// A sign, qualified by a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal<S, D> {
    /// What is said.
    pub sign: S,
    /// In what respect.
    pub dimension: D,
}

impl<S: Symbol, D: Symbol> Signal<S, D> {
    /// All signals of the vocabulary.
    pub fn all() -> impl Iterator<Item = Self> {
        S::ALL.iter().flat_map(|&sign| D::ALL.iter().map(move |&dimension| Self { sign, dimension }))
    }
}

impl<S: Symbol, D: Symbol> fmt::Display for Signal<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.sign, self.dimension)
    }
}

/// What instruments emit: a sign, or a signal.
pub trait Observation: Copy + fmt::Display + Send + 'static {
    /// The signs of the vocabulary.
    type Sign: Sign;

    /// What is said.
    fn sign(self) -> Self::Sign;

    /// In what respect, if the vocabulary has dimensions.
    fn dimension(self) -> Option<&'static str>;
}

impl<S: Sign, D: Dimension> Observation for Signal<S, D> {
    type Sign = S;

    fn sign(self) -> S {
        self.sign
    }

    fn dimension(self) -> Option<&'static str> {
        Some(self.dimension.name())
    }
}

impl statuses::Sign {
    /// How urgent the condition is.
    pub const fn urgency(self) -> situations::Sign {
        match self {
            Self::Converging | Self::Stable => situations::Sign::Normal,
            Self::Diverging | Self::Erratic | Self::Degraded => situations::Sign::Warning,
            Self::Defective | Self::Down => situations::Sign::Critical,
        }
    }
}
