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
//! Signs of a kind of subject are lifted to a common language. What a sign alone tells is a table and costs as much:
//! [`Sign::status`] is how its subject is, if it tells, [`Sign::situation`] how urgent that is, [`Sign::outcome`] what was decided, and
//! [`Episodic::operation`] which part of an episode it is. Other readings of a vocabulary are a [`Map`]. What follows from many signs is
//! for flows to find out, each put in front of a conduit's pipes by [`Conduit::pool`](crate::Conduit::pool):
//!
//! | flow | question | what comes out |
//! |---|---|---|
//! | [`scorecards::flow`], [`scorecards::score`] | which status has the most signs for it? | a status and how sure it is |
//! | [`sequencers::episodes`], [`sequencers::machine`] | what does their order prove? | a status |
//! | [`cycles::flow`] | does a sign come back? | the sign and how |
//!
//! ```
//! use std::sync::mpsc;
//! use tidemark_circuit::signals::{locks, sequencers, statuses};
//! use tidemark_circuit::{Circuit, Registrar, Subject, name};
//!
//! let circuit = Circuit::new();
//! let locks = circuit.conduit::<locks::Sign>()?;
//! let statuses = circuit.conduit::<statuses::Sign>()?;
//! // What is said of each lock goes through a sequencer of its own to the status of the same name.
//! let lifted = statuses.pool(&sequencers::episodes());
//! locks.subscribe(&circuit.subscriber_to(lifted)?)?;
//!
//! let (sender, receiver) = mpsc::channel();
//! statuses.subscribe(&circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, statuses::Sign>| {
//!     let sender = sender.clone();
//!     registrar.receptor(move |status| sender.send(status).unwrap());
//! })?)?;
//!
//! let locks = locks::pool(&locks);
//! let lock = locks.get(name!("accounts")).unwrap();
//! lock.acquire();
//! lock.grant();
//! lock.release();
//! lock.release(); // without having been asked for
//! circuit.settle()?;
//! use statuses::Sign::{Converging, Defective, Diverging, Stable};
//! assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [Diverging, Converging, Stable, Defective]);
//! # Ok::<(), tidemark_circuit::Error>(())
//! ```
//!
//! # The vocabularies
//!
//! They are those of Humainary's Serventis, version 3.6: the same vocabularies, signs, dimensions, kinds of signs, readings as a
//! status, an operation and an outcome, and the same scorecards, sequencers and cycles with the same constants. Names are written as
//! Rust writes them; of its keywords, `await` and `yield` are the methods `awaits` and `yields`, and `DROP` is `dropped`; the dimension
//! `SELF` of [`members`] is `Own`. These are this crate's own choice: which situation a status makes (Serventis leaves it open);
//! that signs of [`statuses`], [`operations`] and [`outcomes`] are lifted to themselves; and the kinds of the universal signs.
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
//! With the feature `tracing` too, `trace` has everything that a conduit's instruments say go to `tracing`, as events. With the feature
//! `opentelemetry`, `opentelemetry::Exporter` counts it for OpenTelemetry.

#[macro_use]
mod vocabulary;
mod coordination;
mod data;
mod execution;
mod flow;
mod map;
#[cfg(feature = "opentelemetry")]
pub mod opentelemetry;
mod pooling;
pub mod scorecards;
pub mod sequencers;
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
pub use map::{Map, SignMap, SignalMap};
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

    /// What the sign says was decided, if anything was.
    fn outcome(self) -> Option<outcomes::Sign> {
        None
    }
}

/// A sign of what has a beginning and an end: of work, of something that is asked for and given back, of a promise.
///
/// Vocabularies whose signs are not in such an order do not have this, nor those whose episodes are within each other.
pub trait Episodic: Sign {
    /// Which part of an episode the sign is.
    fn operation(self) -> operations::Sign;
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

impl<S: Symbol, D: Symbol> fmt::Display for Signal<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.sign, self.dimension)
    }
}

/// What instruments emit: a sign, or a signal.
pub trait Observation: Copy + Eq + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The signs of the vocabulary.
    type Sign: Sign;

    /// How many there are in the vocabulary.
    const COUNT: usize;

    /// All of the vocabulary, in the order of their ordinals.
    fn all() -> impl Iterator<Item = Self>;

    /// The place among all of the vocabulary, less than [`Observation::COUNT`].
    fn ordinal(self) -> usize;

    /// What is said.
    fn sign(self) -> Self::Sign;

    /// In what respect, if the vocabulary has dimensions.
    fn dimension(self) -> Option<&'static str>;
}

impl<S: Sign, D: Dimension> Observation for Signal<S, D> {
    type Sign = S;

    const COUNT: usize = S::ALL.len() * D::ALL.len();

    fn all() -> impl Iterator<Item = Self> {
        S::ALL.iter().flat_map(|&sign| D::ALL.iter().map(move |&dimension| Self { sign, dimension }))
    }

    fn ordinal(self) -> usize {
        self.sign.index() * D::ALL.len() + self.dimension.index()
    }

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
