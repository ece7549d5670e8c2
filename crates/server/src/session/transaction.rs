//! Commands that a client has queued between `MULTI` and `EXEC`.

use crate::command::rows::{ConnectionCommand, connection_command_of};
use tidemark_engine::Command;
use tidemark_engine::command::parse;

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    queue: Vec<Queued>,
    /// Bytes of all arguments.
    bytes: usize,
    /// A command was refused, so `EXEC` refuses all.
    spoilt: bool,
    /// A command requested durability, so all replies wait for it.
    durable: bool,
}

#[derive(Debug)]
struct Queued {
    command: &'static Command,
    args: Vec<Box<[u8]>>,
}

impl Transaction {
    /// Number of queued commands.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of all arguments.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The queued commands with their arguments.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static Command, &[Box<[u8]>])> {
        self.queue.iter().map(|queued| (queued.command, &*queued.args))
    }

    /// Whether it contains `CLIENT CACHING YES`.
    pub(crate) fn opts_in(&self) -> bool {
        self.queue.iter().any(|Queued { command, args }| {
            connection_command_of(command) == Some(ConnectionCommand::ClientCaching)
                && args.get(2).is_some_and(|word| parse::is(word, "YES"))
        })
    }

    /// Makes `EXEC` refuse the transaction.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Whether `EXEC` refuses the transaction.
    pub(crate) fn is_spoilt(&self) -> bool {
        self.spoilt
    }

    /// Whether its replies wait until the changes are durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable
    }

    /// Queues a command. Returns `false` if all commands would take more than `limit` bytes.
    pub(crate) fn queue(
        &mut self,
        command: &'static Command,
        args: &[&[u8]],
        is_durable: bool,
        limit: usize,
    ) -> bool {
        let bytes: usize = args.iter().map(|arg| arg.len() + size_of::<Box<[u8]>>()).sum();
        if self.bytes + bytes > limit {
            return false;
        }
        self.bytes += bytes;
        self.durable |= is_durable;
        self.queue.push(Queued { command, args: args.iter().map(|arg| Box::from(*arg)).collect() });
        true
    }
}
