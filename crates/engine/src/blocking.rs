//! Clients that wait until a key has something to take.

use crate::context::Context;
use crate::error::CommandError;
use crate::reply::Protocol;
use crate::value::Type;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// What a blocked client finally gets.
#[derive(Debug)]
pub struct Delivery {
    /// The encoded answer.
    pub reply: Vec<u8>,
    /// The record that must be durable before the answer may leave, in `always` mode or if the command asked for it.
    pub lsn: Option<Lsn>,
}

/// A blocked client, shared by the queues of all keys it waits for. Exactly one party claims it: a shard that serves it,
/// its deadline, or its disconnection.
pub struct Waiter {
    claimed: AtomicBool,
    pub(crate) db: u8,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) block: Box<Block>,
    pub(crate) protocol: Protocol,
    deliver: Box<dyn Fn(Delivery) + Send + Sync>,
}

impl Waiter {
    pub(crate) fn new(
        db: u8,
        args: &[&[u8]],
        block: Box<Block>,
        protocol: Protocol,
        deliver: Box<dyn Fn(Delivery) + Send + Sync>,
    ) -> Self {
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        Self { claimed: AtomicBool::new(false), db, args, block, protocol, deliver }
    }

    /// For how long the client wants to wait, in milliseconds; `None` is for ever.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.block.timeout_ms
    }

    /// Claims the client; `true` for exactly one caller.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Acquire)
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
