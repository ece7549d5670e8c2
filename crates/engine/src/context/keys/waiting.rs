//! Clients that wait for a key, and the client that a command blocks.

use super::Keys;
use crate::blocking::waiter::{Block, Waiter};
use std::sync::Arc;

impl Keys<'_> {
    /// Whether a command may block its client; not in a transaction.
    pub fn can_wait(&self) -> bool {
        self.can_wait
    }

    pub(crate) fn forbid_waiting(&mut self) {
        self.can_wait = false;
    }

    /// Claims the client that has waited longest to take what is at the key.
    pub(crate) fn claim_waiting(&mut self, key: &[u8]) -> Option<Arc<Waiter>> {
        let (db, until_ms) = (self.db(), self.expired_until_ms);
        self.shard_mut(key).claim_waiting(db, key, until_ms)
    }

    /// Claims one after the other of the clients that wait to take something from the key on a condition,
    /// and are ready when their turn comes: what one takes, the next does not find.
    pub(crate) fn claim_ready(
        &mut self,
        queue: &mut std::vec::IntoIter<Arc<Waiter>>,
        key: &[u8],
        is_ready: impl Fn(&Self, &Waiter) -> bool,
    ) -> Option<Arc<Waiter>> {
        let claimed = queue.find(|waiter| waiter.is_waiting() && is_ready(self, waiter) && waiter.claim())?;
        let db = self.db();
        self.shard_mut(key).waiting_mut().leave(db, key, &claimed);
        Some(claimed)
    }

    /// Returns the clients that wait to take something from the key on a condition, longest-waiting first.
    pub(crate) fn conditional_waiters(&self, key: &[u8]) -> std::vec::IntoIter<Arc<Waiter>> {
        self.shard(key).waiting().conditional(self.db(), key).into_iter()
    }

    /// Claims the clients that wait to read what is at the key, and that are ready.
    pub(crate) fn claim_readers(
        &mut self,
        key: &[u8],
        is_ready: impl Fn(&Self, &Waiter) -> bool,
    ) -> Vec<Arc<Waiter>> {
        let db = self.db();
        let mut readers = self.shard(key).waiting().readers(db, key);
        readers.retain(|waiter| waiter.is_waiting() && is_ready(self, waiter) && waiter.claim());
        let waiting = self.shard_mut(key).waiting_mut();
        readers.iter().for_each(|waiter| waiting.leave(db, key, waiter));
        readers
    }

    /// Blocks the client instead of answering it. The handler must not have written a reply. A
    /// client that cannot wait (in a transaction) immediately receives the null array.
    pub fn block(&mut self, block: Block) {
        self.effects.rare_mut().block = Some(Box::new(block));
    }
}
