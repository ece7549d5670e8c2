//! The report of a run: one JSON schema for all scenarios, which docs/benchmarks.md describes.

mod figure;
mod verdict;

pub use figure::{Bucket, Figure};
pub(crate) use figure::{Figures, Measured};
pub use verdict::Verdict;

use crate::machine::Machine;
use crate::wall_time::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::time::SystemTime;

/// Version of the schema. A field that is removed, renamed or changed in meaning increments it.
pub const SCHEMA: u32 = 1;

/// What `--json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`SCHEMA`]
    pub schema: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Version of the program.
    pub version: String,
    /// Start of the measured time, RFC 3339.
    pub start_time: String,
    /// End of the measured time, RFC 3339.
    pub end_time: String,
    /// Whether a signal ended the run early.
    pub interrupted: bool,
    /// The machine of the program that measures.
    pub machine: Machine,
    /// The measured servers; empty if the scenario runs in its own process.
    pub servers: Vec<MeasuredServer>,
    /// Flags by name, with their defaults; without passwords, and without flags that have no value.
    pub options: Map<String, Value>,
    /// Results.
    pub figures: Vec<Figure>,
    /// Warnings about the conditions of the measurement.
    pub notes: Vec<String>,
    /// Whether everything was right.
    pub verdict: Verdict,
}

/// A server as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredServer {
    /// Its name in [`Figure::of`], if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Host and port.
    pub address: String,
    /// Product and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its settings for durability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<String>,
}

/// The parts of a report that the results of a run decide.
pub(crate) struct Contents {
    pub(crate) start: SystemTime,
    pub(crate) end: SystemTime,
    pub(crate) interrupted: bool,
    pub(crate) machine: Machine,
    pub(crate) servers: Vec<MeasuredServer>,
    pub(crate) figures: Figures,
    pub(crate) notes: Vec<String>,
    pub(crate) verdict: Verdict,
}

/// The results of a run. Their text is for people.
pub(crate) trait Results: Display {
    /// Returns the same for programs.
    fn contents(&self) -> Contents;
}

impl Report {
    /// Creates the report of a scenario that ran with these options.
    pub(crate) fn new(scenario: &str, options: &impl Serialize, contents: Contents) -> anyhow::Result<Self> {
        Ok(Report {
            schema: SCHEMA,
            scenario: scenario.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            start_time: rfc3339(contents.start),
            end_time: rfc3339(contents.end),
            interrupted: contents.interrupted,
            machine: contents.machine,
            servers: contents.servers,
            options: serde_json::from_value(serde_json::to_value(options)?)?,
            figures: contents.figures.into_list(),
            notes: contents.notes,
            verdict: contents.verdict,
        })
    }
}

#[cfg(all(test, feature = "wire"))]
mod tests;
