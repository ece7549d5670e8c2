//! Whose invalidations a connection takes.

use crate::net::connection_id::ConnectionAddress;
use std::sync::Arc;
use tidemark_engine::tracking::Tracker;

/// A client that keeps what it reads, as the connection sees it that is told what it must not use any more.
pub(crate) struct Source {
    pub(crate) tracker: Arc<Tracker>,
    /// The client that keeps what it reads.
    pub(crate) owner: ConnectionAddress,
}
