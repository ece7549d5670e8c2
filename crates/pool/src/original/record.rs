//! A record of the original's log, whichever way it is written.

use std::borrow::Cow;

/// What happened, in the order of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// A unit of an item was drawn.
    Draw { request: u64, item: Cow<'a, str> },
    /// A draw got nothing. It has a number all the same.
    FailedDraw { request: u64 },
    /// An item has this quantity and this weight from now on.
    Update { item: Cow<'a, str>, quantity: i64, weight: i64 },
    /// `snapshot.json` was written anew.
    Snapshot,
    /// An older version went on to another file.
    Rotation,
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Its end is missing, and something follows.
    #[error("the line breaks off")]
    BreaksOff,
    /// Longer than the limit.
    #[error("the line is too long")]
    TooLong,
    /// Zero bytes with records behind them.
    #[error("zero bytes stand before further records")]
    Zeros,
    /// Not text.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// No kind of record begins like that.
    #[error("the line has no known kind of record")]
    UnknownKind,
    /// Fields are missing or too many.
    #[error("the number of fields is wrong")]
    Fields,
    /// A field that is a number is none that the original would write.
    #[error("a number is not one that the original writes")]
    Number,
    /// A draw that says at once that it did and did not get something.
    #[error("the draw contradicts itself")]
    Contradiction,
    /// Not JSON of the expected shape.
    #[error("the line is not a JSON record")]
    Json,
    /// A draw's number does not fit between those of its neighbours, which follow each other.
    #[error("the number of the draw does not fit between its neighbours")]
    OutOfOrder,
    /// An id with a comma that the catalogue does not have: most likely a line end is lost and these are two records.
    #[error("the id has a comma and is not in the catalogue: a line end may be lost")]
    JoinedLines,
}

/// A draw, if what is said of it fits together.
pub(super) fn draw(
    request: u64,
    item: Cow<'_, str>,
    error: u64,
    success: bool,
) -> Result<Record<'_>, Unreadable> {
    const ERROR_MAX: u64 = 2;
    match (success, item.is_empty(), error) {
        (true, false, 0) => Ok(Record::Draw { request, item }),
        (false, true, 0..=ERROR_MAX) => Ok(Record::FailedDraw { request }),
        _ => Err(Unreadable::Contradiction),
    }
}
