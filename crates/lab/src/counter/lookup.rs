//! How an operation finds its counter.

use clap::ValueEnum;
use serde::Serialize;
use std::fmt;

/// How an operation comes to its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Lookup {
    /// By its name, every time
    Name,
    /// By a handle that was asked for before
    Handle,
}

impl fmt::Display for Lookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Lookup::Name => "name",
            Lookup::Handle => "handle",
        })
    }
}
