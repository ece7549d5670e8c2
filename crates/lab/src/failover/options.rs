//! Flags of `tidemark bench failover`.

use crate::cluster::{Timing, TimingError};
use crate::duration;
use crate::options::ReportOptions;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Flags of `tidemark bench failover`; durations are written as `10s` or `20ms`.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = AFTER_HELP)]
pub struct FailoverOptions {
    /// Binary of the members; this program itself if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "path_if_given")]
    pub binary: Option<PathBuf>,
    /// Where the members' data goes, into a directory of its own, which stays if something was wrong
    #[arg(long, default_value = ".failover-bench")]
    #[serde(serialize_with = "path")]
    pub base_dir: PathBuf,
    /// Failovers of each kind of fault
    #[arg(long, visible_alias = "rounds", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub iterations: u32,
    /// What happens to the leader; several kinds are separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "kill")]
    pub fault: Vec<Fault>,
    /// When members acknowledge a change: after they synced it (always), or after they wrote it
    #[arg(long, value_enum, default_value = "always")]
    pub durability: MemberDurability,
    /// Time between two heartbeats in milliseconds; the server's default if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// Sets both election times, for comparison with other programs: the larger one to this, the smaller one to
    /// 3/10 of it, but at least two heartbeats
    #[arg(long, conflicts_with_all = ["election_min_ms", "election_max_ms", "curve"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub election_ms: Option<u64>,
    /// Least wait for a leader, behind the lease, in milliseconds; the server's default if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub election_min_ms: Option<u64>,
    /// Most wait, and the lease, in milliseconds; the server's default if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub election_max_ms: Option<u64>,
    /// Measure each of these times, HEARTBEAT/ELECTION-MIN/ELECTION-MAX in milliseconds, with a new cluster
    #[arg(long, num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = CURVE)]
    #[arg(conflicts_with_all = ["heartbeat_ms", "election_min_ms", "election_max_ms"])]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Timing>,
    /// Changes after which a member takes a snapshot; the server's default if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap_threshold: Option<u64>,
    /// First of three ports for clients; 0 takes free ones
    #[arg(long, default_value_t = 0)]
    pub base_client_port: u16,
    /// First of three ports for members; 0 takes free ones
    #[arg(long, default_value_t = 0)]
    pub base_raft_port: u16,
    /// Acknowledged writes before a failover
    #[arg(long, default_value_t = 100)]
    pub warmup_writes: u64,
    /// Time of writing before a failover
    #[arg(long, default_value = "1s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub stabilize_wait: Duration,
    /// Interval at which the members that are left are asked whether they lead
    #[arg(long, default_value = "2ms", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub leader_poll: Duration,
    /// Longest wait for a leader, and for a member that comes back
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub max_leader_wait: Duration,
    /// Clients that write, each one write at a time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: u32,
    /// Pause of a client between two writes; 0s writes without a pause
    #[arg(long, default_value = "1ms", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub write_interval: Duration,
    /// After so long without an answer a client goes to another member; what became of the write is unknown
    #[arg(long, default_value = "100ms", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub answer_timeout: Duration,
    /// Writes for so long without any fault before the failovers, and counts elections
    #[arg(long, default_value = "0s", value_parser = duration::parse)]
    #[serde(serialize_with = "duration::serialize")]
    pub quiet_for: Duration,
    /// Threads of this program that keep the processor busy meanwhile
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1024))]
    pub busy_threads: u32,
    /// How what was found is said.
    #[command(flatten)]
    #[serde(skip)]
    pub report: ReportOptions,
}

/// Times that `--curve` measures if it names none.
const CURVE: &str = "15/100/125,30/120/180,50/150/300,100/300/600,100/300/1000";
const AFTER_HELP: &str = "\
Flags may be written with one dash (-iterations 20).
Every write has a key of its own. A client repeats a write only if it was refused before it was executed. When the
failover is over, each acknowledged write is read from every member that is left, and from the other one when it is back.
`cut` needs Linux, the program `ip`, and root or a system where users may create namespaces.
Exit codes: 0 no acknowledged write was missing; 1 some was, or the run could not be made; 2 wrong flags.";

/// What happens to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// SIGKILL; it is started again after the failover
    Kill,
    /// SIGSTOP, and SIGCONT after the failover
    Stop,
    /// Its network to the other members is cut; clients still reach it
    Cut,
}

impl Fault {
    /// Returns the word for it, as it is given and reported.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Stop => "stop",
            Fault::Cut => "cut",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Fault::Kill => "SIGKILL of the leader",
            Fault::Stop => "SIGSTOP of the leader",
            Fault::Cut => "the leader cut off from the other members",
        }
    }
}

/// What a member does before it acknowledges a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberDurability {
    /// It syncs
    Always,
    /// It writes, and syncs within 50 ms
    Interval,
    /// It writes
    Off,
}

impl MemberDurability {
    /// Returns the setting of the server.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MemberDurability::Always => "always",
            MemberDurability::Interval => "interval",
            MemberDurability::Off => "off",
        }
    }
}

/// An invalid combination of flags, and what to use instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailoverOptionsError {
    /// Times that a server refuses.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// Nothing to measure.
    #[error("--iterations is 0: give at least 1, or --quiet-for")]
    Nothing,
    /// A duration that must not be 0.
    #[error("--{0} must be longer than 0")]
    Zero(&'static str),
}

