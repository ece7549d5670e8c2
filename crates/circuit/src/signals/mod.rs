//! Vocabularies for the actions and conditions of systems: typed signals instead of numbers and
//! texts.
//!
//! A *sign* is one of the few observations that a kind of subject can have: a cache has
//! [`Hit`](caches::Sign::Hit) or [`Miss`](caches::Sign::Miss). If the meaning of a sign depends on
//! a point of view, a *dimension* qualifies it, and the two make a [`Signal`]: a service's failure
//! as the [`Caller`](services::Dimension::Caller) or the [`Callee`](services::Dimension::Callee)
//! sees it. A sign takes one byte and a signal two. Code emits them through *instruments*, which
//! have one method per sign. An instrument is a pipe of a conduit, so a subscriber to the conduit
//! receives the signs of all instruments of the kind, with their names and in order.
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
//! Signs of different kinds of subjects are lifted to common vocabularies. For a single sign this
//! is a table lookup: [`Sign::status`] is the condition of its subject, if it implies one,
//! [`Sign::situation`] the urgency of that, [`Sign::outcome`] the decision, and
//! [`Episodic::operation`] its part of an episode. A [`Map`] defines other readings of a
//! vocabulary. Flows evaluate series of signs; [`Conduit::pool`](crate::Conduit::pool) puts one in
//! front of each of a conduit's pipes:
//!
//! | flow | question | output |
//! |---|---|---|
//! | [`scorecards::flow`], [`scorecards::score`] | which status has the most signs? | a status and its confidence |
//! | [`sequencers::episodes`], [`sequencers::machine`] | what does their order imply? | a status |
//! | [`cycles::flow`] | does a sign recur? | the sign and how it recurs |
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
//! They are those of Humainary's Serventis, version 3.6: the same vocabularies, signs, dimensions,
//! kinds of signs, readings as a status, an operation and an outcome, and the same scorecards,
//! sequencers and cycles with the same constants. Names follow Rust's conventions. Of its keywords,
//! `await` and `yield` are the methods `awaits` and `yields`. `DROP` is `dropped`, and the
//! dimension `SELF` of [`members`] is `Own`.
//!
//! Three things are choices of this crate: the situation of each status (Serventis leaves it open);
//! that signs of [`statuses`], [`operations`] and [`outcomes`] are lifted to themselves; and the
//! kinds of the universal signs.
//!
//! | subject | vocabularies |
//! |---|---|
//! | anything | [`statuses`], [`situations`], [`operations`], [`outcomes`], [`systems`], [`trends`], [`surveys`], [`cycles`] |
//! | execution | [`tasks`], [`services`], [`processes`], [`transactions`], [`timers`], [`changes`] |
//! | synchronisation | [`locks`], [`latches`], [`atomics`] |
//! | limited resources | [`resources`], [`leases`], [`pools`], [`exchanges`] |
//! | data | [`queues`], [`stacks`], [`caches`], [`pipelines`], [`messages`] |
//! | traffic | [`flows`], [`routers`], [`valves`], [`breakers`], [`guards`] |
//! | instruments | [`counters`], [`gauges`], [`probes`], [`sensors`], [`logs`], [`evals`] |
//! | cooperation | [`agents`], [`actors`], [`members`] |
//!
//! # Export
//!
//! With the feature `tracing` as well, `trace` sends the emissions of a conduit's instruments to
//! `tracing`, as events. With the feature `opentelemetry`, `opentelemetry::Exporter` counts them
//! for OpenTelemetry.

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

/// A member of a fixed set: a sign or a dimension.
pub trait Symbol: Copy + Eq + Ord + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// All members, in the order of their indexes.
    const ALL: &'static [Self];

    /// Returns the name of the member.
    fn name(self) -> &'static str;

    /// Returns the index in [`Symbol::ALL`].
    fn index(self) -> usize;
}

/// An observation of a kind of subject.
pub trait Sign: Symbol {
    /// Name of the vocabulary.
    const VOCABULARY: &'static str;

    /// Returns whether the sign is an action or a result.
    fn kind(self) -> Kind;

    /// Returns the condition that the sign alone implies, if it implies one.
    fn status(self) -> Option<statuses::Sign>;

    /// Returns the urgency of that condition.
    fn situation(self) -> Option<situations::Sign> {
        self.status().map(statuses::Sign::urgency)
    }

    /// Returns the decision that the sign implies, if it implies one.
    fn outcome(self) -> Option<outcomes::Sign> {
        None
    }
}

/// A sign of episodes, which have a beginning and an end: work, the use of a resource, a promise.
///
/// Vocabularies without such an order do not implement this, nor do those with nested episodes.
pub trait Episodic: Sign {
    /// Returns the sign's part of an episode.
    fn operation(self) -> operations::Sign;
}

/// A qualifier of signs.
pub trait Dimension: Symbol {
    /// Whether the members are steps from less to more, in the order of their indexes, or peers.
    const ORDERED: bool;
}

/// The kind of a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An action.
    Operation,
    /// The result of an action.
    Outcome,
}

/// A sign, qualified by a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal<S, D> {
    /// The sign.
    pub sign: S,
    /// The qualifier of the sign.
    pub dimension: D,
}

impl<S: Symbol, D: Symbol> fmt::Display for Signal<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.sign, self.dimension)
    }
}

/// What an instrument emits: a sign or a signal.
pub trait Observation: Copy + Eq + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The signs of the vocabulary.
    type Sign: Sign;

    /// Number of observations of the vocabulary.
    const COUNT: usize;

    /// Iterates over all observations of the vocabulary, in the order of their ordinals.
    fn all() -> impl Iterator<Item = Self>;

    /// Returns the index among all observations of the vocabulary, less than
    /// [`Observation::COUNT`].
    fn ordinal(self) -> usize;

    /// Returns the sign.
    fn sign(self) -> Self::Sign;

    /// Returns the name of the dimension, if the vocabulary has dimensions.
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
    /// Returns the urgency of the condition.
    pub const fn urgency(self) -> situations::Sign {
        match self {
            Self::Converging | Self::Stable => situations::Sign::Normal,
            Self::Diverging | Self::Erratic | Self::Degraded => situations::Sign::Warning,
            Self::Defective | Self::Down => situations::Sign::Critical,
        }
    }
}
