//! Contradictions between a log and its pool.

use crate::ending::Ending;
use crate::refusal::Refusal;

/// A log contradicts its pool: it is damaged, tampered with, or belongs to another pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Divergence {
    /// A recorded draw gave an item that was sold out.
    #[error("draw {draw} is said to have given item {item}, of which nothing was left")]
    NoneLeft {
        /// Number of the draw.
        draw: u64,
        /// Number of the item.
        item: u32,
    },
    /// The log names an item that does not exist.
    #[error("item {item} is named behind draw {draws}, and there is no such item")]
    NoItem {
        /// Number of the next draw.
        draws: u64,
        /// Number of the item.
        item: u32,
    },
    /// The recorded result of a draw differs from the computed one.
    #[error("draw {draw} is said to have given {}, but {} follows from its number", given(*.recorded), given(*.computed))]
    OtherItem {
        /// Number of the draw.
        draw: u64,
        /// Recorded result.
        recorded: Option<u32>,
        /// Result computed from the draw's number and the epoch's secret.
        computed: Option<u32>,
    },
    /// A reservation expired before its deadline.
    #[error(
        "reservation {number} is said to have expired at {time_us} microseconds since 1970, and it was to last until {until_us}"
    )]
    TooEarly {
        /// Number of the reservation.
        number: u64,
        /// Its deadline. Microseconds since 1970.
        until_us: u64,
        /// Recorded time of its end. Microseconds since 1970.
        time_us: u64,
    },
    /// A reservation was confirmed or cancelled after its deadline.
    #[error(
        "it is said that reservation {number} {how} at {time_us} microseconds since 1970, and it was over at {until_us}"
    )]
    TooLate {
        /// Number of the reservation.
        number: u64,
        /// How it ended.
        how: Ending,
        /// Its deadline. Microseconds since 1970.
        until_us: u64,
        /// Recorded time of its end. Microseconds since 1970.
        time_us: u64,
    },
    /// An event counts for another time than the one at which it was logged.
    #[error(
        "behind draw {draws} something is said to count at {said_ms} milliseconds since 1970, and it was done at {time_us} microseconds since 1970"
    )]
    OtherTime {
        /// Number of the next draw.
        draws: u64,
        /// Time for which it counts. Milliseconds since 1970.
        said_ms: u64,
        /// Time at which it was logged. Microseconds since 1970.
        time_us: u64,
    },
    /// The schedule advanced although nothing was due.
    #[error(
        "behind draw {draws} the schedule is said to have gone on to {now_ms} milliseconds since 1970, and nothing was due"
    )]
    NothingDue {
        /// Number of the next draw.
        draws: u64,
        /// Time to which it advanced. Milliseconds since 1970.
        now_ms: u64,
    },
    /// The schedule advanced to a time in the future.
    #[error(
        "the schedule is said to have gone on to {now_ms} milliseconds since 1970 at {time_us} microseconds since 1970, which was before"
    )]
    Hurried {
        /// Time to which it advanced. Milliseconds since 1970.
        now_ms: u64,
        /// Time at which it was logged. Microseconds since 1970.
        time_us: u64,
    },
    /// A draw was made although a scheduled event was due.
    #[error(
        "draw {draw} is said to have been made at {time_us} microseconds since 1970, without what was due at {due_ms} milliseconds"
    )]
    HeldBack {
        /// Number of the draw.
        draw: u64,
        /// Time at which the schedule should have advanced. Milliseconds since 1970.
        due_ms: u64,
        /// Recorded time of the draw. Microseconds since 1970.
        time_us: u64,
    },
    /// A draw was made although a reservation was overdue and its units had not returned to stock.
    #[error(
        "draw {draw} is said to have been made at {time_us} microseconds since 1970, without what came back at {until_us} from reservation {number}"
    )]
    NotEnded {
        /// Number of the draw.
        draw: u64,
        /// Number of the reservation.
        number: u64,
        /// Its deadline. Microseconds since 1970.
        until_us: u64,
        /// Recorded time of the draw. Microseconds since 1970.
        time_us: u64,
    },
    /// The pool refuses the recorded event.
    #[error("behind draw {draws}: {refusal}")]
    Refused {
        /// Number of the next draw.
        draws: u64,
        /// Reason of the refusal.
        refusal: Refusal,
    },
}

fn given(item: Option<u32>) -> String {
    item.map_or_else(|| "nothing".to_owned(), |item| format!("item {item}"))
}
