//! The queue of migrations.

use super::options::Options;
use crate::net::connection_id::ConnectionId;
use crate::net::offload_queue::OffloadQueue;
use tidemark_engine::Reply;

/// Migrations that wait for the thread.
pub(crate) type MigrationQueue = OffloadQueue<Migration>;

/// A migration that a client waits for.
pub(crate) struct Migration {
    pub(super) options: Options,
    pub(super) db: u8,
    /// Has the limit and the memory budget of the client's reply.
    pub(super) reply: Reply,
    pub(super) worker: usize,
    pub(super) client: ConnectionId,
}
