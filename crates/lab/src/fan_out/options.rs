//! Flags of `tidemark bench fan-out`.

use crate::options::{ReportOptions, ServerOptions, WaitOptions};
use serde::Serialize;

/// Flags of `tidemark bench fan-out`; durations are written as `5s` or `50ms`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("poll_interval", |flag| flag.help("How long to listen for emissions that should not come, at the end")))]
#[command(mut_arg("max_wait", |flag| flag.help("Longest wait for a connection, an answer or all emissions of a round")))]
pub struct FanOutOptions {
    /// Which server is measured.
    #[command(flatten)]
    #[serde(flatten)]
    pub server: ServerOptions,
    /// Connections that watch the key
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub subscribers: u32,
    /// Measured rounds, in each of which the key is set once
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// Rounds before them that are checked and not measured
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub warmup_rounds: u32,
    /// Size of the values
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=65_536))]
    pub value_bytes: u32,
    /// Measure in turns what the system takes to send as many bytes to as many connections of a process that does nothing else
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    #[arg(action = clap::ArgAction::Set)]
    pub floor: bool,
    /// How long subscribers wait.
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitOptions,
    /// How what was found is said.
    #[command(flatten)]
    #[serde(skip)]
    pub report: ReportOptions,
}

const AFTER_HELP: &str = "\
Flags may be written with one dash (-subscribers 1000).
A round is timed from the sending of the SET to the moment when a subscriber's emission is read: the median subscriber's and the last
one's. One thread receives, and checks each emission. The server must allow one client more than there are subscribers
(--maxclients). The key fan-out-bench:RUN is removed at the end.
Exit codes: 0 every subscriber was sent every value once and in order; 1 one was not, or the run could not be made; 2 wrong flags.";
