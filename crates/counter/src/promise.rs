//! What a crash may do to a counter.

/// The promise that a counter keeps when its process dies without a last commit.
///
/// What is durable and what is true may differ, because a change that cancels another is to cost nothing. The promise says in which
/// direction, and by how much at most. It is kept by letting a counter move only within a window around what is durable: at its edge
/// whoever moves it commits first.
///
/// Both are promises about moves that somebody has been told of. One that is under way when the process dies may be durable or not; so until it
/// is told, one that is further than the slack, or than half of it where others move the counter meanwhile, may come on top.
///
/// ```
/// use tidemark_counter::Promise;
///
/// assert_eq!(Promise::Relaxed { cap: 100 }.slack(), (100, 100));
/// assert_eq!(Promise::Exact { block: 100 }.slack(), (100, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Write-behind: what is durable may be up to `cap` units short of the truth, or beyond it. After a crash a quota may
    /// admit up to `cap` units again.
    Relaxed {
        /// Units that may be uncommitted at any time, at least 1.
        cap: u64,
    },
    /// Write-ahead: a block of units is durable before the first of it is granted. After a crash a quota has admitted no more than
    /// its limit, and may admit up to `block` units less than it.
    Exact {
        /// Units that may be reserved and not used at any time, at least 1.
        block: u64,
    },
}

impl Promise {
    /// How far what is durable may be `(ahead of, behind)` the truth. Units.
    pub const fn slack(self) -> (u64, u64) {
        match self {
            Self::Relaxed { cap } => (cap, cap),
            Self::Exact { block } => (block, 0),
        }
    }
}
