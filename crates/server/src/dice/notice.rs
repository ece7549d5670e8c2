//! Notices between the connections of one client.

use crate::net::connection_id::ConnectionAddress;
use crate::subscription::cursor::ResumePosition;

/// Notice from another connection of the same client.
pub(crate) enum Notice {
    /// The sender listens from now on: hand all subscriptions over to it.
    HandOver(ConnectionAddress),
    /// Take these subscriptions over.
    TakeOver(Vec<Handed>),
    /// End the subscription with this fingerprint.
    End(u64),
}

/// A subscription that is handed over to another connection.
pub(crate) struct Handed {
    /// Place after the last emission that the client has.
    pub(super) place: ResumePosition,
    /// Number of the last emission before the subscription's own numbering starts.
    pub(super) base: u64,
    /// Whether it replaces a subscription that the connection already has to the query.
    pub(super) replaces: bool,
}
