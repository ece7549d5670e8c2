//! Events: what a pool has done, as a log keeps it.
//!
//! A draw is the number of its item and no more: one byte for the first 112 items, two for the first 16,368, three for two million. The
//! numbers of draws follow from those before. Whatever else happens has a number below those of items in front. A draw of a request whose id
//! has eight bytes takes ten more.

mod asked;
mod read;
mod seal;
mod write;

pub use asked::Asked;
pub use read::{Events, Malformed};
pub use seal::{sealed, unsealed};
pub use write::{Mark, Recorder};

use crate::catalogue::item::Stock;
use crate::draw::secret::Secret;
use crate::ending::Ending;
use crate::repeats::Repeats;

/// In front of an event: what it is. A number of these or above is a draw, of the item that follows from the difference.
mod tag {
    pub(super) const NOTHING: u64 = 0;
    pub(super) const RESERVED: u64 = 1;
    pub(super) const CONFIRMED: u64 = 2;
    pub(super) const CANCELLED: u64 = 3;
    pub(super) const EXPIRED: u64 = 4;
    pub(super) const CHANGED: u64 = 5;
    pub(super) const ADDED: u64 = 6;
    pub(super) const REMOVED: u64 = 7;
    pub(super) const GIVEN_BACK: u64 = 8;
    pub(super) const EPOCH: u64 = 9;
    pub(super) const DREW_DIFFERENT: u64 = 10;
    pub(super) const RESERVED_DIFFERENT: u64 = 11;
    pub(super) const ASKED: u64 = 12;
    pub(super) const GIVEN_BACK_BY: u64 = 13;
    pub(super) const ADVANCED: u64 = 14;
    pub(super) const ITEMS: u64 = 16;
}

/// What a pool has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A draw has given one of an item, or nothing.
    Drew(Option<u32>),
    /// One call has drawn several, without repeats.
    DrewDifferent {
        /// What each has given.
        items: Vec<Option<u32>>,
    },
    /// Draws were set aside.
    Reserved {
        /// What each has given.
        items: Vec<Option<u32>>,
        /// Whether an item may be among them twice.
        repeats: Repeats,
        /// Until when. Microseconds since 1970-01-01 UTC.
        until_us: u64,
    },
    /// Somebody who has said who they are, or what they call their request, has drawn, or has set draws aside; or one call has drawn
    /// more than was left.
    Asked(Box<Asked<'a>>),
    /// A reservation has ended.
    Ended {
        /// Which one.
        number: u64,
        /// How.
        how: Ending,
    },
    /// An item has another weight or another stock.
    Changed {
        /// Which one.
        item: u32,
        /// Its weight from now on.
        weight: u64,
        /// What is left from now on.
        stock: Stock,
    },
    /// There is an item more.
    Added {
        /// Its id.
        id: &'a str,
        /// Its weight.
        weight: u64,
        /// How many there are.
        stock: Stock,
    },
    /// An item is gone.
    Removed {
        /// Which one.
        item: u32,
    },
    /// Units that were drawn are in stock again.
    GivenBack {
        /// Of which item.
        item: u32,
        /// How many.
        count: u64,
    },
    /// Units that somebody had drawn are in stock again, and their wins are taken back.
    GivenBackBy {
        /// Who.
        user: &'a [u8],
        /// When, where that is of any account, and otherwise 0. Milliseconds since 1970-01-01 UTC.
        now_ms: u64,
        /// Of which item.
        item: u32,
        /// How many.
        count: u64,
    },
    /// All has been done that the schedule says until this moment: units have come to the stock, or have lapsed.
    Advanced {
        /// Milliseconds since 1970-01-01 UTC.
        now_ms: u64,
    },
    /// An epoch has begun, with the secret that was committed to.
    Epoch {
        /// What a client has added.
        client_seed: &'a [u8],
        /// The secret of the epoch behind it.
        after: Secret,
    },
}

impl Event<'_> {
    /// Whether something was drawn.
    pub(crate) fn draws(&self) -> bool {
        matches!(self, Self::Drew(_) | Self::DrewDifferent { .. } | Self::Reserved { .. } | Self::Asked(_))
    }
}
