//! How what was set aside has ended.

use std::fmt;

/// How a reservation has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The draws count.
    Confirmed,
    /// What was drawn is in stock again.
    Cancelled,
    /// Its time was over; what was drawn is in stock again.
    Expired,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirmed => "was confirmed",
            Self::Cancelled => "was cancelled",
            Self::Expired => "has expired",
        })
    }
}
