//! The queries that read the series with some labels, found by the labels of a series that comes.
//!
//! ```text
//! room=hall unit=c ─► by_label: queries that need room=hall, or unit=c    ┐
//!                     others: queries that need no label with a value     ┴─► those whose filter matches
//! ```
//!
//! A query is also listed under the key of each series that it reads, as if it named it: changes of points
//! find it there. This index finds the queries that a series concerns which they do not read yet.

use crate::keyspace::hash;
use crate::value::{LabelFilter, Labels};
use crate::watch::watched_read::SharedQuery;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// See the module's documentation.
#[derive(Default)]
pub(in crate::watch) struct Selecting {
    /// By database. A database without queries stays, empty.
    databases: BTreeMap<u8, OfDatabase>,
    len: usize,
}

#[derive(Default)]
struct OfDatabase {
    /// By the hash of a label with its value. A collision only causes more filters to be checked.
    by_label: HashMap<u64, Vec<SharedQuery>, foldhash::fast::FixedState>,
    others: Vec<SharedQuery>,
}

fn hash_of(name: &[u8], value: &[u8]) -> u64 {
    // The factor tells a label from one whose name and value are exchanged.
    hash(name).wrapping_mul(3).wrapping_add(hash(value))
}

/// Returns the hashes of the labels of which a series must have one that is selected; `None` if there are
/// none.
fn needed(filter: &LabelFilter) -> Option<SmallVec<[u64; 2]>> {
    let mut hashes: SmallVec<[u64; 2]> = filter.needs()?.map(|(name, value)| hash_of(name, value)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    Some(hashes)
}

fn filter_of(query: &SharedQuery) -> &LabelFilter {
    query.selection().expect("a query that is found by labels selects series by them")
}

impl OfDatabase {
    /// Calls `visit` with each list that has the queries of a filter.
    fn lists(&mut self, filter: &LabelFilter, mut visit: impl FnMut(&mut Vec<SharedQuery>)) {
        let Some(hashes) = needed(filter) else { return visit(&mut self.others) };
        for hash in hashes {
            let list = self.by_label.entry(hash).or_default();
            visit(list);
            if list.is_empty() {
                self.by_label.remove(&hash);
            }
        }
    }
}

impl Selecting {
    pub(in crate::watch) const fn new() -> Self {
        Self { databases: BTreeMap::new(), len: 0 }
    }

    pub(in crate::watch) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(in crate::watch) fn insert(&mut self, query: &SharedQuery) {
        let database = self.databases.entry(query.read.db()).or_default();
        database.lists(filter_of(query), |list| list.push(query.clone()));
        self.len += 1;
    }

    /// Removes a query. Returns whether it was present.
    pub(in crate::watch) fn remove(&mut self, query: &SharedQuery) -> bool {
        let Some(database) = self.databases.get_mut(&query.read.db()) else { return false };
        let mut was_there = false;
        database.lists(filter_of(query), |list| {
            if let Some(at) = list.iter().position(|other| SharedQuery::ptr_eq(other, query)) {
                list.swap_remove(at);
                was_there = true;
            }
        });
        self.len -= usize::from(was_there);
        was_there
    }

    /// Visits the queries that read a series with these labels; one may come twice. O(labels, and queries
    /// that need one of them or none).
    pub(in crate::watch) fn for_each_of(&self, db: u8, labels: &Labels, mut visit: impl FnMut(&SharedQuery)) {
        let Some(database) = self.databases.get(&db) else { return };
        let by_label = labels.iter().filter_map(|(name, value)| database.by_label.get(&hash_of(name, value)));
        let candidates = by_label.flatten().chain(&database.others);
        candidates.filter(|query| filter_of(query).matches(labels)).for_each(&mut visit);
    }

    /// Visits all queries of a database; one may come twice.
    pub(in crate::watch) fn for_each(&self, db: u8, mut visit: impl FnMut(&SharedQuery)) {
        let Some(database) = self.databases.get(&db) else { return };
        database.by_label.values().flatten().chain(&database.others).for_each(&mut visit);
    }

    /// Returns how many queries are found together with those of a filter, and whether that is for lack of a
    /// label that it needs.
    pub(in crate::watch) fn beside(&self, db: u8, filter: &LabelFilter) -> (usize, bool) {
        let database = self.databases.get(&db);
        match needed(filter) {
            None => (database.map_or(0, |database| database.others.len()), true),
            Some(hashes) => {
                let of_label = |hash: &u64| database.and_then(|it| it.by_label.get(hash)).map_or(0, Vec::len);
                (hashes.iter().map(of_label).max().unwrap_or(0), false)
            }
        }
    }
}
