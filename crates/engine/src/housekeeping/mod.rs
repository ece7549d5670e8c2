//! Work that becomes due without a command: expiry of keys, commits of counters, compression of
//! series.

pub(crate) mod counter_commits;
pub(crate) mod expiry;
mod sealing;
pub(crate) mod series_memory;
