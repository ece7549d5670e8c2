//! Consensus, as the server sees it: who leads, and who the members are.

use super::message::{MessageFigures, Published};
use crate::config::ClusterTls;
use std::time::Duration;
pub(crate) use tidemark_cluster::{NodeId, Refusal, Role, Term};
use tidemark_log::Durability;

/// Returns the name of a member as clients of Redis Cluster expect one: 40 hexadecimal digits.
pub(crate) fn wire_name(id: NodeId) -> String {
    format!("{:040x}", id.0)
}

/// Is called with whether the members have confirmed the lead.
pub(crate) type Confirmation = Box<dyn FnOnce(bool) + Send>;

/// A member of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name.
    pub(crate) id: NodeId,
    /// Where clients reach it, as `host:port`.
    pub(crate) client_address: String,
    /// Whether the other members reach it.
    pub(crate) is_reachable: bool,
}

/// What a member knows of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The newest term that it knows.
    pub(crate) term: Term,
    /// Index of its last entry.
    pub(crate) last: u64,
    /// Index of the last entry that it knows to be committed.
    pub(crate) committed: u64,
    /// Index of the last entry that each other member is known to have acknowledged; only at the leader.
    pub(crate) matching: Vec<(NodeId, u64)>,
    /// Time since most members acknowledged this leader; `None` if it does not lead.
    pub(crate) quorum_age: Option<Duration>,
    /// Members that need a snapshot and did not get it at the last attempt; only at the leader.
    pub(crate) unsent_snapshots: Vec<NodeId>,
    /// Whether this member does not take the snapshot that it needs.
    pub(crate) refuses_snapshot: bool,
    /// Published messages between members.
    pub(crate) messages: MessageFigures,
}

/// Decides who leads. Answers are those of the moment.
pub(crate) trait Consensus: Send + Sync + 'static {
    /// Returns the role of this member. At most two atomic loads and a reading of the clock.
    fn role(&self) -> Role;

    /// Returns the term in which a command may run now. Called before each command; at most two
    /// atomic loads and a reading of the clock.
    ///
    /// # Errors
    /// The command must not run here now.
    fn admit(&self) -> Result<Term, Refusal>;

    /// Returns whether what was executed here may be told: no other member can lead yet. True at a
    /// follower, whose reads may be old: the caller then looks at [`Group::ended_terms`], which has
    /// counted the term of what it executed as a leader. At most two atomic loads and a reading of the
    /// clock.
    ///
    /// [`Group::ended_terms`]: super::Group::ended_terms
    fn has_lease(&self) -> bool;

    /// Asks the members whether this one still leads, and calls `then` with their answer, on another
    /// thread.
    fn confirm(&self, then: Confirmation);

    /// Reads the certificates of members again, for connections that are made from now on.
    ///
    /// # Errors
    /// The files are missing, or do not fit together: the old ones stay in use.
    fn renew_tls(&self, tls: &ClusterTls) -> Result<(), String>;

    /// Returns what this member does before it acknowledges. Costs a lock.
    fn durability(&self) -> Durability;

    /// Changes what this member does before it acknowledges: see
    /// [`tidemark_cluster::Settings::durability`]. Waits for the disk.
    ///
    /// # Errors
    /// The change cannot be noted, or the log has failed, in words. The mode is the old one, or it syncs.
    fn set_durability(&self, durability: Durability) -> Result<(), String>;

    /// Returns whether this follower knows the leader's state up to the bound that the group has
    /// set for reads on followers.
    fn is_fresh(&self) -> bool;

    /// Returns the members by the newest entry that names them.
    fn members(&self) -> Vec<Member>;

    /// Returns what this member knows of the group. Costs a few locks.
    fn status(&self) -> Status;

    /// Has everything synced that this member's log has written. Returns before it is done.
    fn request_sync(&self);

    /// Queues a message for the subscribers of the other members. Returns at once.
    fn publish(&self, message: Published);
}
