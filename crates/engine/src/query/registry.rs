//! All queries, by what they read and by their ids.

use super::retention::Retention;
use super::{Audience, Query, Read};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tidemark_log::Lsn;

/// How many queries there may be unless the server says otherwise.
const QUERIES: usize = 1_000_000;

/// The queries that there are, and those who pass their emissions on.
pub(crate) struct Registry {
    queries: Mutex<Queries>,
    max_queries: AtomicUsize,
    pub(super) retention: Retention,
    pub(super) audience: OnceLock<Box<dyn Audience>>,
}

/// Two ways to the same queries.
#[derive(Default)]
pub(super) struct Queries {
    by_read: HashMap<Read, Arc<Query>>,
    by_id: BTreeMap<Lsn, Arc<Query>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            queries: Mutex::default(),
            max_queries: AtomicUsize::new(QUERIES),
            retention: Retention::default(),
            audience: OnceLock::new(),
        }
    }
}

impl Registry {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queries> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn max_queries(&self) -> usize {
        self.max_queries.load(Ordering::Relaxed)
    }

    pub(super) fn set_max_queries(&self, most: usize) {
        self.max_queries.store(most, Ordering::Relaxed);
    }
}

impl Queries {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn of_read(&self, read: &Read) -> Option<&Arc<Query>> {
        self.by_read.get(read)
    }

    pub(super) fn of_id(&self, id: Lsn) -> Option<&Arc<Query>> {
        self.by_id.get(&id)
    }

    pub(super) fn insert(&mut self, query: &Arc<Query>) {
        self.by_read.insert(query.read.clone(), Arc::clone(query));
        self.by_id.insert(query.id, Arc::clone(query));
        debug_assert_eq!(self.by_read.len(), self.by_id.len(), "one query for each read");
    }

    pub(super) fn remove(&mut self, query: &Query) {
        self.by_read.remove(&query.read);
        self.by_id.remove(&query.id);
    }

    /// All, by their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Query>> {
        self.by_id.values()
    }
}
