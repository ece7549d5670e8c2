//! Where a query continues after a time in which writers did not answer it.

use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::watch::filter::Filtering;
use crate::watch::state::{Filtered, State};
use crate::watch::watched_read::Query;
use crate::wire::shared_bytes::SharedBytes;
use tidemark_log::Lsn;

/// Where a query continues, as the record `wake` has it.
pub(super) struct Continuation {
    /// Number of the last emission.
    pub(super) count: u64,
    /// LSN of the last emission.
    pub(super) last: Lsn,
    /// Time as of which the query is answered, if it depends on one.
    pub(super) as_of_us: Option<u64>,
    /// State of the query's operators, if it has any.
    pub(super) filtered: Option<Box<Filtered>>,
}

impl Continuation {
    /// Appends the content of a record `wake` for the query with this id.
    pub(super) fn encode(&self, id: Lsn, into: &mut Vec<u8>) {
        put_varint(into, id.0);
        put_varint(into, self.count);
        put_varint(into, self.last.0);
        if let Some(as_of_us) = self.as_of_us {
            put_varint(into, as_of_us);
        }
        if let Some(filtered) = &self.filtered {
            put_bytes(into, &filtered.shown);
            filtered.filtering.encode(into);
        }
    }

    /// Parses what follows the id in a record `wake`; `None` if it is invalid.
    pub(super) fn decode(query: &Query, bytes: &mut Cursor<'_>) -> Option<Self> {
        let (count, last) = (bytes.varint()?, Lsn(bytes.varint()?));
        let as_of_us = query.read.decode_as_of(bytes).ok()?;
        let filtered = match Filtering::new(&query.read.filter(), query.read.protocol()) {
            None => None,
            Some(filtering) => Some(Filtered::decode(filtering, bytes)?),
        };
        Some(Self { count, last, as_of_us, filtered })
    }
}

impl State {
    /// Returns where the query continues from this state, and what it keeps of its answer.
    pub(super) fn continuation(&self) -> (Continuation, SharedBytes) {
        let filtered = self.more.as_ref().and_then(|more| more.filtered.clone());
        let (count, last) = (self.emissions.count(), self.emissions.last());
        (Continuation { count, last, as_of_us: self.as_of_us(), filtered }, self.kept())
    }
}
