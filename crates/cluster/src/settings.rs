//! Timing and limits of a group.

use std::time::Duration;

use tidemark_log::Durability;

use crate::level::Level;

/// How a member of a group behaves. All members should have the same timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time between two heartbeats of a leader.
    pub heartbeat: Duration,
    /// Shortest wait of a follower, behind the lease, before it stands for election.
    pub election_min: Duration,
    /// Longest wait; also the lease: how long an acknowledged leader is the only one.
    pub election_max: Duration,
    /// What a member does before it acknowledges a batch: with `always` it syncs, otherwise it
    /// writes.
    pub durability: Durability,
    /// Limit on the bytes of one request with entries, unless a single entry is larger.
    pub request_bytes: usize,
    /// Bytes of batches that a leader has proposed and the group has not committed; beyond it no further
    /// batch is proposed.
    pub backlog_bytes: usize,
    /// Limit on the bytes of the log that a leader keeps, although its snapshots cover them, for members
    /// that are slow. One that lacks more gets a snapshot.
    pub kept_bytes: u64,
    /// The highest level of records that this build applies.
    pub level: Level,
}

impl Settings {
    /// For machines of their own in one network: about 250 ms without a leader after a failure.
    pub const LAN: Self = Self {
        heartbeat: Duration::from_millis(15),
        election_min: Duration::from_millis(80),
        election_max: Duration::from_millis(125),
        durability: Durability::Always,
        request_bytes: 1 << 20,
        backlog_bytes: 64 << 20,
        kept_bytes: 1 << 30,
        level: Level::FIRST,
    };
    /// For shared or slow machines: about 500 ms without a leader after a failure.
    pub const SHARED: Self = Self {
        heartbeat: Duration::from_millis(50),
        election_min: Duration::from_millis(150),
        election_max: Duration::from_millis(300),
        ..Self::LAN
    };
    /// Largest accepted time.
    pub const TIME_MAX: Duration = Duration::from_mins(1);

    /// How long a leader that a quorum has acknowledged is the only one.
    pub fn lease(&self) -> Duration {
        self.election_max
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// One of them is out of its range; the error names it.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        let Self { heartbeat, election_min, election_max, .. } = *self;
        let wrong = |what| Err(InvalidSettings(what));
        if heartbeat < Duration::from_millis(1) {
            return wrong("the heartbeat must be at least 1ms");
        }
        if election_min < heartbeat * 2 {
            return wrong("election_min must be at least two heartbeats");
        }
        if election_max <= election_min {
            return wrong("election_max must be more than election_min");
        }
        if election_max > Self::TIME_MAX {
            return wrong("election_max must be at most 1m");
        }
        if self.request_bytes == 0 {
            return wrong("request_bytes must not be 0");
        }
        if self.backlog_bytes == 0 {
            return wrong("backlog_bytes must not be 0");
        }
        Ok(())
    }
}

/// Error of [`Settings::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid settings of the group: {0}")]
pub struct InvalidSettings(pub &'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_checked_against_each_other() {
        assert!(Settings::LAN.check().is_ok() && Settings::SHARED.check().is_ok());
        let ms = Duration::from_millis;
        let lan = Settings::LAN;
        for (settings, word) in [
            (Settings { heartbeat: Duration::ZERO, ..lan }, "heartbeat"),
            (Settings { heartbeat: ms(60), ..lan }, "two heartbeats"),
            (Settings { election_max: lan.election_min, ..lan }, "election_max"),
            (Settings { election_max: ms(60_001), ..lan }, "1m"),
            (Settings { request_bytes: 0, ..lan }, "request_bytes"),
            (Settings { backlog_bytes: 0, ..lan }, "backlog_bytes"),
        ] {
            let refused = settings.check().expect_err("is refused").to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
