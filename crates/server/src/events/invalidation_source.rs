//! Source of the invalidations that a connection receives.

use crate::net::connection_id::ConnectionAddress;
use std::sync::Arc;
use tidemark_engine::tracking::Tracker;

/// A tracking client, as seen by the connection that receives its invalidations.
pub(crate) struct Source {
    pub(crate) tracker: Arc<Tracker>,
    /// The tracking client.
    pub(crate) owner: ConnectionAddress,
}
