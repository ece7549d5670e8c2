//! Whom the changes of a command concern, until its record is in the log.

use crate::query::SharedQuery;
use crate::tracking::Changed;

/// Somebody who is to be told of a change, noted until its record is in the log.
#[derive(Debug)]
pub(crate) enum Noted {
    /// A watched read, whose answer may have changed.
    Query(SharedQuery),
    /// A key that clients keep.
    Key(Box<Changed>),
    /// Any key that clients keep may have changed.
    Everything,
}
