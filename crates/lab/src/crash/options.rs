//! Flags of `tidemark bench crash`.

use crate::duration;
use crate::options::{ReportOptions, ServerOptions, WaitOptions};
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Flags of `tidemark bench crash`; durations are written as `10s` or `20ms`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("host", |flag| flag.help(HOST_HELP)))]
#[command(mut_arg("port", |flag| flag.help("Server port; a server of our own takes a free one if it is 0")))]
#[command(mut_arg("password", |flag| flag.help("Password of the server of the scenario client")))]
#[command(mut_arg("poll_interval", |flag| flag.default_value("20ms")))]
#[command(mut_arg("max_wait", |flag| flag.default_value("10s").help("Longest wait for an answer or an emission")))]
pub struct CrashOptions {
    /// The server of the scenario client.
    #[command(flatten)]
    #[serde(flatten)]
    pub server: ServerOptions,
    /// Binary of the server to kill; this program itself if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "path_if_given")]
    pub binary: Option<PathBuf>,
    /// Where the servers' data goes, each into a directory of its own, which stays if something was wrong
    #[arg(long, default_value = ".crash-recovery-bench")]
    #[serde(serialize_with = "path")]
    pub base_dir: PathBuf,
    /// Crashes, each with subscriptions of its own
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Updates per iteration
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    pub updates: u32,
    /// Watched keys, which take the updates in turns
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub keys: u32,
    /// Pause between two updates; 0s writes without a pause
    #[arg(long, default_value = "5ms", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub update_interval: Duration,
    /// Who crashes
    #[arg(long, value_enum, default_value = "client")]
    pub scenario: CrashKind,
    /// How long a client that has crashed stays away in the scenario client
    #[arg(long, default_value = "200ms", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub away: Duration,
    /// How long subscribers wait.
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitOptions,
    /// Longest time that a server may take to answer after its start
    #[arg(long, default_value = "2s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub stabilize_wait: Duration,
    /// How what was found is said.
    #[command(flatten)]
    #[serde(skip)]
    pub report: ReportOptions,
    /// Seed of the moments at which it crashes; the current time if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

const HOST_HELP: &str =
    "Server host of the scenario client; the others start a server of their own on this machine";
const AFTER_HELP: &str = "\
Flags may be written with one dash (-scenario server).
Every update is a SET with DURABLE of a value that no other update has. Recovery is timed to the first emission after the
crash: from the kill of the server, or from the moment when the client dials again. The keys are removed at the end.
Exit codes: 0 every update was emitted exactly once and in order; 1 some was not, or the run could not be made; 2 wrong flags.";

/// Serializes a path as text, whatever bytes it has.
fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn path_if_given<S: Serializer>(given: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    given.as_deref().map(Path::display).map(|path| path.to_string()).serialize(serializer)
}

/// Who crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CrashKind {
    /// The subscriber, with emissions on their way to it; the server is one that runs already
    Client,
    /// The server, by SIGKILL; it is started again on the same port and data
    Server,
    /// Both at once
    Both,
}

impl CrashKind {
    /// The word for it, as it is given and reported.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CrashKind::Client => "client",
            CrashKind::Server => "server",
            CrashKind::Both => "both",
        }
    }

    pub(super) fn kills_server(self) -> bool {
        self != CrashKind::Client
    }

    pub(super) fn crashes_client(self) -> bool {
        self != CrashKind::Server
    }
}

impl CrashOptions {
    /// How long writer and subscriber go on trying to reach a server that was killed.
    pub(super) fn reconnect_patience(&self) -> Duration {
        self.stabilize_wait.saturating_add(self.wait.max_wait)
    }
}
