//! Messages on channels.

use crate::net::outbox::Until;
use crate::subscription::channel_flow::Turn;
use std::sync::Arc;
use tidemark_engine::Reply;

/// What a client may subscribe to. Each kind has its own namespace: channel `a` is not pattern `a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A channel.
    Channel,
    /// A glob pattern over channels.
    Pattern,
    /// A shard channel. On a server with one shard: a channel in another namespace.
    Shard,
}

impl Kind {
    /// Name of the confirmation that a subscription has begun.
    pub(crate) fn subscribed(self) -> &'static str {
        match self {
            Kind::Channel => "subscribe",
            Kind::Pattern => "psubscribe",
            Kind::Shard => "ssubscribe",
        }
    }

    /// Name of the confirmation that a subscription has ended.
    pub(crate) fn unsubscribed(self) -> &'static str {
        match self {
            Kind::Channel => "unsubscribe",
            Kind::Pattern => "punsubscribe",
            Kind::Shard => "sunsubscribe",
        }
    }
}

/// A message on its way to one subscription's clients.
#[derive(Clone)]
pub(crate) struct Publication {
    pub(crate) kind: Kind,
    /// Name subscribed to: the channel, or the pattern that matched it.
    pub(crate) name: Arc<[u8]>,
    pub(crate) channel: Arc<[u8]>,
    pub(crate) payload: Arc<[u8]>,
    /// Log progress that the message waits for.
    pub(crate) after: Option<Until>,
    /// For an emission of a watched read: the turn that ends when all subscribers have room.
    pub(crate) turn: Option<Arc<Turn>>,
}

impl Publication {
    /// Size in bytes, with the channel's name, which may contain a key and be as long as a message.
    pub(crate) fn len(&self) -> usize {
        self.channel.len() + self.payload.len()
    }

    /// Writes the message in the client's protocol.
    pub(crate) fn write(&self, reply: &mut Reply) {
        match self.kind {
            Kind::Channel | Kind::Shard => {
                reply.push(3);
                reply.bulk(if self.kind == Kind::Channel { b"message" } else { b"smessage" });
            }
            Kind::Pattern => {
                reply.push(4);
                reply.bulk(b"pmessage");
                reply.bulk(&self.name);
            }
        }
        reply.bulk(&self.channel);
        reply.bulk(&self.payload);
    }
}
