//! What a draw has given.

/// The most draws of one call.
pub const DRAWS_MAX: usize = 1 << 20;

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

impl Given {
    /// In place of an item: nothing. No item has this number.
    const NOTHING: u32 = u32::MAX;

    #[inline]
    pub(super) fn new(item: Option<u32>) -> Self {
        debug_assert_ne!(item, Some(Self::NOTHING), "no item has this number");
        Self(item.unwrap_or(Self::NOTHING))
    }

    #[inline]
    pub(super) fn item(self) -> Option<u32> {
        (self.0 != Self::NOTHING).then_some(self.0)
    }
}
