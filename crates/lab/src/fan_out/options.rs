//! Flags of `tidemark bench fan-out`.

use crate::duration;
use crate::target::{DEFAULT_PORT, Target};
use std::time::Duration;

/// Flags of `tidemark bench fan-out`; durations are written as `5s` or `50ms`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct FanOutOptions {
    /// Server host
    #[arg(long, default_value = "localhost")]
    pub host: String,
    /// Server port
    #[arg(long, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Password of the server
    #[arg(long, env = "TIDEMARK_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
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
    /// How long to listen for emissions that should not come, at the end
    #[arg(long, default_value = "50ms", value_parser = duration::parse)]
    pub poll_interval: Duration,
    /// Longest wait for a connection, an answer or all emissions of a round
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    pub max_wait: Duration,
    /// Print JSON
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(action = clap::ArgAction::Set)]
    pub json: bool,
}

const AFTER_HELP: &str = "\
Flags may be written with one dash (-subscribers 1000).
A round is timed from the sending of the SET to the moment when a subscriber's emission is read: the median subscriber's and the last
one's. One thread receives, and checks each emission. The server must allow one client more than there are subscribers
(--maxclients). The key fan-out-bench:RUN is removed at the end.
Exit codes: 0 every subscriber was sent every value once and in order; 1 one was not, or the run could not be made; 2 wrong flags.";

impl FanOutOptions {
    pub(super) fn target(&self) -> Target {
        Target { password: self.password.clone(), ..Target::new(&self.host, self.port) }
    }
}
