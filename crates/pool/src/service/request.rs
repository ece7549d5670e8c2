//! Requests to a service, and its answers.

use super::error::CallError;
use super::state::State;
use crate::by::By;
use crate::catalogue::item::{Item, Stock};
use crate::draw::secret::Secret;
use crate::pool::{Draw, Reservation, Revealed};
use crate::repeats::Repeats;

/// Maximum number of changes in one [`Request::Change`].
pub const CHANGES_MAX: usize = 1 << 16;

/// Maximum number of items in one [`Request::State`].
pub const STATE_ITEMS_MAX: usize = 1 << 16;

/// User and request ID of a call: an owned [`By`](crate::By), without the time, which the service's
/// clock supplies.
///
/// ```
/// use tidemark_pool::service::Asker;
///
/// let asker = Asker { user: Some((*b"mira").into()), ..Asker::request(b"order 17") };
/// assert_eq!(asker.request.as_deref(), Some(&b"order 17"[..]));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asker {
    /// User that the draws belong to.
    pub user: Option<Box<[u8]>>,
    /// Request ID (an idempotency key). A repeated request gets its first answer again, and nothing
    /// is drawn.
    pub request: Option<Box<[u8]>>,
}

impl Asker {
    /// Returns a caller with this request ID and no user.
    pub fn request(id: &[u8]) -> Self {
        Self { user: None, request: Some(id.into()) }
    }

    /// Returns a user without a request ID.
    pub fn user(id: &[u8]) -> Self {
        Self { user: Some(id.into()), request: None }
    }

    /// Adds the time, in milliseconds since 1970.
    pub(super) fn by(&self, now_ms: u64) -> By<'_> {
        By { user: self.user.as_deref(), request: self.request.as_deref(), now_ms }
    }
}

/// A request to a service. It is executed completely or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Draws once. Answered by [`Answer::Draw`].
    Draw,
    /// Draws several times: [`Pool::draw_many`](crate::Pool::draw_many). Answered by
    /// [`Answer::Draws`].
    DrawMany {
        /// Number of draws.
        count: usize,
        /// Whether an item may occur twice.
        repeats: Repeats,
    },
    /// Draws for a caller: [`Pool::draw_by`](crate::Pool::draw_by). Answered by [`Answer::Draws`].
    DrawBy {
        /// The caller.
        asker: Asker,
        /// Number of draws.
        count: usize,
        /// Whether an item may occur twice.
        repeats: Repeats,
    },
    /// Reserves draws: [`Pool::reserve`](crate::Pool::reserve). Answered by [`Answer::Reserved`].
    Reserve {
        /// Number of draws.
        count: usize,
        /// Whether an item may occur twice.
        repeats: Repeats,
        /// Deadline. Microseconds since 1970-01-01 UTC.
        until_us: u64,
    },
    /// Reserves draws for a caller: [`Pool::reserve_by`](crate::Pool::reserve_by). Answered by
    /// [`Answer::Reserved`].
    ReserveBy {
        /// The caller.
        asker: Asker,
        /// Number of draws.
        count: usize,
        /// Whether an item may occur twice.
        repeats: Repeats,
        /// Deadline. Microseconds since 1970-01-01 UTC.
        until_us: u64,
    },
    /// Confirms a reservation: its draws count. Answered by [`Answer::Done`].
    Confirm {
        /// Number of the reservation.
        number: u64,
    },
    /// Cancels a reservation: its units return to stock. Answered by [`Answer::Done`].
    Cancel {
        /// Number of the reservation.
        number: u64,
    },
    /// Returns drawn units to stock: [`Pool::give_back`](crate::Pool::give_back). Answered by
    /// [`Answer::Done`].
    GiveBack {
        /// The item.
        id: Box<str>,
        /// Number of units.
        count: u64,
    },
    /// Returns units drawn by a user to stock, and subtracts their wins:
    /// [`Pool::give_back_by`](crate::Pool::give_back_by). Answered by [`Answer::Done`].
    GiveBackBy {
        /// User that drew them.
        user: Box<[u8]>,
        /// The item.
        id: Box<str>,
        /// Number of units.
        count: u64,
    },
    /// Makes up to [`CHANGES_MAX`] changes, all or none. Answered by [`Answer::Done`].
    Change(Vec<Change>),
    /// Ends the current epoch and begins the next. Answered by [`Answer::Revealed`].
    BeginEpoch {
        /// Seed of a client.
        client_seed: Box<[u8]>,
        /// Secret of the epoch after the one that begins: 32 random bytes.
        after: Secret,
    },
    /// Reads the state of the pool, with up to [`STATE_ITEMS_MAX`] of its items. Answered by
    /// [`Answer::State`], even if the log has failed.
    State {
        /// Number of the first item.
        from: u32,
        /// Number of items.
        count: usize,
    },
}

/// A change by an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Sets an item's weight.
    Weight {
        /// The item.
        id: Box<str>,
        /// Its new weight.
        weight: u64,
    },
    /// Sets an item's stock, whatever was left.
    Stock {
        /// The item.
        id: Box<str>,
        /// Its new stock.
        stock: Stock,
    },
    /// Adds units to an item's stock, or removes some.
    Restock {
        /// The item.
        id: Box<str>,
        /// Number of units to add; negative to remove.
        units: i64,
    },
    /// Adds an item.
    Add(Item),
    /// Removes an item.
    Remove {
        /// The item.
        id: Box<str>,
    },
}

/// Answer of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// A draw.
    Draw(Draw),
    /// Several draws.
    Draws(Vec<Draw>),
    /// A reservation.
    Reserved(Reservation),
    /// The request was executed.
    Done,
    /// The epoch that ended, with its secret.
    Revealed(Box<Revealed>),
    /// The state of the pool.
    State(Box<State>),
}

/// Result of a call.
pub type Outcome = Result<Answer, CallError>;

/// Returns the draw in the answer to [`Request::Draw`].
pub(super) fn draw_of(outcome: Outcome) -> Result<Draw, CallError> {
    match outcome? {
        Answer::Draw(draw) => Ok(draw),
        other => unreachable!("a draw is answered by a draw, not by {other:?}"),
    }
}
