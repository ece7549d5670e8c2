//! A part of all keys, with a lock for changes of the key set.

use super::inbox::Loaded;
use super::key::{Found, KeyRef};
use super::readers::Inside;
use super::table::{Filling, Table};
use crate::committer::Error;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Some of the keys.
#[repr(align(64))]
pub(crate) struct Shard {
    table: Table,
    changing: Mutex<Changing>,
}

struct Changing {
    filling: Filling,
    /// Keys that were removed from the table, and that a reader may still have found there. They
    /// are freed, or inserted again.
    limbo: Vec<KeyRef>,
    /// Names whose positions are being loaded, each once at a time. Nothing is committed under a
    /// name until its entry is removed, so the loaded position is the stored one.
    loading: HashMap<Box<[u8]>, Loaded>,
}

/// A shard whose lock is held, which permits changes of the key set.
pub(crate) struct Alone<'shard> {
    table: &'shard Table,
    changing: MutexGuard<'shard, Changing>,
}

/// State of a name that is not in memory.
pub(crate) enum Absent {
    /// Not requested.
    Unknown,
    /// It is being loaded.
    Loading(Loaded),
    /// It was loaded; the caller must insert it now.
    Loaded(Result<i64, Error>),
}

impl Shard {
    pub(crate) fn new() -> Self {
        let (table, filling) = Table::new();
        let changing = Changing { filling, limbo: Vec::new(), loading: HashMap::new() };
        Self { table, changing: Mutex::new(changing) }
    }

    /// Returns the key with this name, without a lock. Misses keys that are about to be evicted.
    #[inline]
    pub(crate) fn find<'inside>(
        &self,
        hash: u64,
        name: &[u8],
        inside: &'inside Inside,
    ) -> Option<Found<'inside>> {
        self.table.find(hash, name, inside)
    }

    pub(crate) fn lock(&self) -> Alone<'_> {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        Alone { table: &self.table, changing }
    }
}

impl Alone<'_> {
    /// Returns the key with this name, if it is in memory. Cancels its eviction.
    pub(crate) fn hold(&mut self, hash: u64, name: &[u8], hash_of: impl Fn(&[u8]) -> u64) -> Option<KeyRef> {
        if let Some(found) = self.table.find_alone(&self.changing.filling, hash, name) {
            found.touch();
            return Some(found.hold());
        }
        let at = self.changing.limbo.iter().position(|key| key.name() == name)?;
        let key = self.changing.limbo.swap_remove(at);
        key.touch();
        self.insert(hash, key.clone(), hash_of);
        Some(key)
    }

    pub(crate) fn insert(&mut self, hash: u64, key: KeyRef, hash_of: impl Fn(&[u8]) -> u64) {
        self.table.insert(&mut self.changing.filling, hash, key, hash_of);
    }

    /// Returns the state of a name that [`hold`](Self::hold) has not found. A load result is
    /// returned once and then removed.
    pub(crate) fn absent(&mut self, name: &[u8]) -> Absent {
        let Some(loaded) = self.changing.loading.get(name) else { return Absent::Unknown };
        match loaded.peek() {
            None => Absent::Loading(loaded.clone()),
            Some(loaded) => {
                self.changing.loading.remove(name);
                Absent::Loaded(loaded)
            }
        }
    }

    /// Enters the name as being loaded.
    pub(crate) fn load(&mut self, name: &[u8]) -> Loaded {
        let loaded = Loaded::default();
        let before = self.changing.loading.insert(name.into(), loaded.clone());
        assert!(before.is_none(), "a name is loaded while it is being loaded");
        loaded
    }

    /// Removes the entry of a load for which no caller waits any more; returns whether it was still
    /// there.
    pub(crate) fn give_up(&mut self, name: &[u8], loaded: &Loaded) -> bool {
        let is_this = self.changing.loading.get(name).is_some_and(|current| Arc::ptr_eq(current, loaded));
        is_this && self.changing.loading.remove(name).is_some()
    }

    /// Removes the keys that `is_out` selects from the table, and keeps them until it is certain
    /// that no reader has found them. Returns how many.
    pub(crate) fn take_out(
        &mut self,
        hash_of: impl Fn(&[u8]) -> u64,
        mut is_out: impl FnMut(&Found<'_>) -> bool,
    ) -> usize {
        let Changing { filling, limbo, .. } = &mut *self.changing;
        let mut out = Vec::new();
        self.table.for_each(filling, |found| {
            if is_out(&found) {
                out.push(found.hold());
            }
        });
        for key in &out {
            limbo.extend(self.table.remove(filling, hash_of(key.name()), key.name()));
        }
        out.len()
    }

    /// Frees the removed keys, and inserts those in use again. Called after the readers' grace
    /// period. Returns how many were freed.
    pub(crate) fn free(&mut self, hash_of: impl Fn(&[u8]) -> u64) -> usize {
        let (free, used): (Vec<_>, Vec<_>) = self.changing.limbo.drain(..).partition(|key| key.is_idle());
        for key in used {
            self.insert(hash_of(key.name()), key, &hash_of);
        }
        free.len()
    }

    /// Calls `each` with every key that is in memory.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&KeyRef)) {
        self.table.for_each(&self.changing.filling, |found| each(&found.hold()));
        self.changing.limbo.iter().for_each(each);
    }
}
