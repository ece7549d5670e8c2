//! How a reservation ended.

use std::fmt;

/// How a reservation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The draws count.
    Confirmed,
    /// The units are back in stock.
    Cancelled,
    /// The deadline passed; the units are back in stock.
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
