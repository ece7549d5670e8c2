//! Consensus as a server sees it.

use std::io;
use std::time::Duration;

use tidemark_log::EntryId;

use crate::ids::NodeId;
use crate::level::Level;
use crate::member::{Member, Members};
use crate::role::Role;
use crate::term::Term;

/// Why a command may not run now. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another member leads.
    #[error("member {0} leads the group")]
    Moved(NodeId),
    /// No leader is known, or no quorum answers it.
    #[error("the group has no leader that a quorum answers")]
    NoLeader,
    /// The members, or the leader, are being changed.
    #[error("the group is being changed; try again")]
    Changing,
}

/// Why a change of the members, or of the leader, was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// This member does not lead, or lost the lead meanwhile.
    #[error("this member does not lead the group; ask the leader")]
    NotLeader,
    /// Another change is under way.
    #[error("another change is under way; repeat this one when it has ended")]
    Another,
    /// A member lacks entries when the patience ends.
    #[error("the member lacks {behind} entries; repeat the change when it has caught up")]
    NotCaughtUp {
        /// Number of entries.
        behind: u64,
    },
    /// The target of a transfer is no other voter.
    #[error("{0} is no other member that votes")]
    NoVoter(NodeId),
    /// The member to be removed is not there.
    #[error("{0} is no member of the group")]
    Unknown(NodeId),
    /// The member to be removed leads.
    #[error("member {0} leads the group; transfer the lead before it is removed")]
    Leads(NodeId),
    /// The lead was offered, and not taken in time. An election decides who leads.
    #[error("member {0} did not take the lead in time; the members elect a leader")]
    NotTaken(NodeId),
    /// The commands that run cannot be ended.
    #[error("commands cannot be paused: {0}")]
    NotPaused(String),
    /// The list of members would be invalid.
    #[error("{0}")]
    Invalid(String),
    /// The group refuses the change.
    #[error("the group refuses the change: {0}")]
    Refused(String),
    /// This member takes no part any more.
    #[error("this member of the group is closed")]
    Closed,
}

/// What a group looks like from one member.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// This member's role.
    pub role: Role,
    /// The newest term that this member knows.
    pub term: Term,
    /// This member's last entry.
    pub last: EntryId,
    /// The last entry that this member knows to be committed.
    pub committed: EntryId,
    /// Of each other member, the last entry that is known to be there; only at the leader.
    pub matching: Vec<(NodeId, EntryId)>,
    /// Time since a quorum acknowledged this leader; `None` if it does not lead.
    pub quorum_age: Option<Duration>,
    /// The group's level, by the newest entry that names the members.
    pub level: Level,
    /// This member may have lost what it acknowledged: it has no vote until a leader has caught it
    /// up. While most members are in this state, none can be elected.
    pub is_suspect: bool,
    /// An entry that this member knows to be committed names it: it is one of the group's members, or was.
    pub is_named: bool,
    /// The newest entry that names the members is committed: the list does not fall back to an earlier one.
    pub are_members_committed: bool,
    /// The members that need a snapshot and did not get it at the last attempt, and why; only at the leader.
    pub unsent_snapshots: Vec<(NodeId, String)>,
    /// Why this member does not take the snapshot of the leader that it needs; `None` if it needs none.
    pub refused_snapshot: Option<String>,
    /// Why this member takes no part any more; `None` if it does.
    pub failure: Option<String>,
}

/// Decides who leads, and what is committed.
pub trait Consensus: Send + Sync {
    /// Returns the role of this member. Two atomic loads, and a clock read at a follower.
    fn role(&self) -> Role;

    /// Returns the term in which a command may run now. Three atomic loads and a clock read.
    ///
    /// # Errors
    /// Another member leads, no quorum answers this one, or a change is under way: the command must
    /// not run.
    fn admit(&self) -> Result<Term, Refusal>;

    /// Returns whether reads of `term` may be answered now without a round to the members. One
    /// atomic load and a clock read.
    fn has_lease(&self, term: Term) -> bool;

    /// Calls `then` with true once a quorum has acknowledged the leader of `term` after this call:
    /// reads that were executed before may be answered, if what they show is committed. With false
    /// if the term has ended, or no quorum answers within two leases. Costs one round to the
    /// members; calls that arrive while one is under way share the next. `then` runs on the thread
    /// of the consensus, and must return quickly.
    fn confirm(&self, term: Term, then: Box<dyn FnOnce(bool) + Send>);

    /// Returns the age of the leader's state that is committed in this member's log: everything that the
    /// group had committed that long ago is. `None` if it is unknown. Measured by this member's clock
    /// from before it asked the leader. An atomic load and a clock read.
    fn staleness(&self) -> Option<Duration>;

    /// Returns the members by the newest entry that names them; none before the first.
    fn members(&self) -> Vec<Member>;

    /// Returns what this member knows of the group.
    fn status(&self) -> GroupStatus;

    /// Has everything synced that this member's log has written, in every mode. Returns before it is
    /// done: see [`Log::durable`](tidemark_log::Log::durable).
    fn request_sync(&self);

    /// Makes `members` the first of a new group. Called at one of them; blocks until it is done.
    ///
    /// # Errors
    /// The group has begun, a member does not vote, or this one is closed.
    fn init(&self, members: Members) -> io::Result<()>;

    /// Hands the lead over to `to`, once it has everything. Commands are refused from when it has
    /// nearly everything. Blocks.
    ///
    /// # Errors
    /// This member does not lead, `to` does not vote, or it lacks entries when `patience` ends:
    /// nothing has changed. Or it did not take the lead in time: the members elect a leader.
    fn transfer(&self, to: NodeId, patience: Duration) -> Result<(), ChangeError>;

    /// Adds a member, which has an empty log and runs. It is a learner until it has caught up; then
    /// it votes, if it is to. Blocks.
    ///
    /// # Errors
    /// This member does not lead, another change is under way, or the new member lacks entries when
    /// `patience` ends: it stays a learner, and the call can be repeated.
    fn join(&self, member: Member, patience: Duration) -> Result<(), ChangeError>;

    /// Removes a member. Blocks.
    ///
    /// # Errors
    /// This member does not lead, is the one to be removed, or another change is under way.
    fn remove(&self, node: NodeId, patience: Duration) -> Result<(), ChangeError>;

    /// Ends this member's part; blocks until its threads have ended. The log stays open.
    fn close(&self);
}
