//! Limits and times of connections between members.

use std::time::Duration;

use super::build::Build;
use super::transport::Lane;

/// Limits and times of connections between members. The defaults suit a local network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetSettings {
    /// How long open requests may be without any answer before their connection is closed: two
    /// leases. Also the limit for making a connection.
    pub patience: Duration,
    /// The same on the lanes of the log and of heartbeats, where an answer may wait for the disk of a member
    /// that is well, and a connection that closes looks like a leader that has died: four leases.
    pub disk_patience: Duration,
    /// The same on the snapshot lane, where an answer may mean that files were read and synced. The kernel
    /// notices a peer that is gone before this.
    pub snapshot_patience: Duration,
    /// Lengthens both for large frames: bytes per second that a healthy connection transfers at
    /// least.
    pub slowest_bytes_per_second: u64,
    /// First and longest wait before a new attempt to connect. After a refusal it is ten times the
    /// longest.
    pub backoff: (Duration, Duration),
    /// Time for a stranger to prove that it is a member.
    pub handshake_timeout: Duration,
    /// Connections whose handshake is not complete. One more closes the oldest of them.
    pub strangers_max: usize,
    /// Bytes that are queued or unanswered on the log's lane to one peer. Other lanes have an eighth
    /// of it at most.
    pub queued_bytes_max: usize,
    /// Bytes of requests of one connection that are not answered yet, before its socket is no longer
    /// read. One request is always read.
    pub unanswered_bytes_max: usize,
    /// Quiet time after which the kernel probes a connection; as long for each of three probes. A member
    /// whose machine has lost its power and has started again is another process under the same id: it
    /// is refused until the connections of the old one have ended, four times this at most.
    pub keepalive: Duration,
    /// Time after which the kernel gives up on bytes that the peer's kernel does not acknowledge.
    pub user_timeout: Duration,
    /// What this member states of its build.
    pub build: Build,
}

impl Default for NetSettings {
    fn default() -> Self {
        Self {
            patience: Duration::from_millis(250),
            disk_patience: Duration::from_millis(500),
            snapshot_patience: Duration::from_mins(2),
            slowest_bytes_per_second: 16 << 20,
            backoff: (Duration::from_millis(5), Duration::from_millis(50)),
            handshake_timeout: Duration::from_secs(2),
            strangers_max: 32,
            queued_bytes_max: 512 << 20,
            unanswered_bytes_max: 128 << 20,
            keepalive: Duration::from_secs(1),
            user_timeout: Duration::from_secs(4),
            build: Build::default(),
        }
    }
}

impl NetSettings {
    /// Checks that the values make sense. The error says which does not.
    pub fn check(&self) -> Result<(), String> {
        let (first, longest) = self.backoff;
        if first.is_zero() || first > longest {
            return Err(format!("the backoff {first:?} to {longest:?} is not a range above zero"));
        }
        let durations = [
            ("patience", self.patience),
            ("patience with disks", self.disk_patience),
            ("patience on the snapshot lane", self.snapshot_patience),
            ("handshake timeout", self.handshake_timeout),
            ("user timeout", self.user_timeout),
        ];
        if let Some((name, _)) = durations.into_iter().find(|(_, duration)| duration.is_zero()) {
            return Err(format!("the {name} is zero"));
        }
        let protocols = self.build.protocols;
        if protocols.oldest > protocols.newest {
            return Err(format!("the protocol's {protocols} are no range"));
        }
        if self.keepalive < Duration::from_secs(1) {
            return Err(format!("the keepalive of {:?} is less than 1 s", self.keepalive));
        }
        let largest = Lane::Log.request_bytes_max();
        if self.queued_bytes_max < largest {
            return Err(format!(
                "the limit of {} queued bytes is less than one frame of {largest} bytes",
                self.queued_bytes_max
            ));
        }
        if self.strangers_max == 0 || self.slowest_bytes_per_second == 0 {
            return Err("the limit of strangers and the slowest rate are at least 1".to_owned());
        }
        Ok(())
    }

    /// Returns how many bytes may be queued or unanswered on a lane.
    pub(super) fn queued_bytes_max(&self, lane: Lane) -> usize {
        match lane {
            Lane::Log => self.queued_bytes_max,
            _ => (self.queued_bytes_max / 8).min(16 * lane.request_bytes_max()),
        }
    }

    /// Returns how long `bytes` that are under way may go without an answer.
    pub(super) fn patience_for(&self, lane: Lane, bytes: usize) -> Duration {
        let patience = match lane {
            Lane::Log | Lane::Heartbeat => self.disk_patience,
            Lane::Snapshot => self.snapshot_patience,
            Lane::Control | Lane::Message => self.patience,
        };
        patience + Duration::from_millis(bytes as u64 * 1000 / self.slowest_bytes_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_refused_in_words() {
        let good = NetSettings::default();
        assert_eq!(good.check(), Ok(()));
        let zero = Duration::ZERO;
        let bad = [
            (NetSettings { patience: zero, ..good.clone() }, "the patience is zero"),
            (NetSettings { disk_patience: zero, ..good.clone() }, "with disks is zero"),
            (NetSettings { snapshot_patience: zero, ..good.clone() }, "on the snapshot lane is zero"),
            (NetSettings { handshake_timeout: zero, ..good.clone() }, "the handshake timeout is zero"),
            (NetSettings { user_timeout: zero, ..good.clone() }, "the user timeout is zero"),
            (NetSettings { backoff: (zero, zero), ..good.clone() }, "is not a range above zero"),
            (NetSettings { queued_bytes_max: 1, ..good.clone() }, "less than one frame"),
            (NetSettings { keepalive: zero, ..good.clone() }, "less than 1 s"),
            (NetSettings { strangers_max: 0, ..good.clone() }, "at least 1"),
            (NetSettings { slowest_bytes_per_second: 0, ..good.clone() }, "at least 1"),
        ];
        for (settings, words) in bad {
            let error = settings.check().expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_large_frame_gets_time_to_travel() {
        let settings = NetSettings::default();
        assert_eq!(settings.patience_for(Lane::Control, 0), settings.patience);
        assert_eq!(settings.patience_for(Lane::Log, 0), settings.disk_patience);
        assert_eq!(
            settings.patience_for(Lane::Log, 64 << 20),
            settings.disk_patience + Duration::from_secs(4)
        );
    }
}
