//! For how long a store that lies elsewhere is waited for.

use std::time::Duration;

/// For how long a call waits. When the time is over it answers [`Error::Unavailable`](tidemark_counter::store::Error::Unavailable), the
/// connection is given up, and the next call makes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Until a connection is there and has been let in. 5 s by default.
    pub connect: Duration,
    /// Until a request has been answered. 5 s by default.
    pub request: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), request: Duration::from_secs(5) }
    }
}
