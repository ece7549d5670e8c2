//! A blocked client: what it waits for, and what it receives.

use crate::value::Type;
use crate::wire::reply::Protocol;
use std::sync::atomic::{AtomicU8, Ordering};
use tidemark_log::Lsn;

/// How a command wants to block.
#[derive(Debug, Clone)]
pub struct Block {
    /// Type of value that can serve it.
    pub wants: Type,
    /// Keys to wait for, in order of preference.
    pub keys: Vec<Vec<u8>>,
    /// Further keys that serving touches: the destination of a move.
    pub also: Vec<Vec<u8>>,
    /// How long to wait, in milliseconds; `None` waits indefinitely.
    pub timeout_ms: Option<u64>,
    /// Set if the command only reads.
    pub(crate) reads: Option<WaitingRead>,
    /// Whether the command decides by its key and arguments if it can be served, and not by the type of
    /// the value alone.
    pub(crate) is_conditional: bool,
}

/// Wait of a command that takes nothing. It is served as soon as it is ready, wherever it is in the
/// queue, and answers what there is when its time is over.
#[derive(Debug, Clone)]
pub(crate) struct WaitingRead {
    /// The command's arguments, without what depends on the time at which it came.
    args: Vec<Vec<u8>>,
}

impl Block {
    /// Creates a wait for one of `keys`.
    pub(crate) fn new(wants: Type, keys: &[&[u8]], timeout_ms: Option<u64>) -> Self {
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        Self { wants, keys, also: Vec::new(), timeout_ms, reads: None, is_conditional: false }
    }

    /// Makes it the wait of a command that takes nothing.
    #[must_use]
    pub(crate) fn reading(mut self, args: Vec<Vec<u8>>) -> Self {
        self.reads = Some(WaitingRead { args });
        self
    }

    /// Makes it the wait of a command whose row says when it can be served.
    #[must_use]
    pub(crate) fn when_ready(mut self) -> Self {
        self.is_conditional = true;
        self
    }

    /// Adds a further key that serving touches.
    #[must_use]
    pub(crate) fn touching(mut self, key: &[u8]) -> Self {
        self.also.push(key.to_vec());
        self
    }
}

/// What a blocked client finally receives.
#[derive(Debug)]
pub struct Delivery {
    /// The encoded reply.
    pub reply: Vec<u8>,
    /// Whether the reply was too large for the client's output and is missing.
    pub overflowed: bool,
    /// Record that must be durable before the reply is sent, in `always` mode or if the command
    /// required it.
    pub lsn: Option<Lsn>,
}

/// A blocked client, shared by the queues of all its keys. It is either served once or stops
/// waiting.
pub struct Waiter {
    /// [`WAITING`], then finally [`SERVED`] or [`STOPPED`].
    state: AtomicU8,
    /// Id of the blocking command; its row has the function that serves the client.
    pub(crate) command: u16,
    pub(crate) db: u8,
    args: Vec<Vec<u8>>,
    pub(crate) block: Box<Block>,
    /// Indices of the shards of the keys in `block.also`.
    pub(crate) destinations: Vec<usize>,
    pub(crate) protocol: Protocol,
    /// Maximum bytes of the reply.
    pub(crate) room: usize,
    /// Whether the changes of serving it are published only when durable.
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

    /// Whether the client was served: its reply is on the way or delivered.
    pub fn is_served(&self) -> bool {
        self.state.load(Ordering::Acquire) == SERVED
    }

    /// Whether the client has neither been served nor stopped waiting.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITING
    }

    /// Ends the client's wait but leaves it queued; [`crate::Engine::stop_waiting`] must remove it
    /// later.
    pub fn give_up(&self) {
        self.stop();
    }

    /// Whether the client takes something from any value of the type that this key holds.
    pub(crate) fn can_take(&self, held: Option<Type>) -> bool {
        !self.only_reads() && !self.block.is_conditional && held == Some(self.block.wants)
    }

    /// Whether the client takes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        self.block.reads.is_some()
    }

    /// Whether the client takes something if its command's row says that it is ready.
    pub(crate) fn is_conditional(&self) -> bool {
        self.block.is_conditional
    }

    /// Returns the arguments with which the client is served.
    pub(crate) fn args(&self) -> Vec<&[u8]> {
        let args = self.block.reads.as_ref().map_or(&self.args, |reads| &reads.args);
        args.iter().map(Vec::as_slice).collect()
    }

    /// Claims the client in order to serve it. Returns `true` to at most one caller, and never
    /// after [`Waiter::stop`].
    pub(crate) fn claim(&self) -> bool {
        self.leave_waiting_for(SERVED)
    }

    /// Ends the client's wait. Returns `true` to at most one caller, and never after
    /// [`Waiter::claim`].
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
