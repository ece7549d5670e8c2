//! The group that this node is a member of, if it is one: a node alone has none, and leads for ever.
//!
//! ```text
//! command::dispatch ─► command::gate: may this command run here? ─► Group ─► Consensus
//!                                                                     ▲
//!                      net::event_loop, http: has the term ended? ────┘◄── leadership ◄── node: consensus
//!
//!   membership: the directory before it takes part      term_listener: what the consensus decides
//!   operations: what operators ask for      joining, meeting: what a member asks the others' servers
//!   seat: which member is this directory?      memory: follows the log, or is at its end
//!   replacing: damaged data is got from the others
//!   full_disk: a leader that cannot write gives the lead away
//!   messages: what PUBLISH says, to the subscribers of the other members
//! ```
//!
//! What is told waits for the log's committed watermark in every mode: `Settings::waits_for_commit`.

mod cluster_status;
mod consensus;
mod durable_file;
mod full_disk;
mod joining;
mod leadership;
pub(crate) mod meeting;
mod membership;
mod memory;
mod message;
mod messages;
mod node;
mod node_error;
mod notices;
mod operations;
#[cfg(test)]
pub(crate) mod planted;
mod replacing;
mod seat;
mod term_listener;

pub use cluster_status::{ClusterStatus, MemberStatus, MissingField};
#[cfg(test)]
pub(crate) use consensus::{Confirmation, Status};
pub(crate) use consensus::{Consensus, Member, NodeId, Refusal, Role, Term, wire_name};
pub(crate) use leadership::Leadership;
pub(crate) use membership::Membership;
pub(crate) use memory::{Ended, keep_with_log};
pub(crate) use message::Published;
pub(crate) use messages::Messages;
pub(crate) use node::GroupNode;
pub use node_error::NodeError;
pub(crate) use operations::{Change, MemberView, Operations, View};
pub(crate) use replacing::requested as requested_replacement;
pub use seat::SeatError;

use crate::settings::Settings;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Membership of this node in a group.
pub(crate) struct Group {
    me: NodeId,
    consensus: Arc<dyn Consensus>,
    /// How many terms of this member have ended.
    ended_terms: AtomicU64,
    /// The leader that was seen last; 0 before the first.
    last_leader: AtomicU64,
    /// How often another leader was seen than before.
    leader_changes: AtomicU64,
    /// The members are asked before reads are answered: a lease does not do.
    confirms_reads: bool,
    /// What operators ask for; `None` over a planted consensus.
    operations: Option<Arc<Operations>>,
    /// Held while the durability mode follows the settings.
    changing_mode: Mutex<()>,
}

impl Group {
    /// Creates the membership of the member `me`.
    pub(crate) fn new(me: NodeId, consensus: Arc<dyn Consensus>) -> Group {
        Group {
            me,
            consensus,
            ended_terms: AtomicU64::new(0),
            last_leader: AtomicU64::new(0),
            leader_changes: AtomicU64::new(0),
            confirms_reads: false,
            operations: None,
            changing_mode: Mutex::default(),
        }
    }

    /// Creates the membership of this process.
    pub(crate) fn of(node: Arc<GroupNode>) -> Group {
        let operations = Some(Operations::new(Arc::clone(&node)));
        Group { operations, ..Group::new(node.me(), node) }
    }

    /// Returns what operators ask for.
    pub(crate) fn operations(&self) -> Option<&Arc<Operations>> {
        self.operations.as_ref()
    }

    /// Has the members asked before reads are answered, if `confirms`.
    pub(crate) fn confirming_reads(self, confirms: bool) -> Group {
        Group { confirms_reads: confirms, ..self }
    }

    /// Whether the members are asked before reads are answered.
    #[inline]
    pub(crate) fn confirms_reads(&self) -> bool {
        self.confirms_reads
    }

    /// Asks the members whether this one still leads, and waits for their answer.
    pub(crate) async fn is_confirmed(&self) -> bool {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.consensus.confirm(Box::new(move |is_given| {
            // A client that has gone does not wait.
            let _ = answer.send(is_given);
        }));
        answered.await.unwrap_or(false)
    }

    /// Has this member acknowledge as the settings say. Waits for the disk. Of two changes of the settings at a
    /// time, the last one counts.
    ///
    /// # Errors
    /// The change cannot be noted, or the log has failed, in words.
    pub(crate) fn follow_mode(&self, settings: &Settings) -> Result<(), String> {
        let _changing = self.changing_mode.lock().unwrap_or_else(PoisonError::into_inner);
        let durability = settings.current().durability;
        if self.consensus.durability() == durability {
            return Ok(());
        }
        self.consensus.set_durability(durability)
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

    /// Returns the leader, or the last one that was known.
    pub(crate) fn last_leader(&self) -> Option<NodeId> {
        let last = NodeId(self.last_leader.load(Ordering::Relaxed));
        self.leader().or_else(|| (last.0 != 0).then_some(last))
    }

    /// Looks for the leader. Returns the one that was seen last and the one of now, if they differ. For
    /// one thread.
    pub(crate) fn look_for_leader(&self) -> Option<(NodeId, NodeId)> {
        let leader = self.leader()?;
        let before = NodeId(self.last_leader.swap(leader.0, Ordering::Relaxed));
        let has_changed = before.0 != 0 && before != leader;
        if has_changed {
            self.leader_changes.fetch_add(1, Ordering::Relaxed);
        }
        has_changed.then_some((before, leader))
    }

    /// Returns how often another leader was seen than before.
    pub(crate) fn leader_changes(&self) -> u64 {
        self.leader_changes.load(Ordering::Relaxed)
    }

    /// If this member leads, hands the lead over and then stops the server: see [`Operations::leave`].
    pub(crate) fn leave(&self) -> bool {
        self.operations.as_ref().is_some_and(Operations::leave)
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
