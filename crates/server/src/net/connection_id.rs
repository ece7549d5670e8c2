//! Identifiers of connections for other threads.

/// A connection of a given worker. The slot finds it; the client id, which is never reused, shows
/// whether the slot still holds the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    pub(crate) slot: usize,
    pub(crate) client: u64,
}

/// A connection of any worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionAddress {
    /// Index of the worker.
    pub(crate) worker: usize,
    pub(crate) connection_id: ConnectionId,
}
