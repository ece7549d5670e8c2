//! What connections of one client tell each other.

use crate::net::connection_id::ConnectionAddress;
use crate::subscription::cursor::Place;

/// What a client's connection is told by another one of the same client.
pub(crate) enum Notice {
    /// That one listens from now on: give it all subscriptions.
    HandOver(ConnectionAddress),
    /// Take these subscriptions over.
    TakeOver(Vec<Handed>),
    /// End the subscription of this fingerprint.
    End(u64),
}

/// A subscription on its way to another connection.
pub(crate) struct Handed {
    /// Behind the last emission that the client has.
    pub(super) place: Place,
    /// The number that its own numbers begin behind.
    pub(super) base: u64,
    /// It goes on here even if the connection has a subscription to the query that goes on elsewhere.
    pub(super) replaces: bool,
}
