//! A client that waits until a key has something to take: what it waits for, and what it gets.

use crate::value::Type;
use crate::wire::reply::Protocol;
use std::sync::atomic::{AtomicU8, Ordering};
use tidemark_log::Lsn;

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
}

impl Block {
    /// A wait for one of `keys` to hold something.
    pub(crate) fn new(wants: Type, keys: &[&[u8]], timeout_ms: Option<u64>) -> Self {
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        Self { wants, keys, also: Vec::new(), timeout_ms }
    }

    /// Says that serving touches a further key.
    #[must_use]
    pub(crate) fn touching(mut self, key: &[u8]) -> Self {
        self.also.push(key.to_vec());
        self
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
    /// The number of the command that lets it wait: its row says how the client is served.
    pub(crate) command: u16,
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
        command: u16,
        db: u8,
        args: Vec<Vec<u8>>,
        block: Box<Block>,
        destinations: Vec<usize>,
        protocol: Protocol,
        deliver: Box<dyn Fn(Delivery) + Send + Sync>,
    ) -> Self {
        Self {
            state: AtomicU8::new(WAITING),
            command,
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

    /// Whether the client has neither been served nor stopped waiting.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITING
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
