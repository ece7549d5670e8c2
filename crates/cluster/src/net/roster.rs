//! Who may connect: the members as the network knows them.

use std::collections::BTreeMap;

use crate::ids::{NodeId, RandomId};

/// Another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Host and port of its listener.
    pub address: String,
    /// Its directory, if the members list has it.
    pub directory: Option<RandomId>,
}

/// The members as the network knows them. Links to all of them are kept open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The other members.
    pub peers: BTreeMap<NodeId, Peer>,
    /// Whether members that are not listed may connect: until the first list of members arrives.
    pub admits_unlisted: bool,
}

impl Roster {
    /// Most members that a cluster can have.
    pub const MEMBERS_MAX: usize = 64;
}
