//! Draws.

use crate::catalogue::ITEMS_MAX;

/// Maximum number of draws in one call.
pub const DRAWS_MAX: usize = 1 << 20;

/// Maximum of draws in one call times items named by the rules: about half a second of work, as
/// each draw may check every named item.
const LOOKS_MAX: usize = 1 << 24;

/// Returns the maximum number of draws in one call if the rules name `named` items: 1,024 to
/// [`DRAWS_MAX`].
pub(super) fn draws_max(named: usize) -> usize {
    (LOOKS_MAX / named.max(1)).clamp(1024, DRAWS_MAX)
}

/// Result of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Number of the draw. Numbers are unique in a pool and have no gaps.
    pub number: u64,
    /// The item. `None` if the draw gave nothing, for example because it hit a sold-out item and
    /// the pool's rule is to give nothing.
    pub item: Option<u32>,
}

/// Item of a draw, or nothing, in four bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given(u32);

const _: () = assert!(ITEMS_MAX <= Given::NOTHING as usize);

impl Given {
    /// Stands for nothing; no item has this number.
    const NOTHING: u32 = u32::MAX;

    #[inline]
    pub(super) fn new(item: Option<u32>) -> Self {
        // Only in debug builds: every draw runs this, and the assertion above covers all items.
        debug_assert_ne!(item, Some(Self::NOTHING), "no item has this number");
        Self(item.unwrap_or(Self::NOTHING))
    }

    #[inline]
    pub(super) fn item(self) -> Option<u32> {
        (self.0 != Self::NOTHING).then_some(self.0)
    }
}
