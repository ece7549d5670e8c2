//! Subscribers that a command's changes concern, collected until its record is in the log.

use crate::tracking::Changed;
use crate::watch::{Query, SharedQuery};

/// A subscriber to notify once the record of the change is in the log.
#[derive(Debug)]
pub(crate) enum Noted {
    /// A watched read whose answer may have changed.
    Query(SharedQuery),
    /// A key that clients cache.
    Key(Box<Changed>),
    /// Any cached key may have changed.
    Everything,
}

impl Query {
    /// Adds a query that a command may have changed, unless it was added already.
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

    /// As [`Query::note`], when any key may have changed.
    pub(crate) fn note_everything(query: &SharedQuery, noted: &mut Vec<Noted>) {
        query.note_all_listed();
        Self::note(query, noted);
    }
}
