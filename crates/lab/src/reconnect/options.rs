//! Flags of `tidemark bench reconnect`.

use crate::duration;
use crate::target::{DEFAULT_PORT, Target};
use std::time::Duration;

/// Flags of `tidemark bench reconnect`; durations are written as `5s` or `50ms`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReconnectOptions {
    /// Server host
    #[arg(long, default_value = "localhost")]
    pub host: String,
    /// Server port
    #[arg(long, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Password of the server
    #[arg(long, env = "TIDEMARK_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Reconnections, each with a subscription of its own
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Emissions received before the subscriber leaves
    #[arg(long, default_value_t = 5)]
    pub warmup_emissions: u32,
    /// Updates made while the subscriber is away, all of which it must get when it is back
    #[arg(long, default_value_t = 10)]
    pub updates_while_away: u32,
    /// How long to listen for emissions that should not come; pushes are not polled for
    #[arg(long, default_value = "50ms", value_parser = duration::parse)]
    pub poll_interval: Duration,
    /// Longest wait for a connection, an answer or an emission
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    pub max_wait: Duration,
    /// Begins the names of the keys and of the subscribers' connections
    #[arg(long, default_value = "reconnect-bench")]
    pub client_prefix: String,
    /// Print JSON
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(action = clap::ArgAction::Set)]
    pub json: bool,
}

const AFTER_HELP: &str = "\
Flags may be written with one dash (-iterations 10).
The reconnection is the TCP connection and one HELLO; resuming is one EMITRECONNECT. The keys PREFIX-key-N are removed at the
end.
Exit codes: 0 every update was emitted once and in order; 1 some was not, or the run could not be made; 2 wrong flags.";

impl ReconnectOptions {
    pub(super) fn target(&self) -> Target {
        Target { password: self.password.clone(), ..Target::new(&self.host, self.port) }
    }
}
