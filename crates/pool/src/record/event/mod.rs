//! Events: the steps of a pool, as logged.
//!
//! A draw is encoded as its item number alone: one byte for the first 112 items, two for the first
//! 16,368, three for two million. Draw numbers follow from the draws before. Other events begin
//! with a tag below the item numbers. A draw under a request ID of eight bytes takes ten more
//! bytes.

mod asked;
mod read;
mod seal;
mod tag;
mod write;

pub use asked::Asked;
pub use read::{Events, Malformed};
pub use seal::{sealed, unsealed};
pub use write::{Mark, Recorder};

use crate::catalogue::item::Stock;
use crate::draw::secret::Secret;
use crate::ending::Ending;
use crate::repeats::Repeats;

/// A step of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A draw gave a unit of an item, or nothing.
    Drew(Option<u32>),
    /// One call made several draws without repeats.
    DrewDifferent {
        /// Result of each draw.
        items: Vec<Option<u32>>,
    },
    /// Draws were reserved.
    Reserved {
        /// Result of each draw.
        items: Vec<Option<u32>>,
        /// Whether an item may occur twice.
        repeats: Repeats,
        /// Deadline. Microseconds since 1970-01-01 UTC.
        until_us: u64,
    },
    /// A user, or a call with a request ID, drew or reserved draws; or one call drew more than was
    /// left.
    Asked(Box<Asked<'a>>),
    /// A reservation ended.
    Ended {
        /// Number of the reservation.
        number: u64,
        /// How it ended.
        how: Ending,
    },
    /// An item's weight or stock was set.
    Changed {
        /// Number of the item.
        item: u32,
        /// Its new weight.
        weight: u64,
        /// Its new stock.
        stock: Stock,
    },
    /// An item was added.
    Added {
        /// Its id.
        id: &'a str,
        /// Its weight.
        weight: u64,
        /// Its stock.
        stock: Stock,
    },
    /// An item was removed.
    Removed {
        /// Number of the item.
        item: u32,
    },
    /// Drawn units were returned to stock.
    GivenBack {
        /// Number of the item.
        item: u32,
        /// Number of units.
        count: u64,
    },
    /// Units drawn by a user were returned to stock, and their wins subtracted.
    GivenBackBy {
        /// The user.
        user: &'a [u8],
        /// Time of the call if limits depend on it, otherwise 0. Milliseconds since 1970-01-01
        /// UTC.
        now_ms: u64,
        /// Number of the item.
        item: u32,
        /// Number of units.
        count: u64,
    },
    /// The schedule advanced to this time: units were released or lapsed.
    Advanced {
        /// Milliseconds since 1970-01-01 UTC.
        now_ms: u64,
    },
    /// An epoch began, with the secret that was committed to.
    Epoch {
        /// Seed of a client.
        client_seed: &'a [u8],
        /// Secret of the following epoch.
        after: Secret,
    },
}

impl Event<'_> {
    /// Returns whether the event contains draws.
    pub(crate) fn draws(&self) -> bool {
        matches!(self, Self::Drew(_) | Self::DrewDifferent { .. } | Self::Reserved { .. } | Self::Asked(_))
    }
}
