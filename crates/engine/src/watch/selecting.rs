//! Queries of the series with some labels, and which series these are.
//!
//! ```text
//! a series comes, goes, or gets other labels ─► Index::note ─► KeySet::note ─► Query::select, before the evaluation:
//!                                                                 the query joins the index of its key, or leaves it
//! ```
//!
//! The series follow from the state, so neither the log nor a snapshot has them. A change of another key does
//! not concern the query, and takes no further lock.

use crate::command::find_series;
use crate::context::Keys;
use crate::keyspace::label_index::labelled;
use crate::value::LabelFilter;
use crate::watch::following::Beyond;
use crate::watch::index::key_set::Changed;
use crate::watch::watched_read::{Query, SharedQuery};
use std::collections::BTreeSet;

impl Query {
    /// Returns the labels by which the query selects the series that it reads, if it does.
    pub(in crate::watch) fn selection(&self) -> Option<&LabelFilter> {
        self.special.as_ref()?.selection.as_ref()
    }

    /// Adds a query that selects series to the indices of all shards, which are locked.
    pub(in crate::watch) fn begin_selecting(query: &SharedQuery, keys: &mut Keys<'_>) {
        keys.shards_mut().for_each(|shard| shard.index_mut().insert_selecting(query));
        query.lock().more.get_or_insert_default().selected = Some(Box::default());
        Self::select(query, keys);
    }

    /// Removes a query that selects series from the indices that it has joined. All shards are locked.
    pub(in crate::watch) fn end_selecting(query: &SharedQuery, keys: &mut Keys<'_>) {
        let selected = query.lock().more.as_mut().and_then(|more| more.selected.take());
        let selected = selected.expect("a query in the index has series that it reads, or none");
        for key in selected.keys() {
            keys.shard_mut(key).forget_query(query.read.db(), key, query);
        }
        keys.shards_mut().for_each(|shard| shard.forget_selecting(query));
    }

    /// Finds out which series a query reads, if it selects them, after the changes that it has noted. All
    /// shards are locked. Returns the keys of which more than points may have changed, and whether it reads
    /// them; `None` if any may have. O(keys that have changed), if it is known which.
    ///
    /// # Panics
    /// A shard is not locked.
    pub(in crate::watch) fn select(query: &SharedQuery, keys: &mut Keys<'_>) -> Option<Vec<Beyond>> {
        let Some(filter) = query.selection() else { return Some(Vec::new()) };
        assert!(keys.holds_all(), "the query of record {} reads every shard", query.id);
        let read_db = query.read.db();
        let db = keys.db();
        keys.select(read_db);
        let mut state = query.lock();
        let selected = state.selected_mut().expect("a query in the index has series that it reads, or none");
        let beyond = match selected.take_changed() {
            Changed::Keys(changed) => {
                let mut beyond = Vec::with_capacity(changed.len());
                for key in changed {
                    let is_read = keys.as_logged(|keys| {
                        let found = keys.peek(&key).and_then(labelled);
                        found.is_some_and(|labelled| filter.matches(labelled.labels()))
                    });
                    if selected.set(&key, is_read) {
                        list(query, keys, &key, is_read);
                    }
                    beyond.push((key, is_read));
                }
                Some(beyond)
            }
            Changed::Everything => {
                let found: BTreeSet<Box<[u8]>> = keys.as_logged(|keys| {
                    find_series(filter, keys).into_iter().map(|(key, _)| key.into()).collect()
                });
                let before = selected.replace(found);
                before.difference(selected.keys()).for_each(|key| list(query, keys, key, false));
                selected.keys().difference(&before).for_each(|key| list(query, keys, key, true));
                None
            }
        };
        drop(state);
        keys.select(db);
        beyond
    }
}

/// Adds a query to the index of a key, or removes it.
fn list(query: &SharedQuery, keys: &mut Keys<'_>, key: &[u8], is_read: bool) {
    let (shard, db) = (keys.shard_mut(key), query.read.db());
    if is_read {
        shard.index_mut().insert(db, key, query);
    } else {
        shard.forget_query(db, key, query);
    }
}
