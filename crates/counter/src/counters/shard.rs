//! A part of all keys, under a lock of its own for those who change which there are.

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
    /// Keys that were taken out of the table, and that somebody may still have found there. They are freed, or come back.
    limbo: Vec<KeyRef>,
    /// Names whose positions are being loaded. Each is loaded once at a time, and until it is here no more nobody commits anything
    /// under it: what was loaded is what is stored.
    loading: HashMap<Box<[u8]>, Loaded>,
}

/// The right to change which keys there are.
pub(crate) struct Alone<'shard> {
    table: &'shard Table,
    changing: MutexGuard<'shard, Changing>,
}

/// What is known of a name that is not in memory.
pub(crate) enum Absent {
    /// Nothing.
    Unknown,
    /// It is being loaded.
    Loading(Loaded),
    /// It was loaded, and is to be put in now.
    Loaded(Result<i64, Error>),
}

impl Shard {
    pub(crate) fn new() -> Self {
        let (table, filling) = Table::new();
        let changing = Changing { filling, limbo: Vec::new(), loading: HashMap::new() };
        Self { table, changing: Mutex::new(changing) }
    }

    /// The key with this name, without a lock. It may be in memory and not be found, while it is about to be put away.
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
    /// The key with this name, if it is in memory; if it was about to be put away, it is not any more.
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

    /// What is known of a name that [`hold`](Self::hold) has not found. A result that is handed out is forgotten here.
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

    /// The name is being loaded from now on.
    pub(crate) fn load(&mut self, name: &[u8]) -> Loaded {
        let loaded = Loaded::default();
        let before = self.changing.loading.insert(name.into(), loaded.clone());
        assert!(before.is_none(), "a name is loaded while it is being loaded");
        loaded
    }

    /// Nobody waits any longer for what is loaded under this name: whether it was still being.
    pub(crate) fn give_up(&mut self, name: &[u8], loaded: &Loaded) -> bool {
        let is_this = self.changing.loading.get(name).is_some_and(|current| Arc::ptr_eq(current, loaded));
        is_this && self.changing.loading.remove(name).is_some()
    }

    /// Takes those keys out of the table that `is_out` names, for as long as there is no certainty whether somebody has found them.
    /// How many there are.
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

    /// Frees what was taken out, when nobody can have found it any more; what is in use comes back. How many were freed.
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
