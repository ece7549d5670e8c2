//! The queries that read the keys of one shard.

use crate::execute::noted::Noted;
use crate::keyspace::label_index::labelled;
use crate::keyspace::{Entry, Keyed, Table, hash};
use crate::watch::index::selecting::Selecting;
use crate::watch::index::watched_key::{self, Watched};
use crate::watch::reach::Reach;
use crate::watch::touched::Touched;
use crate::watch::watched_read::{Query, SharedQuery};
use std::collections::BTreeMap;

/// The queries of one shard's keys. Guarded by the shard's lock.
#[derive(Default)]
pub(crate) struct Index {
    /// By database. A database without queries stays, empty.
    databases: BTreeMap<u8, Database>,
    /// Queries over every key; each is in the index of every shard.
    everywhere: Vec<SharedQuery>,
    /// Queries of the series with some labels; each is in the index of every shard, and under the keys of
    /// the series that it reads.
    selecting: Selecting,
    /// Number of queries under `databases` that name keys of other shards as well.
    wide: usize,
    /// Number of queries in all of these.
    len: usize,
}

/// The watched keys of a database, each in one of the two tables.
#[derive(Default)]
struct Database {
    /// Keys with a single query, which reads nothing else: most keys.
    sole: Table<Sole>,
    /// All other keys.
    shared: Table<Box<Watched>>,
}

/// The only query of a key, which reads only that key. The key is stored in the query.
struct Sole(SharedQuery);

impl Keyed for Sole {
    fn key(&self) -> &[u8] {
        self.0.read.sole_key().expect("a query that is listed under one key reads one key")
    }
}

impl Database {
    fn of_key(&self, hash: u64, key: &[u8]) -> &[SharedQuery] {
        if let Some(sole) = self.sole.get(hash, key) {
            return std::slice::from_ref(&sole.0);
        }
        self.shared.get(hash, key).map_or(&[], |watched| watched.queries())
    }

    fn insert(&mut self, key: &[u8], query: &SharedQuery) {
        let hash = hash(key);
        if let Some(watched) = self.shared.get_mut(hash, key) {
            return watched.insert(query);
        }
        let sole = self.sole.remove(hash, key);
        if sole.is_none() && query.read.sole_key().is_some() {
            return self.sole.insert(hash, Sole(query.clone()));
        }
        let mut watched = Box::new(Watched::new(key));
        sole.iter().for_each(|sole| watched.insert(&sole.0));
        watched.insert(query);
        self.shared.insert(hash, watched);
    }

    /// Removes a query of a key. Returns whether it was present.
    fn remove(&mut self, key: &[u8], query: &SharedQuery) -> bool {
        let hash = hash(key);
        if self.sole.get(hash, key).is_some_and(|sole| SharedQuery::ptr_eq(&sole.0, query)) {
            return self.sole.remove(hash, key).is_some();
        }
        let Some(watched) = self.shared.get_mut(hash, key) else { return false };
        let was_there = watched.remove(query);
        if watched.queries().is_empty() {
            self.shared.remove(hash, key);
        }
        was_there
    }

