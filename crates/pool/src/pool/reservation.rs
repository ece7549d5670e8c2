//! A reservation: draws that are set aside until somebody says what becomes of them, or their time is over.

use super::draw::Draw;

/// The most reservations that may be open at a time.
pub const RESERVATIONS_MAX: usize = 1 << 20;

/// The most draws that may be set aside at a time, in all open reservations together.
pub const RESERVED_DRAWS_MAX: usize = 1 << 22;

/// Of so many reservations that are over a pool knows how they ended, so that who asks twice is told the same.
pub const ENDED_KEPT: usize = 1 << 16;

/// Draws that are set aside: they have numbers and are out of stock, but nobody has got them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// What was drawn. There is at least one draw, and the first one's number is the reservation's.
    pub draws: Box<[Draw]>,
    /// When it is over, if nobody has confirmed it before. Microseconds since 1970-01-01 UTC.
    pub until_us: u64,
    /// Whose draws they are, if that was said.
    pub user: Option<Box<[u8]>>,
    /// When they were drawn, where limits depend on it, and otherwise 0. Milliseconds since 1970-01-01 UTC.
    pub drawn_ms: u64,
}

impl Reservation {
    /// What it is called: the number of its first draw.
    pub fn number(&self) -> u64 {
        self.draws[0].number
    }

    /// The items that it holds a unit of.
    pub(super) fn items(&self) -> impl Iterator<Item = u32> {
        self.draws.iter().filter_map(|draw| draw.item)
    }
}
