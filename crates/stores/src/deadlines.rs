//! Timeouts of remote stores.

use std::time::Duration;

/// Timeouts of calls. A call that times out returns
/// [`Error::Unavailable`](tidemark_counter::store::Error::Unavailable) and drops the connection;
/// the next call opens a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Time to connect and authenticate. 5 s by default.
    pub connect: Duration,
    /// Time until a request is answered. 5 s by default.
    pub request: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), request: Duration::from_secs(5) }
    }
}
