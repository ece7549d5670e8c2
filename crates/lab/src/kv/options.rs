//! Flags of `tidemark bench kv`.

use super::mix::Mix;
use crate::duration;
use crate::options::{ReportOptions, ServerOptions};
use crate::target::Target;
use serde::Serialize;
use std::time::Duration;

/// Flags of `tidemark bench kv`; durations are written as `30s`, `100ms` or `1m30s`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("password", |flag| flag.help("Password of the server at --host")))]
#[allow(clippy::struct_excessive_bools)] // Switches of a command line are bools.
pub struct KvOptions {
    /// Which server is measured.
    #[command(flatten)]
    #[serde(flatten)]
    pub server: ServerOptions,
    /// Measured time
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub duration: Duration,
    /// Load before the measured time
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub warmup: Duration,
    /// TCP connections
    #[arg(long, default_value_t = 16)]
    pub conns: usize,
    /// Concurrent workers; worker w uses connection w modulo --conns, and each keeps one request in flight
    #[arg(long, default_value_t = 16)]
    pub workers: usize,
    /// Requests that each worker keeps in flight
    #[arg(long, default_value_t = 1)]
    pub pipeline: usize,
    /// Threads that drive the connections; half of the cores if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Distinct keys, named bench:key:N
    #[arg(long, default_value_t = 100_000)]
    pub keyspace: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 16)]
    pub value_size: usize,
    /// Keys written before the warm-up; 10 per worker if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<u64>,
    /// GET:SET ratio
    #[arg(long, default_value = "50:50")]
    pub mix: Mix,
    /// Commands to send
    #[arg(long, value_enum, ignore_case = true, default_value = "GETSET")]
    pub cmd: CommandMix,
    /// Append DURABLE to every SET: answered only after the sync
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(action = clap::ArgAction::Set)]
    pub durable_set: bool,
    /// Probe the latency that a bystander sees: a PING at an interval on a connection of its own
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    #[arg(action = clap::ArgAction::Set)]
    pub reactive: bool,
    /// Interval of the probe
    #[arg(long, default_value = "100ms", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub reactive_interval: Duration,
    /// Measure emission latency: from SET to the push that it causes; every command is then a SET of a watched key
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(action = clap::ArgAction::Set)]
    pub reactive_bench: bool,
    /// Watching clients of the emission benchmark
    #[arg(long, default_value_t = 1)]
    pub reactive_watchers: usize,
    /// Watched keys of the emission benchmark, named bench:watch:key:N
    #[arg(long, default_value_t = 10_000)]
    pub reactive_keyspace: u64,
    /// SETs whose emission is awaited at once; beyond it SETs go out untracked
    #[arg(long, default_value_t = 10_000)]
    pub emit_max_inflight: usize,
    /// What brings a SET to the watchers of the emission benchmark
    #[arg(long, value_enum, default_value = "watch")]
    pub emit_by: EmitBy,
    /// What brings a SET to the watchers on the server of --against
    #[arg(long, value_enum, default_value = "publish")]
    pub against_emit_by: EmitBy,
    /// Longest wait for a connection, a reply or the last emissions
    #[arg(long, default_value = "5s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub op_timeout: Duration,
    /// Open loop: requests per second, sent when due; latency counts from then, not from the sending
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Measure this server too, in turns, and report the ratio: redis://host:port
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Target>,
    /// Start a cluster of three members and one server alone, each change synced before its answer, and measure both
    /// in turns, with etcd if it is installed. Their data goes to the folder for temporary files (TMPDIR)
    #[arg(long, conflicts_with_all = ["host", "port", "password", "against", "durable_set"])]
    pub cluster: bool,
    /// Rounds of --against and --cluster; each runs every server once
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// How what was found is said.
    #[command(flatten)]
    #[serde(skip)]
    pub report: ReportOptions,
    /// Seed of the random keys and commands; the current time if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

const AFTER_HELP: &str = "\
Flags may be written with one dash (-duration 30s).
The scenario removes the keys bench:key:0 to bench:key:N from the server before it starts, and with --reactive-bench
bench:watch:key:0 to bench:watch:key:N.
Exit codes: 0 every operation succeeded, and every awaited emission came once and in order; 1 some did not, or the run could
not be made; 2 wrong flags.";

/// What brings a change to those who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EmitBy {
    /// GET.WATCH of every key: the server sends what has changed, numbered
    Watch,
    /// A PUBLISH behind every SET, as with servers that do not send changes by themselves
    Publish,
}

impl EmitBy {
    /// Returns the command name that reports show.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            EmitBy::Watch => "GET.WATCH",
            EmitBy::Publish => "PUBLISH",
        }
    }
}

/// Which commands the load sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CommandMix {
    /// GET and SET in the proportion of the mix
    #[value(name = "GETSET")]
    GetSet,
    /// GET only
    #[value(name = "GET")]
    Get,
    /// SET only
    #[value(name = "SET")]
    Set,
    /// PING only
    #[value(name = "PING")]
    Ping,
}

/// An invalid combination of flags, and what to use instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A count or duration outside its limits.
    #[error("--{flag} must be {expected}")]
    OutOfRange {
        /// The flag's name.
        flag: &'static str,
        /// The accepted range.
        expected: &'static str,
    },
}

