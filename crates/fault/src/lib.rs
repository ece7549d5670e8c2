//! Planted faults: tests use them to show that a broken invariant stops the process instead of
//! leading to a false acknowledgement.
//!
//! Product code calls [`is_planted`] where durability and order are decided. Without the feature
//! `planted` the result is a constant `false`, and the compiler removes the call. With it, the
//! environment variable [`VARIABLE`] names the one fault of the process.
//!
//! ```
//! use tidemark_fault::{Fault, is_planted};
//!
//! let end = 10 - usize::from(is_planted(Fault::Cut));
//! assert_eq!(end, 10);
//! ```

use std::fmt;

/// Environment variable with the name of the planted fault, for example `cut`.
pub const VARIABLE: &str = "TIDEMARK_PLANTED_FAULT";

/// A fault that can be planted, named after the invariant that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The commit thread writes one byte less before a segment boundary.
    Cut,
    /// An append leaves its own record out of what is sealed.
    Seal,
    /// The commit thread computes the next offset one byte too low.
    Offset,
    /// Two records get the same LSN.
    Lsn,
    /// A start after an unclean stop leaves no LSN gap between the records of the two processes.
    Gap,
    /// A held reply is sent before the record that it waits for is durable.
    HeldAnswer,
    /// A query skips the number of an emission.
    EmissionNumber,
    /// A command changes an entry that a running snapshot has not written yet.
    SnapshotCut,
    /// `apply` skips a record.
    AppliedLsn,
    /// A caller that waits for durability is released too early.
    Waiter,
    /// Replay ends before the last record that recovery found.
    RecoveredEnd,
    /// A pool's frame lacks the hash of the frame before it.
    FrameChain,
    /// A follower applies a transaction without holding all of its locks throughout.
    HalfTransaction,
    /// A follower's snapshot is cut at the end of the log, ahead of what is applied.
    SnapshotAhead,
    /// A snapshot lacks the sessions of `ONCE`.
    SessionsNotSaved,
    /// A leader shows a key as expired without a record: the next leader's clock may bring it back.
    ExpiredUnlogged,
    /// A leader answers without the promise of most members that no other leads.
    LeaselessAnswer,
    /// A leader answers a change before most members have it.
    EarlyAnswer,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 18] = [
        Self::Cut,
        Self::Seal,
        Self::Offset,
        Self::Lsn,
        Self::Gap,
        Self::HeldAnswer,
        Self::EmissionNumber,
        Self::SnapshotCut,
        Self::AppliedLsn,
        Self::Waiter,
        Self::RecoveredEnd,
        Self::FrameChain,
        Self::HalfTransaction,
        Self::SnapshotAhead,
        Self::SessionsNotSaved,
        Self::ExpiredUnlogged,
        Self::LeaselessAnswer,
        Self::EarlyAnswer,
    ];

    /// Returns the name that plants the fault with [`VARIABLE`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Seal => "seal",
            Self::Offset => "offset",
            Self::Lsn => "lsn",
            Self::Gap => "gap",
            Self::HeldAnswer => "held-answer",
            Self::EmissionNumber => "emission-number",
            Self::SnapshotCut => "snapshot-cut",
            Self::AppliedLsn => "applied-lsn",
            Self::Waiter => "waiter",
            Self::RecoveredEnd => "recovered-end",
            Self::FrameChain => "frame-chain",
            Self::HalfTransaction => "half-transaction",
            Self::SnapshotAhead => "snapshot-ahead",
            Self::SessionsNotSaved => "sessions-not-saved",
            Self::ExpiredUnlogged => "expired-unlogged",
            Self::LeaselessAnswer => "leaseless-answer",
            Self::EarlyAnswer => "early-answer",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns whether this process has the fault: always `false` without the feature `planted`.
///
/// # Panics
/// With the feature, if the environment names a fault that does not exist.
#[inline]
#[cfg(not(feature = "planted"))]
pub const fn is_planted(_fault: Fault) -> bool {
    false
}

/// Returns whether this process has the fault that [`VARIABLE`] names.
///
/// # Panics
/// If the variable names a fault that does not exist.
#[cfg(feature = "planted")]
pub fn is_planted(fault: Fault) -> bool {
    static PLANTED: std::sync::OnceLock<Option<Fault>> = std::sync::OnceLock::new();
    let planted =
        PLANTED.get_or_init(|| {
            let name = std::env::var(VARIABLE).ok()?;
            let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
            Some(found.unwrap_or_else(|| {
                panic!("{VARIABLE}={name} names no fault; the faults are {:?}", Fault::ALL)
            }))
        });
    *planted == Some(fault)
}
