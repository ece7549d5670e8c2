//! The times of a cluster, as flags and reports write them: `15/100/125`.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use tidemark_server::config::Config;

/// Heartbeat and election timeouts in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between two heartbeats.
    pub heartbeat_ms: u64,
    /// Least wait for a leader behind the lease.
    pub election_min_ms: u64,
    /// Most wait; also the lease.
    pub election_max_ms: u64,
}

/// The server's own limit.
const MILLIS_MAX: u64 = 60_000;

/// Why times are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid times {0:?}; write HEARTBEAT/ELECTION-MIN/ELECTION-MAX in milliseconds, such as 15/100/125: the \
     smaller election time is at least two heartbeats, and the larger one is more than it and at most 60000"
)]
pub struct TimingError(String);

impl Timing {
    /// The server's defaults.
    #[must_use]
    pub fn of_server() -> Self {
        let timing = Config::default().cluster_timing;
        let millis = |time: std::time::Duration| time.as_millis() as u64;
        Timing {
            heartbeat_ms: millis(timing.heartbeat),
            election_min_ms: millis(timing.election_min),
            election_max_ms: millis(timing.election_max),
        }
    }

    /// Checks the times against each other, as a server does.
    pub fn check(self) -> Result<Self, TimingError> {
        let Timing { heartbeat_ms, election_min_ms, election_max_ms } = self;
        let is_valid = heartbeat_ms >= 1
            && election_min_ms >= heartbeat_ms.saturating_mul(2)
            && (election_min_ms + 1..=MILLIS_MAX).contains(&election_max_ms);
        if is_valid { Ok(self) } else { Err(TimingError(self.to_string())) }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}", self.heartbeat_ms, self.election_min_ms, self.election_max_ms)
    }
}

impl FromStr for Timing {
    type Err = TimingError;

    fn from_str(text: &str) -> Result<Self, TimingError> {
        let invalid = || TimingError(text.to_owned());
        let numbers: Result<Vec<u64>, _> = text.split('/').map(str::parse).collect();
        let Ok([heartbeat_ms, election_min_ms, election_max_ms]) = numbers.as_deref() else {
            return Err(invalid());
        };
        let (heartbeat_ms, election_min_ms, election_max_ms) =
            (*heartbeat_ms, *election_min_ms, *election_max_ms);
        if election_min_ms > MILLIS_MAX {
            return Err(invalid());
        }
        Timing { heartbeat_ms, election_min_ms, election_max_ms }.check()
    }
}

impl Serialize for Timing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Timing;

    #[test]
    fn times_are_read_as_they_are_written() {
        for text in ["15/100/125", "1/2/3", "100/300/60000"] {
            assert_eq!(text.parse::<Timing>().unwrap().to_string(), text);
        }
        assert!(Timing::of_server().check().is_ok());
    }

    #[test]
    fn what_a_server_would_refuse_is_refused() {
        let most = u64::MAX;
        for text in [
            "",
            "15",
            "15/100",
            "15/100/125/1",
            "15/100/-1",
            "0/100/125",
            "60/100/125",
            "15/100/100",
            "15/100/60001",
            &format!("{most}/{most}/{most}"),
        ] {
            let error = text.parse::<Timing>().expect_err(text).to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("15/100/125"), "{error}");
        }
    }
}
