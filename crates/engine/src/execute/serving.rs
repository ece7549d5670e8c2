//! Serves blocked clients before other commands can take what they wait for.
//!
//! A command that adds an element to a key serves the clients blocked on it while it still holds
//! its locks, the client that has waited longest first. The record of each pop directly follows the
//! record that made it possible, for these keys. A transaction serves after all of its commands
//! have run.
//!
//! ```text
//! lock ─► run ─► append push ─► claim waiter ─► pop for it ─► append pop ─► unlock ─► deliver
//!                                   ▲                             │
//!                                   └─── waiters of pushed keys ◄─┘
//! ```
//!
//! A client of `XREADGROUP` takes entries that its group has not got yet: whether there are any is known
//! when its turn comes. One that only reads, as by `TS.READ`, takes nothing from the others: every one is served that
//! waits no longer. A change of a key also serves those that read lenses which see it.
//!
//! If a served client moves the element elsewhere, the destination's shard is locked as well: see
//! `locking`.

use crate::blocking::waiter::{Delivery, Waiter};
use crate::command;
use crate::context::{Context, Keys};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::locking::Access;
use crate::execute::moment::Moment;
use crate::keyspace::Shard;
use crate::wire::reply::Reply;
use std::collections::HashSet;
use std::sync::Arc;
use tidemark_log::Lsn;

/// A served client and its reply.
type Served = (Arc<Waiter>, Delivery);

impl Engine {
    /// Serves clients blocked on `ready` keys, and on keys that serving them fills, in that order.
    /// All shards that this touches must be locked: see [`Engine::lock_reachable`]. Releases the
    /// locks before it delivers the replies.
    #[cold]
    pub(crate) fn serve(&self, mut keys: Keys<'_>, mut ready: Vec<(u8, Vec<u8>)>) {
        assert!(!keys.effects.changed, "clients are served before what the command did is logged");
        let mut served = Vec::new();
        while !ready.is_empty() {
            let mut seen = HashSet::new();
            for (db, key) in &ready {
                if seen.insert((db, key)) {
                    self.serve_key(&mut keys, *db, key, &mut served);
                }
            }
            ready = keys.effects.take_ready();
        }
        drop(keys);
        for (waiter, delivery) in served {
            waiter.deliver(delivery);
            if waiter.block.keys.len() > 1 {
                self.forget(&waiter);
            }
        }
    }

    fn serve_key(&self, keys: &mut Keys<'_>, db: u8, key: &[u8], served: &mut Vec<Served>) {
        keys.select(db);
        let is_ready = |keys: &Keys<'_>, waiter: &Waiter| {
            let is_ready = command::by_id(waiter.command).and_then(|row| row.is_ready);
            let is_ready = is_ready.expect("a command whose clients wait for a condition says which");
            is_ready(keys, key, &waiter.args())
        };
        if self.check_log_writable().is_ok() {
            for waiter in keys.claim_readers(key, is_ready) {
                let delivery = self.serve_one(keys, key, &waiter);
                served.push((waiter, delivery));
            }
        }
        let mut conditional = keys.conditional_waiters(key);
        while self.check_log_writable().is_ok()
            && let Some(waiter) = keys.claim_ready(&mut conditional, key, is_ready)
        {
            let delivery = self.serve_one(keys, key, &waiter);
            served.push((waiter, delivery));
        }
        // After the log has failed, no change may happen that it cannot record.
        while self.check_log_writable().is_ok()
            && let Some(waiter) = keys.claim_waiting(key)
        {
            let delivery = self.serve_one(keys, key, &waiter);
            served.push((waiter, delivery));
        }
    }

    /// Serves one claimed client from a key that holds what the client waits for.
    fn serve_one(&self, keys: &mut Keys<'_>, key: &[u8], waiter: &Waiter) -> Delivery {
        let args = waiter.args();
        let mut reply = Reply::new(waiter.protocol);
        reply.set_limit(waiter.room);
        let id = waiter.command;
        let serve = command::by_id(id)
            .and_then(|row| row.serve)
            .unwrap_or_else(|| panic!("command {id} lets clients wait and does not say how they are served"));
        let served = CommandError::guard(|| serve(&mut Context { keys, reply: &mut reply }, key, &args));
        if let Err(error) = served.map_err(|error| error.of_series(key)) {
            assert!(
                !keys.effects.changed,
                "serving command {id} has failed with '{error}' and changed something"
            );
            reply.truncate(0);
            reply.error(&error);
        }
        // Keys that this made ready are served in the next round.
        let ready = keys.effects.take_ready();
        let mut effects = std::mem::take(&mut keys.effects);
        if !ready.is_empty() {
            keys.effects.rare_mut().ready = ready;
        }
        let lsn = self.log_served(keys, &effects, &mut reply);
        if let Some(lsn) = lsn {
            keys.note_logged(lsn);
        }
        let noted = effects.take_noted();
        if !noted.is_empty() {
            let (time_us, durable) = (keys.now_us(), waiter.durable);
            self.emit(keys, noted, lsn.map(|lsn| Moment { lsn, time_us, durable, spared: None }));
        }
        if keys.events.are_wanted() {
            self.publish_events(keys, lsn, waiter.durable);
        }
        // A read shows what was logged before.
        let lsn = if waiter.only_reads() { newest(keys) } else { lsn };
        let overflowed = reply.has_overflowed();
        Delivery { reply: if overflowed { Vec::new() } else { reply.take() }, overflowed, lsn }
    }

    /// Writes the reply to a client whose time to wait is over: what there is to a read, otherwise the
    /// null array. Returns the newest record that the reply may show: that a key has nothing to take
    /// may be the work of the newest.
    pub fn answer_late(&self, waiter: &Waiter, now_us: u64, reply: &mut Reply) -> Lsn {
        let (true, [key]) = (waiter.only_reads(), &waiter.block.keys[..]) else {
            reply.null_array();
            let keyspace = self.keyspace();
            let last = |key: &Vec<u8>| keyspace.lock(keyspace.shard_of(key)).last();
            return waiter.block.keys.iter().map(last).max().unwrap_or_default();
        };
        let key_alone = || std::iter::once(&**key);
        let locked = self.lock_reachable(self.lock_one(key), Access::Read, key_alone, |_| false);
        let mut keys = self.keys(locked, waiter.db, now_us);
        keys.see_expired(self.is_in_group());
        let serve = command::by_id(waiter.command).and_then(|row| row.serve);
        let serve = serve.expect("a command that lets clients wait says how they are served");
        let mark = reply.len();
        let served =
            CommandError::guard(|| serve(&mut Context { keys: &mut keys, reply }, key, &waiter.args()));
        if let Err(error) = served.map_err(|error| error.of_series(key)) {
            reply.truncate(mark);
            reply.error(&error);
        }
        newest(&keys).unwrap_or_default()
    }

    /// Ends a client's wait. Returns `false` if the client was served meanwhile and its reply is on
    /// the way, or if its wait had ended before.
    pub fn stop_waiting(&self, waiter: &Arc<Waiter>) -> bool {
        let stopped = waiter.stop();
        self.forget(waiter);
        stopped
    }

    fn forget(&self, waiter: &Arc<Waiter>) {
        for key in &waiter.block.keys {
            self.keyspace().lock(self.keyspace().shard_of(key)).waiting_mut().leave(waiter.db, key, waiter);
        }
    }
}

/// LSN of the last change of the keys in the locked shards: a read shows what was logged before.
fn newest(keys: &Keys<'_>) -> Option<Lsn> {
    keys.shards().map(Shard::last).max()
}
