//! Numbers for ids of items, so that counts are stored by number.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Ids in the order of their first occurrence. Invariant: each is in the table once.
#[derive(Debug, Default)]
pub(super) struct Names {
    ids: Vec<Box<str>>,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn id(&self, number: u32) -> &str {
        &self.ids[number as usize]
    }

    pub(super) fn find(&self, id: &str) -> Option<u32> {
        self.table.find(self.hasher.hash_one(id), |&other| *self.ids[other as usize] == *id).copied()
    }

    /// Returns the number of an id, and assigns one if necessary. Callers keep the number of ids
    /// below 2³².
    pub(super) fn number(&mut self, id: &str) -> u32 {
        if let Some(number) = self.find(id) {
            return number;
        }
        debug_assert!(u32::try_from(self.ids.len()).is_ok());
        let number = self.ids.len() as u32;
        self.ids.push(id.into());
        let (ids, hasher) = (&self.ids, &self.hasher);
        self.table
            .insert_unique(hasher.hash_one(id), number, |&other| hasher.hash_one(&*ids[other as usize]));
        number
    }
}
