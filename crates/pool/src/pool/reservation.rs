//! A reservation: draws held until they are confirmed or cancelled, or their deadline passes.

use super::draw::Draw;

/// Maximum number of open reservations.
pub const RESERVATIONS_MAX: usize = 1 << 20;

/// Maximum number of draws in all open reservations together.
pub const RESERVED_DRAWS_MAX: usize = 1 << 22;

/// Number of ended reservations whose ending a pool keeps, to answer repeated calls alike.
pub const ENDED_KEPT: usize = 1 << 16;

/// Held draws: they have numbers and are out of stock, but are not yet delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The draws, at least one. The number of the first is the reservation's number.
    pub draws: Box<[Draw]>,
    /// When it expires unless it is confirmed or cancelled. Microseconds since 1970-01-01 UTC.
    pub until_us: u64,
    /// User that the draws belong to, if named.
    pub user: Option<Box<[u8]>>,
    /// When it was drawn if limits depend on the time, otherwise 0. Milliseconds since 1970-01-01
    /// UTC.
    pub drawn_ms: u64,
}

impl Reservation {
    /// Returns the number of the reservation: the number of its first draw.
    pub fn number(&self) -> u64 {
        self.draws[0].number
    }

    /// Returns the items it holds, once for each unit.
    pub(super) fn items(&self) -> impl Iterator<Item = u32> {
        self.draws.iter().filter_map(|draw| draw.item)
    }
}
