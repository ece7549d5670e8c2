//! Consensus, as the server sees it: who leads, and who the members are.

use std::fmt;

/// Name of a member. Never used again after its removal; 0 is no member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// Number of a term: the time for which one member leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl fmt::Display for NodeId {
    /// Writes the name as clients of Redis Cluster expect one: 40 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:040x}", self.0)
    }
}

/// Role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Commands run here.
    Leading {
        /// The term.
        term: Term,
    },
    /// Commands go to the leader, if one is known and not silent.
    Following {
        /// The leader.
        leader: Option<NodeId>,
    },
}

/// Why a command may not run now. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another member leads.
    Moved(NodeId),
    /// No leader is known, or no quorum answers it.
    NoLeader,
    /// The leader gives the lead to another member.
    Transferring,
    /// Too much waits to be committed.
    Behind {
        /// Bytes that wait.
        bytes: u64,
    },
}

/// A member of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub id: NodeId,
    /// Where clients reach it, as `host:port`.
    pub client_address: String,
    /// Whether the other members reach it.
    pub is_reachable: bool,
}

/// Decides who leads. Answers are those of the moment.
pub trait Consensus: Send + Sync + 'static {
    /// Returns the role of this member. At most two atomic loads and a reading of the clock.
    fn role(&self) -> Role;

    /// Returns the term in which a command may run now. Called before each command; at most two
    /// atomic loads and a reading of the clock.
    ///
    /// # Errors
    /// The command must not run here now.
    fn admit(&self) -> Result<Term, Refusal>;

    /// Returns whether this follower knows the leader's state up to the bound that the group has
    /// set for reads on followers.
    fn is_fresh(&self) -> bool;

    /// Returns the members by the newest entry that names them.
    fn members(&self) -> Vec<Member>;
}
