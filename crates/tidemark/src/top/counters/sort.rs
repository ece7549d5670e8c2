//! The order of the counters that move most.

use clap::ValueEnum;

/// Orders, each with the highest value first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Sort {
    /// How often they move
    #[default]
    Moves,
    /// By how many units they move
    Units,
    /// How many of these units are never committed
    Churn,
}

impl Sort {
    /// Returns the keyword of `COUNTER.TOP … BY`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Moves => "MOVES",
            Self::Units => "UNITS",
            Self::Churn => "CHURN",
        }
    }
}
