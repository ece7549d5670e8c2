//! How much of a counter somebody wants committed.

use crate::account::Account;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All that is open.
    Net,
    /// What makes a move by so many units possible.
    RoomFor(i64),
    /// No more than so many units of what is open.
    UpTo(i64),
}

impl Extent {
    /// Seals it: what the store is to add, if there is something.
    pub(crate) fn seal(self, books: &mut Account) -> Option<i64> {
        match self {
            Self::Net => books.seal(),
            Self::RoomFor(delta) => books.seal_for(delta),
            Self::UpTo(units) => books.seal_up_to(units),
        }
    }
}
