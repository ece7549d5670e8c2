//! Messages on channels.

use crate::net::outbox::Until;
use crate::subscription::channel_flow::Turn;
use std::sync::Arc;
use tidemark_engine::Reply;

/// What a client may subscribe to. The three have separate names: a channel `a` is not the pattern `a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A channel.
    Channel,
    /// A glob pattern over channels.
    Pattern,
    /// A shard channel, which in a server of one shard is a channel of another namespace.
    Shard,
}

impl Kind {
    /// What the confirmation of a subscription is called.
    pub(crate) fn subscribed(self) -> &'static str {
        match self {
            Kind::Channel => "subscribe",
            Kind::Pattern => "psubscribe",
            Kind::Shard => "ssubscribe",
        }
    }

    /// What the confirmation of the end of a subscription is called.
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
    /// The name subscribed to: the channel, or the pattern that matched it.
    pub(crate) name: Arc<[u8]>,
    pub(crate) channel: Arc<[u8]>,
    pub(crate) payload: Arc<[u8]>,
    /// What the log must have done before anybody gets the message.
    pub(crate) after: Option<Until>,
    /// For an emission of a watched read: ends when all subscribers have room for more.
    pub(crate) turn: Option<Arc<Turn>>,
}

impl Publication {
    /// Bytes of what is told: the name of a channel, which may be that of a key, is as long as a message.
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