    /// Notes the queries of a key whose answer a change may have changed. Returns the number of the
    /// rest.
    fn note<'e>(
        &self,
        key: &[u8],
        touched: &Touched<'_>,
        entry: &impl Fn() -> Option<&'e Entry>,
        noted: &mut Vec<Noted>,
    ) -> usize {
        let hash = hash(key);
        match self.sole.get(hash, key) {
            Some(sole) => usize::from(watched_key::note_sole(&sole.0, key, touched, entry, noted)),
            None => self.shared.get(hash, key).map_or(0, |watched| watched.note(touched, entry, noted)),
        }
    }

    fn for_each(&self, mut visit: impl FnMut(&SharedQuery)) {
        self.sole.for_each(|sole| visit(&sole.0));
        self.shared.for_each(|watched| watched.queries().iter().for_each(&mut visit));
    }
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self {
            databases: BTreeMap::new(),
            everywhere: Vec::new(),
            selecting: Selecting::new(),
            wide: 0,
            len: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether a command that changes a key of the shard may need the locks of further
    /// shards.
    #[inline]
    pub(crate) fn reaches_further(&self) -> bool {
        self.wide > 0 || !self.everywhere.is_empty()
    }

    pub(crate) fn reads_everything(&self) -> bool {
        !self.everywhere.is_empty()
    }

    /// Returns whether queries select series by their labels.
    #[inline]
    pub(crate) fn selects(&self) -> bool {
        !self.selecting.is_empty()
    }

    /// Returns whether queries select the series of a key, in any database.
    pub(crate) fn is_selected(&self, key: &[u8]) -> bool {
        let hash = hash(key);
        let shared = self.databases.values().filter_map(|database| database.shared.get(hash, key));
        shared.flat_map(|watched| watched.queries()).any(|query| query.selection().is_some())
    }

    /// Visits all keys of the queries of a key, in any database, that read several shards.
    pub(crate) fn for_each_read_beside(&self, key: &[u8], mut visit: impl FnMut(&[u8])) {
        let hash = hash(key);
        // A query of one key reads no other shard.
        let shared = self.databases.values().filter_map(move |database| database.shared.get(hash, key));
        let wide = shared.flat_map(|watched| watched.queries()).filter(|query| query.names_others());
        wide.for_each(|query| query.read.keys().into_iter().for_each(&mut visit));
    }

    /// Returns the other shards that queries of any of the shard's keys read.
    pub(crate) fn reached(&self) -> Vec<usize> {
        let mut reached = Vec::new();
        if self.wide > 0 {
            for database in self.databases.values() {
                database.shared.for_each(|watched| {
                    watched.queries().iter().for_each(|query| reached.extend(query.several()));
                });
            }
        }
        reached
    }

    pub(in crate::watch) fn everywhere(&self) -> &[SharedQuery] {
        &self.everywhere
    }

    pub(crate) fn of_key(&self, db: u8, key: &[u8]) -> &[SharedQuery] {
        self.databases.get(&db).map_or(&[], |database| database.of_key(hash(key), key))
    }

    pub(in crate::watch) fn insert(&mut self, db: u8, key: &[u8], query: &SharedQuery) {
        self.databases.entry(db).or_default().insert(key, query);
        self.len += 1;
        self.wide += usize::from(query.names_others());
    }

    pub(crate) fn remove(&mut self, db: u8, key: &[u8], query: &SharedQuery) {
        let was_there = self.databases.get_mut(&db).is_some_and(|database| database.remove(key, query));
        let (id, len, wide) = (query.id(), self.len, usize::from(query.names_others()));
        assert!(
            was_there,
            "the query of record {id} leaves a key of database {db}, and is missing among {len}"
        );
        self.len -= 1;
        self.wide = self.wide.checked_sub(wide).expect("a query that reads several shards was counted");
    }

    pub(in crate::watch) fn insert_selecting(&mut self, query: &SharedQuery) {
        self.selecting.insert(query);
        self.len += 1;
    }

    pub(crate) fn remove_selecting(&mut self, query: &SharedQuery) {
        let was_there = self.selecting.remove(query);
        assert!(was_there, "the query of record {} leaves, and is not found by labels", query.id());
        self.len -= 1;
    }

    pub(in crate::watch) fn selecting(&self) -> &Selecting {
        &self.selecting
    }

    pub(in crate::watch) fn insert_everywhere(&mut self, query: &SharedQuery) {
        self.everywhere.push(query.clone());
        self.len += 1;
    }

    pub(crate) fn remove_everywhere(&mut self, query: &SharedQuery) {
        let at = self.everywhere.iter().position(|other| SharedQuery::ptr_eq(other, query));
        let (id, len) = (query.id(), self.everywhere.len());
        let at =
            at.unwrap_or_else(|| panic!("the query of record {id} is not among {len} that read every key"));
        self.everywhere.swap_remove(at);
        self.len -= 1;
    }

    /// Notes the queries whose answer a change of this key may have changed. Returns how many of
    /// those that name it are not noted.
    pub(crate) fn note<'e>(
        &self,
        db: u8,
        key: &[u8],
        touched: &Touched<'_>,
        entry: impl Fn() -> Option<&'e Entry>,
        noted: &mut Vec<Noted>,
    ) -> usize {
        let database = self.databases.get(&db);
        let spared = database.map_or(0, |database| database.note(key, touched, &entry, noted));
        // What touches only parts of a value brings no series.
        if self.selects()
            && let Touched::Everything = touched
            && let Some(labelled) = entry().and_then(labelled)
        {
            self.selecting.for_each_of(db, labelled.labels(), |query| Query::note_key(query, key, noted));
        }
        for query in &self.everywhere {
            if query.read.db() == db && query.read.may_concern(key) {
                Query::note_key(query, key, noted);
            }
        }
        spared
    }

    /// Notes the queries of a whole database.
    pub(crate) fn note_database(&self, db: u8, noted: &mut Vec<Noted>) {
        if let Some(database) = self.databases.get(&db) {
            database.for_each(|query| Query::note(query, noted));
        }
        let everywhere = self.everywhere.iter().filter(|query| query.read.db() == db);
        everywhere.for_each(|query| Query::note_everything(query, noted));
        self.selecting.for_each(db, |query| Query::note_everything(query, noted));
    }
}

impl Query {
    /// Returns whether the query names keys of several shards.
    fn names_others(&self) -> bool {
        self.wide().is_some() && self.selection().is_none()
    }

