//! What a draw has given.

use crate::catalogue::ITEMS_MAX;

/// The most draws of one call.
pub const DRAWS_MAX: usize = 1 << 20;

/// The most draws of one call, times the items that the pool's rules name, each of which a draw may have to look at: half a second.
const LOOKS_MAX: usize = 1 << 24;

/// How many draws of one call a pool makes whose rules name so many items: [`DRAWS_MAX`] at most, and 1,024 at least.
pub(super) fn draws_max(named: usize) -> usize {
    (LOOKS_MAX / named.max(1)).clamp(1024, DRAWS_MAX)
}

/// What a draw has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Which draw it was, counted from 0: no two draws of a pool have the same number, and none is left out.
    pub number: u64,
    /// The item; `None` if it met what is sold out and the pool's rule is to give nothing.
    pub item: Option<u32>,
}

/// The item of a draw in four bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given(u32);

const _: () = assert!(ITEMS_MAX <= Given::NOTHING as usize);

impl Given {
    /// In place of an item: nothing. No item has this number.
    const NOTHING: u32 = u32::MAX;

    #[inline]
    pub(super) fn new(item: Option<u32>) -> Self {
        // In debug builds only: every draw runs this, and the assertion above covers all items.
        debug_assert_ne!(item, Some(Self::NOTHING), "no item has this number");
        Self(item.unwrap_or(Self::NOTHING))
    }

    #[inline]
    pub(super) fn item(self) -> Option<u32> {
        (self.0 != Self::NOTHING).then_some(self.0)
    }
}
