//! The order of pools.

use super::reading::Summary;
use clap::ValueEnum;

/// Orders: the highest value first; names in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Sort {
    /// Draws a second
    #[default]
    Rate,
    /// Draws in all
    Draws,
    /// Open reservations
    Reservations,
    /// The key
    Name,
}

impl Sort {
    /// Returns the name of the order, as shown.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Rate => "draws a second",
            Self::Draws => "draws",
            Self::Reservations => "reservations",
            Self::Name => "name",
        }
    }

    /// Sorts pools; equal ones by name.
    pub(super) fn order(self, pools: &mut [Summary]) {
        pools.sort_by(|one, other| {
            let order = match self {
                Self::Rate => other.rate.unwrap_or(0.0).total_cmp(&one.rate.unwrap_or(0.0)),
                Self::Draws => other.draws.cmp(&one.draws),
                Self::Reservations => other.reservations.cmp(&one.reservations),
                Self::Name => std::cmp::Ordering::Equal,
            };
            order.then_with(|| one.key.cmp(&other.key))
        });
    }
}
