//! What a service is asked for, and what it answers.

use super::error::CallError;
use super::state::State;
use crate::by::By;
use crate::catalogue::item::{Item, Stock};
use crate::draw::secret::Secret;
use crate::pool::{Draw, Reservation, Revealed};
use crate::repeats::Repeats;

/// The most changes of one [`Request::Change`].
pub const CHANGES_MAX: usize = 1 << 16;

/// The most items of one [`Request::State`].
pub const STATE_ITEMS_MAX: usize = 1 << 16;

/// Who asks, and as which request: [`By`](crate::By) for whoever hands it to another thread, whose clock says when.
///
/// ```
/// use tidemark_pool::service::Asker;
///
/// let asker = Asker { user: Some((*b"mira").into()), ..Asker::request(b"order 17") };
/// assert_eq!(asker.request.as_deref(), Some(&b"order 17"[..]));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asker {
    /// Whose draws they are.
    pub user: Option<Box<[u8]>>,
    /// What the asker calls this request: asked again, it is answered as it was, and nothing is drawn.
    pub request: Option<Box<[u8]>>,
}

impl Asker {
    /// Somebody who calls the request like this.
    pub fn request(id: &[u8]) -> Self {
        Self { user: None, request: Some(id.into()) }
    }

    /// A user.
    pub fn user(id: &[u8]) -> Self {
        Self { user: Some(id.into()), request: None }
    }

    /// The same, at a time. Milliseconds since 1970.
    pub(super) fn by(&self, now_ms: u64) -> By<'_> {
        By { user: self.user.as_deref(), request: self.request.as_deref(), now_ms }
    }
}

/// What a service is asked for. Each is done completely or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// One draw. Answered by [`Answer::Draw`].
    Draw,
    /// Several draws, as [`Pool::draw_many`](crate::Pool::draw_many) makes them. Answered by [`Answer::Draws`].
    DrawMany {
        /// How many.
        count: usize,
        /// Whether an item may be among them twice.
        repeats: Repeats,
    },
    /// Several draws for somebody, as [`Pool::draw_by`](crate::Pool::draw_by) makes them. Answered by [`Answer::Draws`].
    DrawBy {
        /// Who asks.
        asker: Asker,
        /// How many.
        count: usize,
        /// Whether an item may be among them twice.
        repeats: Repeats,
    },
    /// Draws that are set aside: [`Pool::reserve`](crate::Pool::reserve). Answered by [`Answer::Reserved`].
    Reserve {
        /// How many.
        count: usize,
        /// Whether an item may be among them twice.
        repeats: Repeats,
        /// Until when. Microseconds since 1970-01-01 UTC.
        until_us: u64,
    },
    /// Draws that are set aside for somebody: [`Pool::reserve_by`](crate::Pool::reserve_by). Answered by [`Answer::Reserved`].
    ReserveBy {
        /// Who asks.
        asker: Asker,
        /// How many.
        count: usize,
        /// Whether an item may be among them twice.
        repeats: Repeats,
        /// Until when. Microseconds since 1970-01-01 UTC.
        until_us: u64,
    },
    /// The draws of a reservation count. Answered by [`Answer::Done`].
    Confirm {
        /// The number of the reservation.
        number: u64,
    },
    /// What was set aside is in stock again. Answered by [`Answer::Done`].
    Cancel {
        /// The number of the reservation.
        number: u64,
    },
    /// Units that were drawn are in stock again: [`Pool::give_back`](crate::Pool::give_back). Answered by [`Answer::Done`].
    GiveBack {
        /// The item.
        id: Box<str>,
        /// How many.
        count: u64,
    },
    /// Units that a user had drawn are in stock again, and are wins less: [`Pool::give_back_by`](crate::Pool::give_back_by). Answered by [`Answer::Done`].
    GiveBackBy {
        /// Who had drawn them.
        user: Box<[u8]>,
        /// The item.
        id: Box<str>,
        /// How many.
        count: u64,
    },
    /// Changes by hand, at most [`CHANGES_MAX`], all of them or none. Answered by [`Answer::Done`].
    Change(Vec<Change>),
    /// The epoch ends, and the one begins that was committed to. Answered by [`Answer::Revealed`].
    BeginEpoch {
        /// What a client adds.
        client_seed: Box<[u8]>,
        /// The secret of the epoch behind the one that begins: 32 random bytes.
        after: Secret,
    },
    /// How the pool stands, with up to [`STATE_ITEMS_MAX`] of its items. Answered by [`Answer::State`], also where the log has failed.
    State {
        /// The number of the first item that is wanted.
        from: u32,
        /// How many items are wanted.
        count: usize,
    },
}

/// A change by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// An item has another weight.
    Weight {
        /// The item.
        id: Box<str>,
        /// Its weight from now on.
        weight: u64,
    },
    /// An item has another stock, whatever was left.
    Stock {
        /// The item.
        id: Box<str>,
        /// What is left from now on.
        stock: Stock,
    },
    /// Units are added to what is left, or taken out.
    Restock {
        /// The item.
        id: Box<str>,
        /// How many more; fewer if negative.
        units: i64,
    },
    /// There is an item more.
    Add(Item),
    /// An item is gone.
    Remove {
        /// The item.
        id: Box<str>,
    },
}

/// What a service answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// What a draw has given.
    Draw(Draw),
    /// What several have given.
    Draws(Vec<Draw>),
    /// What is set aside.
    Reserved(Reservation),
    /// It was done.
    Done,
    /// The epoch that is over, with its secret.
    Revealed(Box<Revealed>),
    /// How the pool stands.
    State(Box<State>),
}

/// What a call has come to.
pub type Outcome = Result<Answer, CallError>;

/// What the answer to [`Request::Draw`] says.
pub(super) fn draw_of(outcome: Outcome) -> Result<Draw, CallError> {
    match outcome? {
        Answer::Draw(draw) => Ok(draw),
        other => unreachable!("a draw is answered by a draw, not by {other:?}"),
    }
}
