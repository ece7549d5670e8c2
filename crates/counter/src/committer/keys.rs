//! What the committer has to know of counters, and does not look after itself.

use crate::counter::Counter;
use std::time::Duration;

/// When a counter is committed that is not committed for another reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timing {
    /// At the latest so long after its first change that is not committed.
    pub(crate) max_age: Duration,
    /// At the next interval, with so many units uncommitted.
    pub(crate) low: u64,
}

/// Where counters are kept.
///
/// A counter is *dirty* from the moment on when somebody has moved it and found that it was not, until the committer has called
/// [`rest`](Self::rest) for it and found, behind a [`barrier`](Self::barrier), that nothing has moved since.
pub(crate) trait Keys {
    /// One counter. While there is one of these, the counter stays where it is.
    type Key: Clone;

    fn name<'key>(&self, key: &'key Self::Key) -> &'key [u8];

    /// What tells it from others, as long as there is one of these.
    fn place(&self, key: &Self::Key) -> usize;

    fn counter<'key>(&self, key: &'key Self::Key) -> &'key Counter;

    fn timing(&self, key: &Self::Key) -> Timing;

    /// What was sealed of the counter has been acknowledged, or there was nothing to seal. Whether it must be committed again at once,
    /// because it has come to its threshold meanwhile.
    fn committed(&self, key: &Self::Key) -> bool;

    /// The counter is no longer dirty, unless it has moved: whoever moves it from now on says so.
    fn rest(&self, key: &Self::Key);

    /// Returns when every move of which nobody has said that it made a counter dirty can be seen.
    fn barrier(&self);

    /// The counter is dirty: `false` if that was known.
    fn rouse(&self, key: &Self::Key) -> bool;
}
