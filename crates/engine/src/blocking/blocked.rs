//! How a client starts to block on keys.

use crate::context::Keys;
use crate::execute::call::Call;
use crate::wire::reply::{Protocol, Reply};
use std::sync::Arc;

use crate::blocking::waiter::{Block, Delivery, Waiter};

/// A command that found nothing to take. Its keys stay locked, so that no change intervenes, until
/// [`Blocked::wait`] queues the client, or until this is dropped and the client does not wait. The
/// holder must not use the engine meanwhile.
#[must_use = "the client waits only after `wait`"]
pub struct Blocked<'e> {
    keys: Keys<'e>,
    command: u16,
    args: Vec<Vec<u8>>,
    block: Box<Block>,
    protocol: Protocol,
    room: usize,
    durable: bool,
}

impl<'e> Blocked<'e> {
    /// The client's reply will follow `reply`. If `durable`, the changes of serving it are
    /// published only when durable.
    pub(crate) fn new(
        keys: Keys<'e>,
        call: &Call<'_>,
        block: Box<Block>,
        reply: &Reply,
        durable: bool,
    ) -> Self {
        let args = call.args.iter().map(|arg| arg.to_vec()).collect();
        Self {
            keys,
            command: call.command.id,
            args,
            block,
            protocol: reply.protocol(),
            room: reply.room(),
            durable,
        }
    }

    /// How long the client wants to wait, in milliseconds; `None` waits indefinitely.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.block.timeout_ms
    }

    /// Queues the client. When one of its keys can serve it and its turn has come, the thread that
    /// filled the key calls `deliver`, once. `announce` is called before the client can be served.
    pub fn wait(
        mut self,
        deliver: impl Fn(Delivery) + Send + Sync + 'static,
        announce: impl FnOnce(&Arc<Waiter>),
    ) -> Arc<Waiter> {
        let db = self.keys.db();
        let destinations = self.block.also.iter().map(|key| self.keys.shard_of(key)).collect();
        let deliver = Box::new(deliver);
        let mut waiter =
            Waiter::new(self.command, db, self.args, self.block, destinations, self.protocol, deliver);
        (waiter.room, waiter.durable) = (self.room, self.durable);
        let waiter = Arc::new(waiter);
        announce(&waiter);
        for key in &waiter.block.keys {
            self.keys.shard_mut(key).waiting_mut().join(db, key, &waiter);
        }
        waiter
    }
}

impl std::fmt::Debug for Blocked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocked").field("block", &self.block).finish_non_exhaustive()
    }
}
