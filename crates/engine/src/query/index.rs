//! Which queries read the keys of one shard.

use super::watched::Watched;
use super::{Query, Reach};
use crate::interest::Noted;
use crate::keyspace::{Entry, Table, hash};
use crate::touched::Touched;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The queries of one shard's keys. Whoever holds the shard's lock may look and change.
#[derive(Default)]
pub(crate) struct Index {
    /// By database. A database whose last query has left stays, empty.
    keys: BTreeMap<u8, Table<Box<Watched>>>,
    /// Queries over every key; each stands in the index of every shard.
    everywhere: Vec<Arc<Query>>,
    /// How many of the queries under `keys` read other shards as well.
    wide: usize,
    /// How many queries there are, under `keys` and `everywhere`.
    len: usize,
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self { keys: BTreeMap::new(), everywhere: Vec::new(), wide: 0, len: 0 }
    }

    /// Whether no query reads anything of the shard.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a command that changes one of the shard's keys may need the locks of further shards.
    #[inline]
    pub(crate) fn reaches_further(&self) -> bool {
        self.wide > 0 || !self.everywhere.is_empty()
    }

    /// Whether a query reads every key there is.
    pub(crate) fn reads_everything(&self) -> bool {
        !self.everywhere.is_empty()
    }

    /// The shards that queries of a key, in whatever database, read besides.
    pub(crate) fn reached_from(&self, key: &[u8]) -> impl Iterator<Item = usize> {
        let hash = hash(key);
        let watched = self.keys.values().filter_map(move |table| table.get(hash, key));
        watched.flat_map(|watched| watched.queries()).flat_map(|query| query.reach.several())
    }

    /// The shards that queries of any of the shard's keys read besides.
    pub(crate) fn reached(&self) -> Vec<usize> {
        let mut reached = Vec::new();
        if self.wide > 0 {
            for table in self.keys.values() {
                table.for_each(|watched| {
                    watched.queries().iter().for_each(|query| reached.extend(query.reach.several()));
                });
            }
        }
        reached
    }

    /// How many queries read every key.
    pub(super) fn everywhere_len(&self) -> usize {
        self.everywhere.len()
    }

    /// The queries that name a key.
    pub(crate) fn of_key(&self, db: u8, key: &[u8]) -> &[Arc<Query>] {
        let watched = self.keys.get(&db).and_then(|table| table.get(hash(key), key));
        watched.map_or(&[], |watched| watched.queries())
    }

    pub(super) fn insert(&mut self, db: u8, key: &[u8], query: &Arc<Query>) {
        let (hash, table) = (hash(key), self.keys.entry(db).or_default());
        match table.get_mut(hash, key) {
            Some(watched) => watched.insert(query),
            None => table.insert(hash, Box::new(Watched::new(key, query))),
        }
        self.len += 1;
        self.wide += usize::from(query.reach.is_wide());
    }

    pub(crate) fn remove(&mut self, db: u8, key: &[u8], query: &Arc<Query>) {
        let hash = hash(key);
        let Some(table) = self.keys.get_mut(&db) else { return };
        let Some(watched) = table.get_mut(hash, key) else { return };
        if !watched.remove(query) {
            return;
        }
        if watched.queries().is_empty() {
            table.remove(hash, key);
        }
        self.len -= 1;
        self.wide -= usize::from(query.reach.is_wide());
    }

    pub(super) fn insert_everywhere(&mut self, query: &Arc<Query>) {
        self.everywhere.push(Arc::clone(query));
        self.len += 1;
    }

    pub(crate) fn remove_everywhere(&mut self, query: &Arc<Query>) {
        if let Some(at) = self.everywhere.iter().position(|other| Arc::ptr_eq(other, query)) {
            self.everywhere.swap_remove(at);
            self.len -= 1;
        }
    }

    /// Notes the queries whose answer a change of this key may change; how many of those that name it are left.
    pub(crate) fn note<'e>(
        &self,
        db: u8,
        key: &[u8],
        touched: &Touched<'_>,
        entry: impl Fn() -> Option<&'e Entry>,
        noted: &mut Vec<Noted>,
    ) -> usize {
        let watched = self.keys.get(&db).and_then(|table| table.get(hash(key), key));
        let spared = watched.map_or(0, |watched| watched.note(touched, &entry, noted));
        for query in &self.everywhere {
            if query.read.db() == db && query.read.may_concern(key) {
                query.note_key(key, noted);
            }
        }
        spared
    }

    /// Notes the queries of a whole database.
    pub(crate) fn note_database(&self, db: u8, noted: &mut Vec<Noted>) {
        if let Some(table) = self.keys.get(&db) {
            table.for_each(|watched| watched.queries().iter().for_each(|query| query.note(noted)));
        }
        let everywhere = self.everywhere.iter().filter(|query| query.read.db() == db);
        everywhere.for_each(|query| query.note_everything(noted));
    }
}

impl Reach {
    fn is_wide(&self) -> bool {
        !matches!(self, Self::One(_))
    }

    fn several(&self) -> impl Iterator<Item = usize> {
        let shards: &[usize] = if let Self::Several(shards) = self { shards } else { &[] };
        shards.iter().copied()
    }
}
