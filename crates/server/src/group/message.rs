//! A published message between members, and how many there were.

use crate::events::publication::Kind;
use tidemark_cluster::Term;
use tidemark_log::Lsn;

/// Bytes of a message in a frame besides its channel and its payload.
const HEAD_BYTES: usize = 9;

/// A message on its way to the subscribers of other members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) kind: Kind,
    pub(crate) channel: Box<[u8]>,
    pub(crate) payload: Box<[u8]>,
    /// What must be committed before it may be told, and the term that this member leads.
    pub(crate) after: Option<(Term, Lsn)>,
}

impl Published {
    /// Returns its size in a frame, in bytes.
    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES + self.channel.len() + self.payload.len()
    }
}

/// Numbers of messages since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MessageFigures {
    /// Sent to a member; a message to two of them counts twice.
    pub(crate) sent: u64,
    /// Received from another member.
    pub(crate) received: u64,
    /// Known not to have reached a member's subscribers.
    pub(crate) dropped: u64,
}
