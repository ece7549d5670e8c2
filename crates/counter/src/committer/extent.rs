//! How much of a counter a demand commits.

use crate::account::Account;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The whole open net.
    Net,
    /// What makes room for a move by this many units.
    RoomFor(i64),
    /// At most this many units of the open net.
    UpTo(i64),
}

impl Extent {
    /// Seals the extent and returns the amount that the store is to add, if any.
    pub(crate) fn seal(self, books: &mut Account) -> Option<i64> {
        match self {
            Self::Net => books.seal(),
            Self::RoomFor(delta) => books.seal_for(delta),
            Self::UpTo(units) => books.seal_up_to(units),
        }
    }
}
