//! Why a pool does not do what it is asked for. Nothing has changed then.

use crate::catalogue::CatalogueError;
use crate::catalogue::item::AMOUNT_MAX;
use crate::ending::Ending;

/// Nothing is left to draw. What a single draw is refused for; nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pool is empty: restock it, or add items")]
pub struct Empty;

impl From<Empty> for Refusal {
    fn from(_: Empty) -> Self {
        Self::Empty
    }
}

/// Why a pool does not do what it is asked for. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing is left to draw.
    #[error("{}", Empty)]
    Empty,
    /// Nothing is left to draw, but the schedule goes on.
    #[error("nothing is left to draw now: the schedule goes on at {at_ms}, in milliseconds since 1970")]
    EmptyUntil {
        /// When units come or lapse next. Milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// Not so many draws are possible as are wanted at once.
    #[error("{wanted} draws are wanted and only {left} are possible: ask for fewer, or restock")]
    NotSoMany {
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        left: usize,
    },
    /// Not so many different items are left as should be drawn.
    #[error("{wanted} different items are wanted and only {left} are left: ask for fewer, or allow repeats")]
    NotSoManyItems {
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        left: usize,
    },
    /// So many are not drawn at once.
    #[error("{count} draws at once are wanted, 1 to {max} are possible: ask several times")]
    Count {
        /// How many were asked for.
        count: usize,
        /// How many are possible.
        max: usize,
    },
    /// No item has this id.
    #[error("there is no item {id:?}: look up the ids in the pool's state")]
    UnknownItem {
        /// What was named.
        id: Box<str>,
    },
    /// More would be given back than has been drawn.
    #[error("{count} of {id:?} would be given back, but only {drawn} have been drawn: restock to add others")]
    NotDrawn {
        /// The item.
        id: Box<str>,
        /// How many should be given back.
        count: u64,
        /// How many have been drawn and not been given back.
        drawn: u64,
    },
    /// The stock or the weights would not fit.
    #[error("the stock of {id:?}, or all weights together, would be more than {AMOUNT_MAX}: use less")]
    TooMuch {
        /// The item.
        id: Box<str>,
    },
    /// An item that leads to a table has no stock.
    #[error("{id:?} leads to a table, and has no stock of its own: change the items of the table")]
    Leads {
        /// The item.
        id: Box<str>,
    },
    /// What is sold out leads to this item.
    #[error("{id:?} is what is given in place of what is sold out: it cannot be removed")]
    IsFallback {
        /// The item.
        id: Box<str>,
    },
    /// A new item that could be in no catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// More draws cannot be set aside.
    #[error("{max} reservations are open, more are not possible: confirm or cancel some")]
    TooManyReservations {
        /// How many are possible.
        max: usize,
    },
    /// So many more draws cannot be set aside.
    #[error("{count} draws more would be set aside than {max} together: confirm or cancel some")]
    TooManySetAside {
        /// How many were asked for.
        count: usize,
        /// How many are possible, in all reservations together.
        max: usize,
    },
    /// The reservation has ended, in another way than was asked for.
    #[error("reservation {number} is over: it {how}")]
    Ended {
        /// Which one.
        number: u64,
        /// How it ended.
        how: Ending,
    },
    /// There is no such reservation, or it has ended long ago.
    #[error("there is no reservation {number}, or it has ended long ago: look up the open ones")]
    NoReservation {
        /// What was asked for.
        number: u64,
    },
    /// A user or a request whose name is empty or too long.
    #[error("the {what}'s name has {bytes} bytes, 1 to {max} are possible: use another")]
    NameLength {
        /// What is named.
        what: &'static str,
        /// How long its name is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// A request of this id was answered before, and has asked for something else.
    #[error(
        "request {id:?} was made before by another user, or for other draws: give each request an id of its own"
    )]
    OtherRequest {
        /// The id.
        id: Box<str>,
    },
    /// A limit of what one user gets has been reached.
    #[error("the user has reached a limit of {max}{}", again(*.again_ms))]
    Limited {
        /// How often is possible.
        max: u64,
        /// From when on it is possible again, if ever. Milliseconds since 1970-01-01 UTC.
        again_ms: Option<u64>,
    },
    /// More draws at once than a limit ever allows.
    #[error("{count} draws at once are wanted, and a limit allows a user {max}: ask for fewer")]
    MoreThanLimit {
        /// How many were asked for.
        count: usize,
        /// How many a user may make.
        max: u64,
    },
    /// The pool's rules count what each user does.
    #[error("the pool has rules for each user: say whose draw it is, as in USER name")]
    NoUser,
    /// Nothing can be known of more users.
    #[error(
        "the pool counts what {max} users have done, more are not possible: use limits whose windows end, or several pools"
    )]
    TooManyUsers {
        /// How many are possible.
        max: usize,
    },
    /// A guarantee has made weights too large.
    #[error(
        "a guarantee makes all weights together more than {AMOUNT_MAX}: lower the weights, or use a smaller step"
    )]
    TooHeavy,
    /// A pool cannot begin with this draw, or has begun already.
    #[error("a new pool can begin with the draws 0 to {max}, and not with {first_draw}")]
    FirstDraw {
        /// What was asked for.
        first_draw: u64,
        /// The largest number that is possible.
        max: u64,
    },
    /// A client's seed that is too long.
    #[error("the client's seed has {bytes} bytes, at most {max} are possible: shorten it")]
    SeedTooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
}

fn again(again_ms: Option<u64>) -> String {
    match again_ms {
        Some(again_ms) => format!(": it is possible again from {again_ms} on, in milliseconds since 1970"),
        None => ", which is for ever".to_owned(),
    }
}
