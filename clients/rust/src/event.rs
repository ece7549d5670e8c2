//! What a watch tells.

use redis::Value;
use std::fmt;

/// What a [`Watch`](crate::Watch) tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The whole answer. It comes first, and again whenever emissions may be missing.
    Snapshot(Snapshot),
    /// The answer has changed.
    Emission(Emission),
}

/// The answer as it was at some moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The record of the server's log up to which the answer has everything.
    pub lsn: u64,
    /// What the read answers.
    pub value: Value,
    /// Why it comes.
    pub reason: Reason,
}

/// A change of the answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Emission {
    /// The record of the server's log that changed the answer. Each emission's is greater than that of the one before.
    pub lsn: u64,
    /// Its number: one more than that of the emission before, or 1 if it is the subscription's first.
    pub seq: u64,
    /// What the read answers from then on. [`Value::ServerError`] if that is an error, as when the key has got another type.
    pub value: Value,
}

/// Why a snapshot comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The watch begins.
    Begun,
    /// The server does not retain any more what came behind the last emission; those up to `floor` are gone.
    Stale {
        /// The LSN up to which emissions are gone.
        floor: u64,
    },
    /// The server does not know the subscription: nobody asked for it for too long, or its data is not that of before.
    NotFound,
    /// The server's log ends before the last emission: a crash took back what had been told.
    TakenBack {
        /// The LSN of the last record of the log.
        head: u64,
    },
    /// The numbers do not fit: emissions were left out, or others have taken their places.
    Gap {
        /// The number that the next emission had to have.
        expected: u64,
        /// The one that it has.
        found: u64,
    },
}

impl Reason {
    /// Whether emissions may be missing between the snapshot and what came before.
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
