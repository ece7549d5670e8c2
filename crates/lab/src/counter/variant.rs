//! Measured variants.

use clap::ValueEnum;
use serde::Serialize;
use std::fmt;

/// A way to count, or to limit, under churn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Counters with the relaxed promise: what cancels is never stored, and at the cap whoever moves one commits
    Vsa,
    /// The same with a limit: a plus takes, a minus refunds
    Quota,
    /// Counters with the exact promise and a limit: a block is stored before it is granted
    Exact,
    /// A word per key, and a call to the store for every operation
    Atomic,
    /// A word per key, and the operations stored in batches, each as a write
    Batch,
    /// A PN-counter on several replicas that merge, and a call for every operation
    Crdt,
    /// A token bucket per key, read from the store and written to it for every operation
    Token,
    /// A leaky bucket per key, read from the store and written to it for every operation
    Leaky,
    /// A limiter per key in one word, without a store; nothing is given back
    Gcra,
    /// The same by the crate governor
    #[cfg(feature = "peers")]
    Governor,
}

impl Variant {
    /// Returns its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Variant::Vsa => "vsa",
            Variant::Quota => "quota",
            Variant::Exact => "exact",
            Variant::Atomic => "atomic",
            Variant::Batch => "batch",
            Variant::Crdt => "crdt",
            Variant::Token => "token",
            Variant::Leaky => "leaky",
            Variant::Gcra => "gcra",
            #[cfg(feature = "peers")]
            Variant::Governor => "governor",
        }
    }

    /// Returns whether an operation may be refused because of a limit.
    #[must_use]
    pub fn is_gated(self) -> bool {
        match self {
            Variant::Vsa | Variant::Atomic | Variant::Batch | Variant::Crdt => false,
            Variant::Quota | Variant::Exact | Variant::Token | Variant::Leaky | Variant::Gcra => true,
            #[cfg(feature = "peers")]
            Variant::Governor => true,
        }
    }

    /// Returns whether it commits in the background, so that units may be uncommitted.
    #[must_use]
    pub fn commits(self) -> bool {
        matches!(self, Variant::Vsa | Variant::Quota | Variant::Exact)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
