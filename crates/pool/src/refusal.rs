//! Reasons why a pool refuses a call. A refused call changes nothing.

use crate::catalogue::CatalogueError;
use crate::catalogue::item::AMOUNT_MAX;
use crate::ending::Ending;

/// Nothing is left to draw. Error of a single draw; a refused draw changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pool is empty: restock it, or add items")]
pub struct Empty;

impl From<Empty> for Refusal {
    fn from(_: Empty) -> Self {
        Self::Empty
    }
}

/// Reason why a pool refuses a call. A refused call changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing is left to draw.
    #[error("{}", Empty)]
    Empty,
    /// Nothing is left to draw now, but the schedule has more events.
    #[error("nothing is left to draw now: the schedule goes on at {at_ms}, in milliseconds since 1970")]
    EmptyUntil {
        /// Time of the next release or lapse. Milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// The call wants more draws than are possible.
    #[error("{wanted} draws are wanted and only {left} are possible: ask for fewer, or restock")]
    NotSoMany {
        /// Number of draws requested.
        wanted: usize,
        /// Number of draws possible.
        left: usize,
    },
    /// The call wants more different items than are left.
    #[error("{wanted} different items are wanted and only {left} are left: ask for fewer, or allow repeats")]
    NotSoManyItems {
        /// Number of items requested.
        wanted: usize,
        /// Number of items left.
        left: usize,
    },
    /// The number of draws in the call is zero or too large.
    #[error("{count} draws at once are wanted, 1 to {max} are possible: ask several times")]
    Count {
        /// Number of draws requested.
        count: usize,
        /// Maximum per call.
        max: usize,
    },
    /// No item has this id.
    #[error("there is no item {id:?}: look up the ids in the pool's state")]
    UnknownItem {
        /// The unknown id.
        id: Box<str>,
    },
    /// The call would give back more units than are drawn.
    #[error("{count} of {id:?} would be given back, but only {drawn} have been drawn: restock to add others")]
    NotDrawn {
        /// The item.
        id: Box<str>,
        /// Number of units to give back.
        count: u64,
        /// Number of units drawn and not given back.
        drawn: u64,
    },
    /// The stock or the total weight would exceed the maximum.
    #[error("the stock of {id:?}, or all weights together, would be more than {AMOUNT_MAX}: use less")]
    TooMuch {
        /// The item.
        id: Box<str>,
    },
    /// The item leads to a table, so it has no stock of its own.
    #[error("{id:?} leads to a table, and has no stock of its own: change the items of the table")]
    Leads {
        /// The item.
        id: Box<str>,
    },
    /// The item is the fallback for sold-out items, so it cannot be removed.
    #[error("{id:?} is what is given in place of what is sold out: it cannot be removed")]
    IsFallback {
        /// The item.
        id: Box<str>,
    },
    /// The new item is not valid in any catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Too many reservations are open.
    #[error("{max} reservations are open, more are not possible: confirm or cancel some")]
    TooManyReservations {
        /// Maximum number of open reservations.
        max: usize,
    },
    /// The open reservations would hold too many draws.
    #[error("{count} draws more would be set aside than {max} together: confirm or cancel some")]
    TooManySetAside {
        /// Number of draws requested.
        count: usize,
        /// Maximum over all open reservations.
        max: usize,
    },
    /// The reservation has already ended in a different way than requested.
    #[error("reservation {number} is over: it {how}")]
    Ended {
        /// Number of the reservation.
        number: u64,
        /// How it ended.
        how: Ending,
    },
    /// The reservation does not exist, or its ending is no longer kept.
    #[error("there is no reservation {number}, or it has ended long ago: look up the open ones")]
    NoReservation {
        /// Number that was requested.
        number: u64,
    },
    /// The name of the user or the request is empty or too long.
    #[error("the {what}'s name has {bytes} bytes, 1 to {max} are possible: use another")]
    NameLength {
        /// What is named: `user` or `request`.
        what: &'static str,
        /// Length of the name.
        bytes: usize,
        /// Maximum length.
        max: usize,
    },
    /// An earlier request with this id asked for something else.
    #[error(
        "request {id:?} was made before by another user, or for other draws: give each request an id of its own"
    )]
    OtherRequest {
        /// The id.
        id: Box<str>,
    },
    /// The user has reached a limit.
    #[error("the user has reached a limit of {max}{}", again(*.again_ms))]
    Limited {
        /// The limit.
        max: u64,
        /// When the limit's window ends, if ever. Milliseconds since 1970-01-01 UTC.
        again_ms: Option<u64>,
    },
    /// The call wants more draws than a limit ever allows.
    #[error("{count} draws at once are wanted, and a limit allows a user {max}: ask for fewer")]
    MoreThanLimit {
        /// Number of draws requested.
        count: usize,
        /// Number of draws that the limit allows.
        max: u64,
    },
    /// The pool's rules count per user, and the call names none.
    #[error("the pool has rules for each user: say whose draw it is, as in USER name")]
    NoUser,
    /// The rules already count the maximum number of users.
    #[error(
        "the pool counts what {max} users have done, more are not possible: use limits whose windows end, or several pools"
    )]
    TooManyUsers {
        /// Maximum number of users.
        max: usize,
    },
    /// A guarantee would raise the total weight above the maximum.
    #[error(
        "a guarantee makes all weights together more than {AMOUNT_MAX}: lower the weights, or use a smaller step"
    )]
    TooHeavy,
    /// The first draw number is too large, or the pool is already in use.
    #[error("a new pool can begin with the draws 0 to {max}, and not with {first_draw}")]
    FirstDraw {
        /// Number that was requested.
        first_draw: u64,
        /// Largest possible number.
        max: u64,
    },
    /// The client seed is too long.
    #[error("the client's seed has {bytes} bytes, at most {max} are possible: shorten it")]
    SeedTooLong {
        /// Length of the seed.
        bytes: usize,
        /// Maximum length.
        max: usize,
    },
}

fn again(again_ms: Option<u64>) -> String {
    match again_ms {
        Some(again_ms) => format!(": it is possible again from {again_ms} on, in milliseconds since 1970"),
        None => ", which is for ever".to_owned(),
    }
}
