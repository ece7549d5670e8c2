//! What becomes due without a command: keys that expire, counters that are committed.

pub(crate) mod counter_commits;
pub(crate) mod expiry;