const CONNECTIONS_MAX: usize = 50_000;
const VALUE_BYTES_MAX: usize = 512 << 20;
/// Limit of requests in flight over all connections.
const IN_FLIGHT_MAX: usize = 1 << 24;

impl KvOptions {
    /// Checks the constraints that the types do not express.
    pub fn validate(&self) -> Result<(), OptionsError> {
        let in_flight = self.workers.saturating_mul(self.pipeline);
        let rules = [
            ("conns", "from 1 to 50000", (1..=CONNECTIONS_MAX).contains(&self.conns)),
            (
                "workers",
                "at least 1, and at most 16777216 with --pipeline",
                self.workers > 0 && in_flight <= IN_FLIGHT_MAX,
            ),
            ("pipeline", "at least 1", self.pipeline > 0),
            ("threads", "at least 1", self.threads != Some(0)),
            ("keyspace", "at least 1", self.keyspace > 0),
            ("value-size", "at most 536870912", self.value_size <= VALUE_BYTES_MAX),
            ("duration", "longer than 0", !self.duration.is_zero()),
            ("reactive-interval", "longer than 0", !self.reactive_interval.is_zero()),
            ("op-timeout", "longer than 0", !self.op_timeout.is_zero()),
            ("reactive-watchers", "at least 1", self.reactive_watchers > 0),
            ("reactive-keyspace", "at least 1", self.reactive_keyspace > 0),
            ("rate", "from 0.001 to 10000000", self.rate.is_none_or(|rate| (0.001..=1e7).contains(&rate))),
            (
                "rounds",
                "from 2 to 1000: one round says nothing about the spread",
                (2..=1000).contains(&self.rounds),
            ),
        ];
        if let Some((flag, expected, _)) = rules.iter().find(|(.., holds)| !holds) {
            return Err(OptionsError::OutOfRange { flag, expected });
        }
        Ok(())
    }

    /// Returns the number of threads that drive the load: half of the cores, the rest is for a
    /// local server.
    pub(super) fn driving_threads(&self) -> usize {
        let given = self.threads.unwrap_or_else(|| crate::machine::cores() / 2);
        given.clamp(1, self.conns.max(1))
    }

    pub(super) fn preloaded_keys(&self) -> u64 {
        let wanted = self.preload.unwrap_or(self.workers as u64 * 10);
        wanted.min(self.keyspace)
    }

    /// Returns the number of requests that connection `index` keeps in flight.
    pub(super) fn slots(&self, index: usize) -> usize {
        let workers = self.workers / self.conns + usize::from(index < self.workers % self.conns);
        workers * self.pipeline
    }

    pub(super) fn command_name(&self) -> &'static str {
        match self.cmd {
            // Every command is then a SET of a watched key.
            _ if self.reactive_bench => "SET",
            CommandMix::GetSet => "GETSET",
            CommandMix::Get => "GET",
            CommandMix::Set => "SET",
            CommandMix::Ping => "PING",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandMix, KvOptions, OptionsError};
    use crate::test_run;
    use std::time::Duration;

    fn parse(flags: &[&str]) -> KvOptions {
        test_run::options(flags)
    }

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let options = parse(&[]);
        assert_eq!((options.server.host.as_str(), options.server.port), ("localhost", 7379));
        assert_eq!((options.duration, options.warmup), (Duration::from_secs(30), Duration::from_secs(5)));
        assert_eq!(
            (options.conns, options.workers, options.keyspace, options.value_size),
            (16, 16, 100_000, 16)
        );
        assert_eq!((options.mix.get, options.mix.set, options.cmd), (50, 50, CommandMix::GetSet));
        assert!(options.reactive && !options.reactive_bench && !options.durable_set && !options.report.json);
        assert_eq!(
            (options.reactive_watchers, options.reactive_keyspace, options.emit_max_inflight),
            (1, 10_000, 10_000)
        );
        assert_eq!(options.op_timeout, Duration::from_secs(5));
        assert_eq!(options.validate(), Ok(()));
    }

    #[test]
    fn switches_take_a_value_or_none() {
        assert!(parse(&["--durable-set"]).durable_set);
        assert!(!parse(&["--reactive=false"]).reactive);
        assert!(parse(&["--reactive=true", "--json"]).report.json);
        assert_eq!(parse(&["--cmd", "set"]).cmd, CommandMix::Set);
    }

    #[test]
    fn workers_share_the_connections_evenly() {
        let options = parse(&["--conns", "4", "--workers", "10", "--pipeline", "2"]);
        let slots: Vec<usize> = (0..4).map(|index| options.slots(index)).collect();
        assert_eq!(slots, [6, 6, 4, 4]);
    }

    #[test]
    fn impossible_flags_are_named() {
        let flag = |flags: &[&str]| match parse(flags).validate() {
            Err(OptionsError::OutOfRange { flag, .. }) => flag,
            other => panic!("{flags:?} gave {other:?}"),
        };
        assert_eq!(flag(&["--conns", "0"]), "conns");
        assert_eq!(flag(&["--duration", "0s"]), "duration");
        assert_eq!(flag(&["--rate", "0"]), "rate");
        assert_eq!(flag(&["--rate", "nan"]), "rate");
        assert_eq!(flag(&["--rounds", "1"]), "rounds");
        assert_eq!(flag(&["--pipeline", "18446744073709551615"]), "workers");
    }
}
