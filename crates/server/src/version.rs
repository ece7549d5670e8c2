//! Versions that the server reports.

/// The Redis version whose commands and replies are offered. Clients adapt to it.
pub(crate) const REDIS_VERSION: &str = "7.0.15";
/// The program's own version.
pub(crate) const TIDEMARK_VERSION: &str = env!("CARGO_PKG_VERSION");
