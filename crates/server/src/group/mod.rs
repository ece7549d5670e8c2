//! The group that this node is a member of, if it is one: a node alone has none, and leads for ever.
//!
//! ```text
//! command::dispatch ─► command::gate: may this command run here? ─► Group ─► Consensus
//!                                                                     ▲
//!                      net::event_loop, http: has the term ended? ────┘◄── leadership ◄── node: consensus
//!
//!   seat: which member is this directory?      memory: follows the log, or is at its end
//! ```
//!
//! What is told waits for the log's committed watermark in every mode: `Settings::waits_for_commit`.

mod consensus;
mod leadership;
mod memory;
mod node;
#[cfg(test)]
pub(crate) mod planted;
mod seat;

#[cfg(test)]
pub(crate) use consensus::Confirmation;
pub(crate) use consensus::{Consensus, Member, NodeId, Refusal, Role, Term, wire_name};
pub(crate) use leadership::Leadership;
pub(crate) use memory::{Ended, keep_with_log};
pub use node::NodeError;
pub(crate) use node::{GroupNode, Membership};
pub use seat::SeatError;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Membership of this node in a group.
pub(crate) struct Group {
    me: NodeId,
    consensus: Arc<dyn Consensus>,
    /// How many terms of this member have ended.
    ended_terms: AtomicU64,
}

impl Group {
    /// Creates the membership of the member `me`.
    pub(crate) fn new(me: NodeId, consensus: Arc<dyn Consensus>) -> Group {
        Group { me, consensus, ended_terms: AtomicU64::new(0) }
    }

    /// Returns the name of this member.
    pub(crate) fn me(&self) -> NodeId {
        self.me
    }

    pub(crate) fn consensus(&self) -> &dyn Consensus {
        &*self.consensus
    }

    /// Notes that this member leads no longer. Called before any other member can commit something:
    /// what is committed from now on may stand in the place of what was executed here.
    pub(crate) fn end_term(&self) {
        self.ended_terms.fetch_add(1, Ordering::Release);
    }

    /// Returns how many terms of this member have ended. What waits for a record of the log waits
    /// in vain once this has changed: the record may have been taken back.
    #[inline]
    pub(crate) fn ended_terms(&self) -> u64 {
        self.ended_terms.load(Ordering::Acquire)
    }

    /// Returns the leader, if one is known.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        match self.consensus.role() {
            Role::Leading { .. } => Some(self.me),
            Role::Following { leader } => leader,
        }
    }

    /// Returns the term that this member leads; 0 if it follows.
    pub(crate) fn term(&self) -> Term {
        match self.consensus.role() {
            Role::Leading { term } => term,
            Role::Following { .. } => Term(0),
        }
    }

    /// Returns whether this member leads.
    pub(crate) fn leads(&self) -> bool {
        matches!(self.consensus.role(), Role::Leading { .. })
    }

    /// Returns the address of a member for clients, if the group knows the member.
    pub(crate) fn address_of(&self, id: NodeId) -> Option<String> {
        self.consensus
            .members()
            .into_iter()
            .find(|member| member.id == id)
            .map(|member| member.client_address)
    }
}
