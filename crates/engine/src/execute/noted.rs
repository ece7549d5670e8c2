//! Subscribers that a command's changes concern, collected until its record is in the log.

use crate::tracking::Changed;
use crate::watch::touched::Touched;
use crate::watch::{Cause, Query, SharedQuery};

/// A subscriber to notify once the record of the change is in the log.
#[derive(Debug)]
pub(crate) enum Noted {
    /// A watched read whose answer may have changed.
    Query(SharedQuery),
    /// Points of a series before its change, for the queries that are noted because of it.
    Points { db: u8, key: Box<[u8]>, before: Box<[(i64, Option<f64>)]> },
    /// A key that clients cache.
    Key(Box<Changed>),
    /// Any cached key may have changed.
    Everything,
}

impl Query {
    /// Adds a query that a command may have changed, unless it was added already.
    pub(crate) fn note(query: &SharedQuery, noted: &mut Vec<Noted>) {
        if query.join_noted(Cause::Any) {
            noted.push(Noted::Query(query.clone()));
        }
    }

    /// As [`Query::note`], because of this change of a key that it names, or whose series it selects.
    pub(crate) fn note_touched(
        query: &SharedQuery,
        key: &[u8],
        touched: &Touched<'_>,
        noted: &mut Vec<Noted>,
    ) {
        let cause = if let Touched::Points(_) = touched { Cause::Points } else { Cause::Any };
        if cause == Cause::Any {
            query.note_selected(key);
        }
        if query.join_noted(cause) {
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
