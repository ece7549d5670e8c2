//! The server: connections, the Redis protocol, configuration, health and metrics.

pub mod resp;
