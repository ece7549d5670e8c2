//! What a log says that a pool cannot have done.

use crate::ending::Ending;
use crate::refusal::Refusal;

/// A log says what its pool cannot have done. The log is damaged or another pool's, or it was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Divergence {
    /// A draw is said to have given an item that was sold out.
    #[error("draw {draw} is said to have given item {item}, of which nothing was left")]
    NoneLeft {
        /// Which draw.
        draw: u64,
        /// Which item, counted from 0.
        item: u32,
    },
    /// An item is named that there is not.
    #[error("item {item} is named behind draw {draws}, and there is no such item")]
    NoItem {
        /// How many draws came before.
        draws: u64,
        /// Which item, counted from 0.
        item: u32,
    },
    /// A draw is said to have given something else than follows from its number.
    #[error("draw {draw} is said to have given {}, but {} follows from its number", given(*.recorded), given(*.computed))]
    OtherItem {
        /// Which draw.
        draw: u64,
        /// What the log says.
        recorded: Option<u32>,
        /// What follows from the draw's number and the epoch's secret.
        computed: Option<u32>,
    },
    /// A reservation is said to have expired before its time.
    #[error(
        "reservation {number} is said to have expired at {time_us} microseconds since 1970, and it was to last until {until_us}"
    )]
    TooEarly {
        /// Which one.
        number: u64,
        /// Until when it was to last. Microseconds since 1970.
        until_us: u64,
        /// When it is said to have ended. Microseconds since 1970.
        time_us: u64,
    },
    /// A reservation is said to have been confirmed or cancelled when its time was over.
    #[error(
        "it is said that reservation {number} {how} at {time_us} microseconds since 1970, and it was over at {until_us}"
    )]
    TooLate {
        /// Which one.
        number: u64,
        /// How it is said to have ended.
        how: Ending,
        /// Until when it was to last. Microseconds since 1970.
        until_us: u64,
        /// When it is said to have ended. Microseconds since 1970.
        time_us: u64,
    },
    /// Something is said to count for another time than that at which it was done.
    #[error(
        "behind draw {draws} something is said to count at {said_ms} milliseconds since 1970, and it was done at {time_us} microseconds since 1970"
    )]
    OtherTime {
        /// How many draws came before.
        draws: u64,
        /// When it is said to count. Milliseconds since 1970.
        said_ms: u64,
        /// When it was done. Microseconds since 1970.
        time_us: u64,
    },
    /// The schedule is said to have gone on where nothing was due.
    #[error(
        "behind draw {draws} the schedule is said to have gone on to {now_ms} milliseconds since 1970, and nothing was due"
    )]
    NothingDue {
        /// How many draws came before.
        draws: u64,
        /// Until when it is said to have gone on. Milliseconds since 1970.
        now_ms: u64,
    },
    /// The schedule is said to have gone on before its time.
    #[error(
        "the schedule is said to have gone on to {now_ms} milliseconds since 1970 at {time_us} microseconds since 1970, which was before"
    )]
    Hurried {
        /// Until when it is said to have gone on. Milliseconds since 1970.
        now_ms: u64,
        /// When it is said to have done so. Microseconds since 1970.
        time_us: u64,
    },
    /// Something was drawn although the schedule had not gone on as it should have.
    #[error(
        "draw {draw} is said to have been made at {time_us} microseconds since 1970, without what was due at {due_ms} milliseconds"
    )]
    HeldBack {
        /// Which draw.
        draw: u64,
        /// When the schedule should have gone on. Milliseconds since 1970.
        due_ms: u64,
        /// When the draw is said to have been made. Microseconds since 1970.
        time_us: u64,
    },
    /// Something was drawn although a reservation was over, and what it had set aside had not come back.
    #[error(
        "draw {draw} is said to have been made at {time_us} microseconds since 1970, without what came back at {until_us} from reservation {number}"
    )]
    NotEnded {
        /// Which draw.
        draw: u64,
        /// The reservation.
        number: u64,
        /// Until when it was to last. Microseconds since 1970.
        until_us: u64,
        /// When the draw is said to have been made. Microseconds since 1970.
        time_us: u64,
    },
    /// Something is said to have been done that is refused.
    #[error("behind draw {draws}: {refusal}")]
    Refused {
        /// How many draws came before.
        draws: u64,
        /// Why.
        refusal: Refusal,
    },
}

fn given(item: Option<u32>) -> String {
    item.map_or_else(|| "nothing".to_owned(), |item| format!("item {item}"))
}
