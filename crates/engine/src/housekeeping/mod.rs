//! Work that becomes due without a command: expiry of keys, commits of counters.

pub(crate) mod counter_commits;
pub(crate) mod expiry;
pub(crate) mod series_memory;