    /// Returns the shards that the query reads, if there are several but not all.
    fn several(&self) -> impl Iterator<Item = usize> {
        let shards: &[usize] = match self.wide() {
            Some(Reach::Several(shards)) => shards,
            _ => &[],
        };
        shards.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Keyspace;
    use crate::watch::state::Answered;
    use crate::watch::{Filter, Read};
    use crate::wire::reply::Protocol;
    use std::sync::atomic::Ordering;
    use tidemark_log::Lsn;

    fn query(id: u64, line: &str) -> SharedQuery {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let read = Read::new(0, Protocol::Resp3, &words, Filter::default()).expect("watchable");
        let keyspace = Keyspace::new(64);
        let part = read.part();
        SharedQuery::new(Query::new(Lsn(id), (read, part), &keyspace, Answered::default(), 0))
    }

    fn ids(index: &Index, key: &str) -> Vec<u64> {
        let mut ids: Vec<u64> = index.of_key(0, key.as_bytes()).iter().map(|query| query.id().0).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_key_is_read_by_one_query_or_by_several() {
        let mut index = Index::new();
        let (get, length, both) = (query(1, "GET a"), query(2, "STRLEN a"), query(3, "MGET a b"));
        index.insert(0, b"a", &get);
        assert_eq!((ids(&index, "a"), ids(&index, "b")), (vec![1], vec![]));
        index.insert(0, b"a", &length);
        assert_eq!(ids(&index, "a"), [1, 2]);
        index.remove(0, b"a", &get);
        assert_eq!(ids(&index, "a"), [2]);
        for key in ["a", "b"] {
            index.insert(0, key.as_bytes(), &both);
        }
        assert_eq!((ids(&index, "a"), ids(&index, "b")), (vec![2, 3], vec![3]));
        let mut beside = Vec::new();
        index.for_each_read_beside(b"a", |key| beside.push(key.to_vec()));
        assert!(index.reaches_further() && beside == [b"a", b"b"]);
        for key in ["a", "b"] {
            index.remove(0, key.as_bytes(), &both);
        }
        assert!(!index.reaches_further() && !index.is_empty());
        index.remove(0, b"a", &length);
        assert!(index.is_empty() && ids(&index, "a").is_empty());
    }

    #[test]
    #[should_panic(expected = "the query of record 1 leaves a key of database 0, and is missing among 1")]
    fn a_query_does_not_leave_twice() {
        let mut index = Index::new();
        let (get, length) = (query(1, "GET a"), query(2, "STRLEN a"));
        index.insert(0, b"a", &get);
        index.insert(0, b"a", &length);
        index.remove(0, b"a", &get);
        index.remove(0, b"a", &get);
    }

    #[test]
    fn a_part_of_a_key_that_is_read_alone_is_spared_what_changes_beside_it() {
        let change = |index: &Index, field: &[u8]| {
            let (names, mut noted) = ([field], Vec::new());
            let spared = index.note(0, b"h", &Touched::fields(&names, true), || None, &mut noted);
            for noted in &noted {
                if let Noted::Query(query) = noted {
                    query.noted.store(0, Ordering::Relaxed);
                }
            }
            (noted.len(), spared)
        };
        let mut index = Index::new();
        let (one, other, all) = (query(1, "HGET h f"), query(2, "HGET h g"), query(3, "HGETALL h"));
        index.insert(0, b"h", &one);
        assert!(index.databases[&0].sole.get(hash(b"h"), b"h").is_some());
        assert_eq!((change(&index, b"f"), change(&index, b"g")), ((1, 0), (0, 1)));
        index.insert(0, b"h", &other);
        assert_eq!((change(&index, b"f"), change(&index, b"g")), ((1, 1), (1, 1)));
        assert_eq!(change(&index, b"x"), (0, 2));
        index.insert(0, b"h", &all);
        assert_eq!((change(&index, b"f"), change(&index, b"x")), ((2, 1), (1, 2)));
        index.remove(0, b"h", &one);
        assert_eq!((change(&index, b"f"), change(&index, b"g")), ((1, 1), (2, 0)));
    }

    #[test]
    fn a_read_of_several_elements_is_spared_or_not_once() {
        let mut index = Index::new();
        for (id, line) in [(1, "HMGET h f g"), (2, "HGET h g"), (3, "HGET h x"), (4, "HMGET h x y")] {
            index.insert(0, b"h", &query(id, line));
        }
        let (fields, mut noted): ([&[u8]; 2], _) = ([b"f", b"g"], Vec::new());
        assert_eq!(index.note(0, b"h", &Touched::fields(&fields, true), || None, &mut noted), 2);
        assert_eq!(noted.len(), 2);
    }

    #[test]
    fn a_key_that_is_read_alone_is_in_its_query() {
        let mut index = Index::new();
        index.insert(0, b"a", &query(1, "GET a"));
        index.insert(0, b"b", &query(2, "MGET a b"));
        let database = &index.databases[&0];
        assert!(
            database.sole.get(hash(b"a"), b"a").is_some() && database.shared.get(hash(b"a"), b"a").is_none()
        );
        assert!(
            database.sole.get(hash(b"b"), b"b").is_none() && database.shared.get(hash(b"b"), b"b").is_some()
        );
    }
}
