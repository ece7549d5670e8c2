//! What tells clusters, members, directories and processes apart.

use crate::ids::{GroupId, NodeId, RandomId};

/// What a member says of itself when it connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, drawn when it was founded.
    pub cluster: RandomId,
    /// The group.
    pub group: GroupId,
    /// The member.
    pub node: NodeId,
    /// The data directory, drawn when it joined. The members list has it: another directory is another
    /// member.
    pub directory: RandomId,
    /// The process, drawn when it starts: two processes on one directory, or on a copy of it, differ.
    pub process: RandomId,
}
