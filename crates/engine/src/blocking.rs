//! Clients that wait until a key has something to take.

use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::reply::{Protocol, Reply};
use crate::value::Type;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tidemark_log::Lsn;

/// Takes from `key`, which holds a non-empty value of the type waited for, and writes the blocked client's answer.
/// The arguments are those of the blocked command.
pub type Serve = fn(&mut Context<'_, '_>, key: &[u8], args: &[&[u8]]) -> Result<(), CommandError>;

/// How a command wants to wait.
#[derive(Debug, Clone)]
pub struct Block {
    /// The type that a key must have to be served from.
    pub wants: Type,
    /// Keys to wait for, in order of preference.
    pub keys: Vec<Vec<u8>>,
    /// Further keys that serving touches: the destination of a move.
    pub also: Vec<Vec<u8>>,
    /// For how long, in milliseconds; `None` is for ever.
    pub timeout_ms: Option<u64>,
    /// How to serve the client when one of the keys has something.
    pub serve: Serve,
}

impl Block {
    /// A wait for one of `keys` to hold something.
    pub(crate) fn new(wants: Type, keys: &[&[u8]], timeout_ms: Option<u64>, serve: Serve) -> Self {
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        Self { wants, keys, also: Vec::new(), timeout_ms, serve }
    }

    /// Says that serving touches a further key.
    #[must_use]
    pub(crate) fn touching(mut self, key: &[u8]) -> Self {
        self.also.push(key.to_vec());
        self
    }
}

/// A command that has found nothing to take. Its keys stay locked, so that nothing can come in between, until the
/// client stands in their queues by [`Blocked::wait`], or this is dropped and the client does not wait. Whoever holds
/// it must not use the engine meanwhile.
#[must_use = "the client waits only after `wait`"]
pub struct Blocked<'e> {
    keys: Keys<'e>,
    args: Vec<Vec<u8>>,
    block: Box<Block>,
    protocol: Protocol,
    room: usize,
    durable: bool,
}

impl<'e> Blocked<'e> {
    /// The client's answer will go behind `reply`; nobody is told of what serving it changes before that is `durable`.
    pub(crate) fn new(
        keys: Keys<'e>,
        args: &[&[u8]],
        block: Box<Block>,
        reply: &Reply,
        durable: bool,
    ) -> Self {
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        Self { keys, args, block, protocol: reply.protocol(), room: reply.room(), durable }
    }

    /// For how long the client wants to wait, in milliseconds; `None` is for ever.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.block.timeout_ms
    }

    /// Lets the client wait. Once one of its keys has something and it is its turn, `deliver` is called, once, by
    /// whatever thread has put it there. `announce` is called before anybody can serve the client.
    pub fn wait(
        mut self,
        deliver: impl Fn(Delivery) + Send + Sync + 'static,
        announce: impl FnOnce(&Arc<Waiter>),
    ) -> Arc<Waiter> {
        let db = self.keys.db();
        let destinations = self.block.also.iter().map(|key| self.keys.shard_of(key)).collect();
        let deliver = Box::new(deliver);
        let mut waiter = Waiter::new(db, self.args, self.block, destinations, self.protocol, deliver);
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

/// What a blocked client finally gets.
#[derive(Debug)]
pub struct Delivery {
    /// The encoded answer.
    pub reply: Vec<u8>,
    /// The answer was too large for the client's output and is missing.
    pub overflowed: bool,
    /// The record that must be durable before the answer may leave, in `always` mode or if the command asked for it.
    pub lsn: Option<Lsn>,
}

/// A blocked client, shared by the queues of all keys it waits for. Either it is served, once, or it stops waiting.
pub struct Waiter {
    /// [`WAITING`], then for ever [`SERVED`] or [`STOPPED`].
    state: AtomicU8,
    pub(crate) db: u8,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) block: Box<Block>,
    /// Indices of the shards of the keys in `block.also`.
    pub(crate) destinations: Vec<usize>,
    pub(crate) protocol: Protocol,
    /// The most bytes that its answer may have.
    pub(crate) room: usize,
    /// Whether nobody may be told of what serving it changes before that is durable.
    pub(crate) durable: bool,
    deliver: Box<dyn Fn(Delivery) + Send + Sync>,
}

const WAITING: u8 = 0;
const SERVED: u8 = 1;
const STOPPED: u8 = 2;

impl Waiter {
    pub(crate) fn new(
        db: u8,
        args: Vec<Vec<u8>>,
        block: Box<Block>,
        destinations: Vec<usize>,
        protocol: Protocol,
        deliver: Box<dyn Fn(Delivery) + Send + Sync>,
    ) -> Self {
        Self {
            state: AtomicU8::new(WAITING),
            db,
            args,
            block,
            destinations,
            protocol,
            room: usize::MAX,
            durable: false,
            deliver,
        }
    }

    /// Whether the client has been served: its answer is on the way or there.
    pub fn is_served(&self) -> bool {
        self.state.load(Ordering::Acquire) == SERVED
    }

    /// Ends the client's wait without taking it out of the queues, which [`crate::Engine::stop_waiting`] has to do later.
    pub fn give_up(&self) {
        self.stop();
    }

    /// Claims the client, to serve it; `true` for one caller at most, and never after [`Waiter::stop`].
    pub(crate) fn claim(&self) -> bool {
        self.leave_waiting_for(SERVED)
    }

    /// Ends the client's wait; `true` for one caller at most, and never after [`Waiter::claim`].
    pub(crate) fn stop(&self) -> bool {
        self.leave_waiting_for(STOPPED)
    }

    fn leave_waiting_for(&self, state: u8) -> bool {
        self.state.compare_exchange(WAITING, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn deliver(&self, delivery: Delivery) {
        (self.deliver)(delivery);
    }
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter").field("db", &self.db).field("block", &self.block).finish_non_exhaustive()
    }
}
