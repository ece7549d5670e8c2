//! Flags that several scenarios have. A scenario that means something else by one of them says so where it takes them over.

use crate::duration;
use crate::target::{DEFAULT_PORT, Target};
use serde::Serialize;
use std::time::Duration;

/// Which server is measured.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct ServerOptions {
    /// Server host
    #[arg(long, default_value = "localhost")]
    pub host: String,
    /// Server port
    #[arg(long, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Password of the server
    #[arg(long, env = "TIDEMARK_PASSWORD", hide_env_values = true)]
    #[serde(skip)]
    pub password: Option<String>,
}

impl ServerOptions {
    pub(crate) fn target(&self) -> Target {
        Target { password: self.password.clone(), ..Target::new(&self.host, self.port) }
    }
}

/// How long a subscriber waits.
#[derive(Clone, Copy, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WaitOptions {
    /// How long to listen for emissions that should not come; pushes are not polled for
    #[arg(long, default_value = "50ms", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub poll_interval: Duration,
    /// Longest wait for a connection, an answer or an emission
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub max_wait: Duration,
}

/// How what was found is said.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ReportOptions {
    /// Print JSON
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(action = clap::ArgAction::Set)]
    pub json: bool,
}
