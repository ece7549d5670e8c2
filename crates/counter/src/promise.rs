//! What a crash may do to a counter.

/// What a counter guarantees when its process dies without a last commit.
///
/// The durable and the true position may differ, because changes that cancel each other are not
/// stored. The promise bounds that difference in each direction. The counter moves only within a
/// window around the durable position; at its edge, the caller commits first.
///
/// Both promises cover acknowledged moves. A move under way at a crash may be durable or not. Until
/// it is acknowledged, a move larger than the slack (or than half of it under concurrent moves) may
/// add to the difference.
///
/// ```
/// use tidemark_counter::Promise;
///
/// assert_eq!(Promise::Relaxed { cap: 100 }.slack(), (100, 100));
/// assert_eq!(Promise::Exact { block: 100 }.slack(), (100, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Write-behind: the durable position may be up to `cap` units below or above the true one.
    /// After a crash a quota may admit up to `cap` units again.
    Relaxed {
        /// Most units that may be uncommitted at any time, at least 1.
        cap: u64,
    },
    /// Write-ahead: a block of units is durable before its first unit is granted. After a crash a
    /// quota has admitted no more than its limit, and may admit up to `block` units less than it.
    Exact {
        /// Most units that may be reserved and unused at any time, at least 1.
        block: u64,
    },
}

impl Promise {
    /// Returns how far the durable position may be `(ahead of, behind)` the true one. Units.
    pub const fn slack(self) -> (u64, u64) {
        match self {
            Self::Relaxed { cap } => (cap, cap),
            Self::Exact { block } => (block, 0),
        }
    }
}
