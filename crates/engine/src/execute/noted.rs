//! Whom the changes of a command concern, until its record is in the log.

use crate::tracking::Changed;
use crate::watch::{Query, SharedQuery};

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

impl Query {
    /// Notes a query that a command may have changed, unless it has been noted.
    pub(crate) fn note(query: &SharedQuery, noted: &mut Vec<Noted>) {
        if query.join_noted() {
            noted.push(Noted::Query(query.clone()));
        }
    }

    /// As [`Query::note`], because of a key that the read does not name.
    pub(crate) fn note_key(query: &SharedQuery, key: &[u8], noted: &mut Vec<Noted>) {
        query.note_listed(key);
        Self::note(query, noted);
    }

    /// As [`Query::note`], because anything may have changed.
    pub(crate) fn note_everything(query: &SharedQuery, noted: &mut Vec<Noted>) {
        query.note_all_listed();
        Self::note(query, noted);
    }
}
