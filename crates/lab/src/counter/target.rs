//! Where commits go, as flags say it.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A store by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// In memory, and every call takes the write delay.
    Simulated,
    /// In memory.
    Memory,
    /// Nowhere.
    Nowhere,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "delay" => Ok(Target::Simulated),
            "memory" => Ok(Target::Memory),
            "none" => Ok(Target::Nowhere),
            _ => Err(format!("there is no store {text:?}; there are delay, memory and none")),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Target::Simulated => "delay",
            Target::Memory => "memory",
            Target::Nowhere => "none",
        })
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
