//! What the server says that it is.

/// The version of Redis whose commands and replies are offered. Clients choose what to send by it.
pub(crate) const REDIS_VERSION: &str = "7.0.15";
/// This program's own version.
pub(crate) const TIDEMARK_VERSION: &str = env!("CARGO_PKG_VERSION");
