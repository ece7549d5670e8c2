//! Consensus as a server sees it.

use std::io;
use std::time::Duration;

use tidemark_log::EntryId;

use crate::ids::NodeId;
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
    /// Why this member takes no part any more; `None` if it does.
    pub failure: Option<String>,
}

/// Decides who leads, and what is committed.
pub trait Consensus: Send + Sync {
    /// Returns the role of this member. Two atomic loads, and a clock read at a follower.
    fn role(&self) -> Role;

    /// Returns the term in which a command may run now. Two atomic loads and a clock read.
    ///
    /// # Errors
    /// Another member leads, or no quorum answers this one: the command must not run.
    fn admit(&self) -> Result<Term, Refusal>;

    /// Returns whether reads of `term` may be answered now without a round to the members. One
    /// atomic load and a clock read.
    fn has_lease(&self, term: Term) -> bool;

    /// Returns the members by the newest entry that names them; none before the first.
    fn members(&self) -> Vec<Member>;

    /// Returns what this member knows of the group.
    fn status(&self) -> GroupStatus;

    /// Makes `members` the first of a new group. Called at one of them; blocks until it is done.
    ///
    /// # Errors
    /// The group has begun, a member does not vote, or this one is closed.
    fn init(&self, members: Members) -> io::Result<()>;

    /// Ends this member's part; blocks until its threads have ended. The log stays open.
    fn close(&self);
}
