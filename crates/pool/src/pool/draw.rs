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
