//! What scripts use of the server: commands that are not on keys, channels, the log of messages.

use crate::command::rows::{ConnectionCommand as C, command_table, connection_command_of};
use crate::events::publication::Kind;
use crate::events::pubsub::PubSub;
use crate::observe::operator_line::OperatorLine;
use std::sync::Arc;
use std::time::Instant;
use tidemark_engine::script::{Publication, ScriptHost};
use tidemark_engine::{Command, CommandError, Reply};
use tidemark_log::Clock;

/// The server, as scripts see it.
pub(crate) struct ServerOfScripts {
    pubsub: Arc<PubSub>,
    clock: Clock,
    /// What scripts log as warnings, at most once in some seconds.
    warning: OperatorLine,
}

/// The level of `redis.LOG_WARNING`.
const WARNING: u8 = 3;
/// Seconds between two lines that scripts log.
const PAUSE_S: u64 = 1;

impl ServerOfScripts {
    pub(crate) fn new(pubsub: Arc<PubSub>, clock: &Clock) -> ServerOfScripts {
        ServerOfScripts { pubsub, clock: clock.clone(), warning: OperatorLine::every(PAUSE_S, clock) }
    }
}

impl ScriptHost for ServerOfScripts {
    fn resolve(&self, args: &[&[u8]]) -> Result<&'static Command, CommandError> {
        command_table().resolve(args)
    }

    fn run(&self, command: &'static Command, args: &[&[u8]], now_us: u64, reply: &mut Reply) -> bool {
        match (connection_command_of(command), args) {
            (Some(C::Ping), [_]) => reply.simple("PONG"),
            (Some(C::Ping | C::Echo), [_, message]) => reply.bulk(message),
            (Some(C::Time), _) => {
                // A loop may wait for it to go on: only deadlines stand still.
                let now_us = now_us.max(self.clock.now_us());
                reply.array(2);
                reply.bulk_integer((now_us / 1_000_000) as i64);
                reply.bulk_integer((now_us % 1_000_000) as i64);
            }
            _ => return false,
        }
        true
    }

    fn receivers(&self, command: &'static Command, args: &[&[u8]]) -> Option<(Publication, usize)> {
        let kind = match connection_command_of(command)? {
            C::Publish => Kind::Channel,
            C::Spublish => Kind::Shard,
            _ => return None,
        };
        let [_, channel, message] = args else { return None };
        let publication = Publication {
            is_shard: kind == Kind::Shard,
            channel: channel.to_vec(),
            message: message.to_vec(),
        };
        Some((publication, self.pubsub.receivers(kind, channel)))
    }

    fn log(&self, level: u8, message: &[u8]) {
        // The server itself says what an operator should know, no more.
        if level >= WARNING {
            self.warning.write(|| format!("A script warns: {}", String::from_utf8_lossy(message)));
        }
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }
}
