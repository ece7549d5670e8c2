//! The committer's interface to the counters.

use crate::counter::Counter;
use std::time::Duration;

/// When a counter without other demands is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timing {
    /// Longest time after its first uncommitted change.
    pub(crate) max_age: Duration,
    /// Number of uncommitted units from which it is committed at the next interval.
    pub(crate) low: u64,
}

/// The place where counters are kept: the table of [`Counters`](crate::Counters), and a vector in the
/// tests of the committer.
///
/// A counter is *dirty* from the first move that finds it clean, until the committer has called
/// [`rest`](Self::rest) for it and has found, after a [`barrier`](Self::barrier), that it has not
/// moved since.
pub(crate) trait Keys {
    /// A reference to one counter, which keeps it in memory.
    type Key: Clone;

    fn name<'key>(&self, key: &'key Self::Key) -> &'key [u8];

    /// Returns what identifies the counter while a reference exists.
    fn place(&self, key: &Self::Key) -> usize;

    fn counter<'key>(&self, key: &'key Self::Key) -> &'key Counter;

    fn timing(&self, key: &Self::Key) -> Timing;

    /// Called when the sealed amount has been acknowledged, or there was nothing to seal. Returns
    /// whether the counter has reached its threshold meanwhile and must be committed again
    /// immediately.
    fn committed(&self, key: &Self::Key) -> bool;

    /// Marks the counter as clean: the next move marks it dirty again.
    fn rest(&self, key: &Self::Key);

    /// Returns once all moves that have not marked their counter dirty are visible.
    fn barrier(&self);

    /// Marks the counter dirty; returns `false` if it was.
    fn rouse(&self, key: &Self::Key) -> bool;
}
