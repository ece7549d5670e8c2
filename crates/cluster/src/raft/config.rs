//! Our settings as those of the library.

use openraft::{Config, SnapshotPolicy};

use crate::settings::Settings;

/// Returns the library's settings. Those that decide whether it is safe are ours, never defaults.
pub(crate) fn config(settings: &Settings, votes: bool, restore_leader: bool) -> Result<Config, String> {
    let config = Config {
        cluster_name: "tidemark".to_owned(),
        heartbeat_interval: settings.heartbeat.as_millis() as u64,
        election_timeout_min: settings.election_min.as_millis() as u64,
        election_timeout_max: settings.election_max.as_millis() as u64,
        // A member that may have lost entries must not become a leader.
        enable_elect: votes,
        // Such a member lacks what its leader knows to be there. The leader sends it once more.
        allow_log_reversion: Some(true),
        // A member that was cut off must not depose a leader when it comes back.
        enable_pre_vote: Some(true),
        // A restarted leader that took up its term again would give the places of entries that it
        // has lost, and that may be committed, to other entries.
        enable_leader_restore: Some(restore_leader),
        // Followers get a batch while the leader syncs it.
        broadcast_submitted_on_append: Some(true),
        // Snapshots are the server's; nothing is purged for the library.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        replication_lag_threshold: u64::MAX,
        ..Config::default()
    };
    config.validate().map_err(|error| error.to_string())
}
