//! Records of the original's log, in either format.

use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// A unit of an item was drawn.
    Draw { request: u64, item: Cow<'a, str> },
    /// A draw gave nothing. It has a number nevertheless.
    FailedDraw { request: u64 },
    /// The quantity and the weight of an item were set.
    Update { item: Cow<'a, str>, quantity: i64, weight: i64 },
    /// `snapshot.json` was overwritten.
    Snapshot,
    /// An older version continued in another file.
    Rotation,
}

/// Reason why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The end of the line is missing, and more lines follow.
    #[error("the line breaks off")]
    BreaksOff,
    /// The line is above the maximum length.
    #[error("the line is too long")]
    TooLong,
    /// Zero bytes before further records.
    #[error("zero bytes stand before further records")]
    Zeros,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The kind of record is unknown.
    #[error("the line has no known kind of record")]
    UnknownKind,
    /// There are too few or too many fields.
    #[error("the number of fields is wrong")]
    Fields,
    /// A number is not in the form that the original writes.
    #[error("a number is not one that the original writes")]
    Number,
    /// A draw claims both that it gave an item and that it did not.
    #[error("the draw contradicts itself")]
    Contradiction,
    /// The line is not JSON of the expected shape.
    #[error("the line is not a JSON record")]
    Json,
    /// The number of a draw does not fit between its neighbours, which are consecutive.
    #[error("the number of the draw does not fit between its neighbours")]
    OutOfOrder,
    /// An id with a comma is not in the catalogue: probably a line end was lost and these are two
    /// records.
    #[error("the id has a comma and is not in the catalogue: a line end may be lost")]
    JoinedLines,
}

/// Creates the record of a draw if its fields are consistent.
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
