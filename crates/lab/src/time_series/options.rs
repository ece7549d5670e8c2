//! Flags of the laboratory of series, after the original's configuration.

use crate::target::Target;
use clap::value_parser;
use serde::Serialize;
use std::path::PathBuf;

/// Flags of `tidemark bench series`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = AFTER_HELP)]
pub struct TimeSeriesOptions {
    /// Scenarios to run: parts of their names; * stands for anything, ^ and $ for the ends. All if none is given
    #[arg(value_name = "PATTERN")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) patterns: Vec<String>,
    /// List the scenarios and what they measure
    #[arg(short, long)]
    #[serde(skip)]
    pub(super) list: bool,
    /// Iterations that are counted, after one that is not
    #[arg(short, long, default_value_t = 100, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(super) iterations: u32,
    /// Iterations of the scenarios with a log in files
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(super) file_iterations: u32,
    /// Points of an iteration
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    pub(super) ingest_points: u64,
    /// Lookups of an iteration
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    pub(super) queries: u64,
    /// Series that grow in parallel, each by a thread of its own
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(super) parallel_series: u32,
    /// Points of each of them
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    pub(super) parallel_points: u64,
    /// Points of an iteration that are synced one by one
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    pub(super) synced_points: u64,
    /// Points, and lookups, of an iteration with faults of files: after each fault the log is opened again
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    pub(super) fault_points: u64,
    /// Commands of an iteration that are encoded and parsed
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    pub(super) round_trips: u64,
    /// Passwords of an iteration that are compared
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=POINTS_MAX))]
    pub(super) auth_verifications: u64,
    /// Series that are found by their labels
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(100..=POINTS_MAX))]
    pub(super) indexed_series: u64,
    /// Server to ingest into, as HOST:PORT: adds ingest/… and index/…, which replace the keys bench:series:…
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip)]
    pub(super) server: Option<Target>,
    /// Folder in which logs are written, each in a folder of its own that is removed [default: that for temporary files]
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dir: Option<PathBuf>,
    /// Measure set-up and release too, as the original does
    #[arg(long)]
    pub(super) like_tau: bool,
    /// Small scenarios: shows that everything runs, and gives no figures to go by
    #[arg(long)]
    pub(super) quick: bool,
    /// Print the results as JSON
    #[arg(long)]
    #[serde(skip)]
    pub(super) json: bool,
}

/// Most points of an iteration, so that they fit in memory.
const POINTS_MAX: u64 = 100_000_000;

const AFTER_HELP: &str = "\
Flags may be written with one dash (-iterations 20 -like-tau).
Exit codes: 0 measured, and every value was right; 1 a value was wrong or lost, or a scenario failed; 2 wrong flags.";

impl TimeSeriesOptions {
    /// Returns the options that apply: `--quick` makes everything small.
    pub(super) fn effective(&self) -> Self {
        if !self.quick {
            return self.clone();
        }
        TimeSeriesOptions {
            iterations: self.iterations.min(2),
            file_iterations: self.file_iterations.min(2),
            ingest_points: self.ingest_points.min(5_000),
            queries: self.queries.min(1_000),
            parallel_points: self.parallel_points.min(3_000),
            synced_points: self.synced_points.min(10),
            fault_points: self.fault_points.min(300),
            round_trips: self.round_trips.min(100),
            auth_verifications: self.auth_verifications.min(100),
            indexed_series: self.indexed_series.min(1_000),
            ..self.clone()
        }
    }
}
