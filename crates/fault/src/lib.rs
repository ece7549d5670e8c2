//! Faults that tests plant, to show that a broken invariant stops the process instead of becoming
//! an acknowledgement.
//!
//! Product code asks [`is_planted`] at the edges of durability and order. Without the feature
//! `planted` the answer is a constant `false`, and the compiler removes the question. With it, the
//! environment variable [`VARIABLE`] names the one fault that the process has.
//!
//! ```
//! use tidemark_fault::{Fault, is_planted};
//!
//! let end = 10 - usize::from(is_planted(Fault::Cut));
//! assert_eq!(end, 10);
//! ```

use std::fmt;

/// The environment variable that names the planted fault, for instance `cut`.
pub const VARIABLE: &str = "TIDEMARK_PLANTED_FAULT";

/// A fault that can be planted, named after the invariant that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The commit thread writes one byte less in front of a segment's border.
    Cut,
    /// An append leaves its own record out of what is sealed.
    Seal,
    /// The commit thread forgets one byte of what it wrote when it computes the next offset.
    Offset,
    /// Two records get the same LSN.
    Lsn,
    /// A start behind an unclean stop leaves no gap between the records of the two processes.
    Gap,
    /// A held answer leaves before the record that it waits for is durable.
    HeldAnswer,
    /// A query leaves out the number of an emission.
    EmissionNumber,
    /// A command changes an entry that a running snapshot has not written out yet.
    SnapshotCut,
    /// `apply` leaves out a record.
    AppliedLsn,
    /// A caller that waits for durability is released without it.
    Waiter,
    /// Replay ends before the last record that recovery found.
    RecoveredEnd,
    /// A pool's frame does not name the hash of the frame before it.
    FrameChain,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 12] = [
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
    ];

    /// The name by which [`VARIABLE`] plants it.
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
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether this process has the fault: always `false` without the feature `planted`.
///
/// # Panics
/// With the feature, if the environment names a fault that does not exist.
#[inline]
#[cfg(not(feature = "planted"))]
pub const fn is_planted(_fault: Fault) -> bool {
    false
}

/// Whether this process has the fault that [`VARIABLE`] names.
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
