//! Events of a watch.

use redis::Value;
use std::fmt;

/// An event of a [`Watch`](crate::Watch).
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The whole answer. Comes first, and again whenever emissions may be missing.
    Snapshot(Snapshot),
    /// The answer has changed.
    Emission(Emission),
}

/// The answer at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// LSN of the last record that the answer includes.
    pub lsn: u64,
    /// Answer of the read.
    pub value: Value,
    /// Why the snapshot was sent.
    pub reason: Reason,
}

/// A change of the answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Emission {
    /// LSN of the record that changed the answer. It is greater than that of the emission before.
    pub lsn: u64,
    /// Number of the emission: one more than that of the emission before, or 1 for the first of the
    /// subscription.
    pub seq: u64,
    /// New answer of the read. [`Value::ServerError`] if that is an error, for example when the key
    /// has another type now.
    pub value: Value,
}

/// Why a snapshot was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The watch begins.
    Begun,
    /// The server no longer retains the emissions after the last one that was received; those up to
    /// `floor` are gone.
    Stale {
        /// The LSN up to which emissions are gone.
        floor: u64,
    },
    /// The server does not know the subscription: it expired, or the server has lost its data or
    /// has other data.
    NotFound,
    /// The server's log ends before the last emission: a crash lost changes that had been emitted.
    TakenBack {
        /// LSN of the last record of the log.
        head: u64,
    },
    /// The numbers are not consecutive: emissions are missing, or other emissions have the same
    /// numbers.
    Gap {
        /// Number that the next emission should have.
        expected: u64,
        /// Number that it has.
        found: u64,
    },
}

impl Reason {
    /// Returns whether emissions may be missing between the snapshot and the event before it.
    pub fn emissions_may_be_missing(self) -> bool {
        self != Reason::Begun
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Begun => write!(f, "the watch begins"),
            Reason::Stale { floor } => write!(f, "emissions up to LSN {floor} are not retained any more"),
            Reason::NotFound => write!(f, "the server does not know the subscription"),
            Reason::TakenBack { head } => {
                write!(f, "the server's log ends at LSN {head}, before the last emission")
            }
            Reason::Gap { expected, found } => {
                write!(f, "emission {expected} was to come, but {found} did")
            }
        }
    }
}