impl FailoverOptions {
    /// Returns the times to measure, checked with the other flags.
    pub fn timings(&self) -> Result<Vec<Timing>, FailoverOptionsError> {
        if self.iterations == 0 && self.quiet_for.is_zero() {
            return Err(FailoverOptionsError::Nothing);
        }
        let durations = [
            ("leader-poll", self.leader_poll),
            ("max-leader-wait", self.max_leader_wait),
            ("answer-timeout", self.answer_timeout),
        ];
        if let Some((flag, _)) = durations.iter().find(|(_, duration)| duration.is_zero()) {
            return Err(FailoverOptionsError::Zero(flag));
        }
        if !self.curve.is_empty() {
            return Ok(self.curve.clone());
        }
        let server = Timing::of_server();
        let heartbeat_ms = self.heartbeat_ms.unwrap_or(server.heartbeat_ms);
        let timing = match self.election_ms {
            Some(election_max_ms) => Timing {
                heartbeat_ms,
                election_min_ms: (election_max_ms / 10).saturating_mul(3).max(heartbeat_ms.saturating_mul(2)),
                election_max_ms,
            },
            None => Timing {
                heartbeat_ms,
                election_min_ms: self.election_min_ms.unwrap_or(server.election_min_ms),
                election_max_ms: self.election_max_ms.unwrap_or(server.election_max_ms),
            },
        };
        Ok(vec![timing.check()?])
    }

    /// Returns the kinds of faults, each once.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let kinds = [Fault::Kill, Fault::Stop, Fault::Cut];
        let is_wanted = |fault: &Fault| self.iterations > 0 && self.fault.contains(fault);
        kinds.into_iter().filter(is_wanted).collect()
    }

    /// Returns the flags of each member beside its addresses and times.
    pub(super) fn member_flags(&self) -> Vec<String> {
        let mut flags = vec!["--durability".to_owned(), self.durability.name().to_owned()];
        if let Some(changes) = self.snap_threshold {
            flags.extend(["--snapshot-after".to_owned(), changes.to_string()]);
        }
        flags
    }
}

/// Serializes a path as text, whatever bytes it has.
fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn path_if_given<S: Serializer>(given: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    given.as_deref().map(Path::display).map(|path| path.to_string()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::{FailoverOptions, Fault, MemberDurability};
    use crate::cluster::Timing;
    use crate::test_run::{options, try_options};

    fn timings(flags: &[&str]) -> Result<Vec<String>, String> {
        let timings = options::<FailoverOptions>(flags).timings();
        timings
            .map(|timings| timings.iter().map(ToString::to_string).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let options = options::<FailoverOptions>(&[]);
        assert_eq!(options.base_dir.to_str(), Some(".failover-bench"));
        assert_eq!((options.iterations, options.warmup_writes, options.clients), (5, 100, 8));
        assert_eq!((options.stabilize_wait.as_secs(), options.max_leader_wait.as_secs()), (1, 30));
        assert_eq!((options.leader_poll.as_millis(), options.answer_timeout.as_millis()), (2, 100));
        assert_eq!(options.faults(), [Fault::Kill]);
        assert_eq!(options.durability, MemberDurability::Always);
        assert_eq!(options.timings().unwrap(), [Timing::of_server()]);
        assert_eq!(options.member_flags(), ["--durability", "always"]);
    }

    #[test]
    fn the_originals_flags_are_understood() {
        let original = "--binary ./sevendb --base-dir d --iterations 5 --heartbeat-ms 100 --election-ms 1000 \
                        --snap-threshold 1000 --base-client-port 17379 --base-raft-port 17091 --warmup-writes 100 \
                        --stabilize-wait 3s --leader-poll 50ms --max-leader-wait 30s --json";
        let options = options::<FailoverOptions>(&original.split_whitespace().collect::<Vec<_>>());
        assert_eq!(options.timings().unwrap()[0].to_string(), "100/300/1000");
        assert_eq!(options.member_flags(), ["--durability", "always", "--snapshot-after", "1000"]);
        assert!(options.report.json);
    }

    #[test]
    fn faults_are_measured_in_one_order_and_once() {
        let faults = |flags: &[&str]| options::<FailoverOptions>(flags).faults();
        assert_eq!(faults(&["--fault", "cut,kill,stop,kill"]), [Fault::Kill, Fault::Stop, Fault::Cut]);
        assert_eq!(faults(&["--rounds", "0", "--quiet-for", "1s"]), []);
    }

    #[test]
    fn times_are_checked_as_the_server_checks_them() {
        assert_eq!(timings(&["--election-ms", "100", "--heartbeat-ms", "40"]).unwrap(), ["40/80/100"]);
        let curve = timings(&["--curve"]).unwrap();
        assert_eq!((curve.len(), curve[0].as_str()), (5, "15/100/125"));
        assert_eq!(timings(&["--curve=50/150/300,20/40/60"]).unwrap(), ["50/150/300", "20/40/60"]);
        assert!(timings(&["--election-ms", "1"]).unwrap_err().contains("15/30/1"));
        assert!(timings(&["--election-ms", "18446744073709551615"]).is_err());
        assert!(timings(&["--heartbeat-ms", "0"]).is_err());
        assert!(timings(&["--iterations", "0"]).unwrap_err().contains("--quiet-for"));
        assert!(timings(&["--leader-poll", "0"]).unwrap_err().contains("--leader-poll"));
        for wrong in [&["--curve=1/2"][..], &["--fault", "burn"], &["--curve", "--heartbeat-ms", "9"]] {
            assert!(try_options::<FailoverOptions>(wrong).is_err(), "{wrong:?}");
        }
    }
}
