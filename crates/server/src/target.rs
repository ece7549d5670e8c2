//! Connections as other threads name them.

/// A connection as other threads name it. The slot finds it, the client id tells whether it is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) slot: usize,
    pub(crate) client: u64,
}

/// A connection, of whichever worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subscriber {
    pub(crate) worker: usize,
    pub(crate) target: Target,
}
