//! Terms, and the ballots that decide who leads in them.

use std::fmt;

/// Number of a term: the time for which one leader is elected. 0 is before the first term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The promise that a member has given: its vote in an election, or the leader that it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    /// The term of the promise.
    pub term: u64,
    /// The candidate, or the leader.
    pub node: u64,
    /// Whether a quorum has elected the node: it is the leader.
    pub is_elected: bool,
}
