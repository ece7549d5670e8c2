//! Versions that the server reports.

/// The Redis version whose commands and replies are offered. Clients adapt to it.
pub(crate) const REDIS_VERSION: &str = "7.0.15";
/// The program's own version.
pub(crate) const TIDEMARK_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Name and version, as Redis writes them, of the module of Redis whose commands are offered.
pub(crate) const TIME_SERIES_MODULE: (&str, i64) = ("timeseries", 81_000);
