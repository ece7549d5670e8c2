//! Flags of `tidemark bench reconnect`.

use crate::options::{ReportOptions, ServerOptions, WaitOptions};
use serde::Serialize;

/// Flags of `tidemark bench reconnect`; durations are written as `5s` or `50ms`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = AFTER_HELP)]
pub struct ReconnectOptions {
    /// Which server is measured.
    #[command(flatten)]
    #[serde(flatten)]
    pub server: ServerOptions,
    /// Reconnections, each with a subscription of its own
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Emissions received before the subscriber leaves
    #[arg(long, default_value_t = 5)]
    pub warmup_emissions: u32,
    /// Updates made while the subscriber is away, all of which it must get when it is back
    #[arg(long, default_value_t = 10)]
    pub updates_while_away: u32,
    /// How long subscribers wait.
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitOptions,
    /// Begins the names of the keys and of the subscribers' connections
    #[arg(long, default_value = "reconnect-bench")]
    pub client_prefix: String,
    /// How what was found is said.
    #[command(flatten)]
    #[serde(skip)]
    pub report: ReportOptions,
}

const AFTER_HELP: &str = "\
Flags may be written with one dash (-iterations 10).
The reconnection is the TCP connection and one HELLO; resuming is one EMITRECONNECT. The keys PREFIX-key-N are removed at the
end.
Exit codes: 0 every update was emitted once and in order; 1 some was not, or the run could not be made; 2 wrong flags.";
