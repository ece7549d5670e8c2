//! Optimistic transactions: a flag that any change to a watched key sets.
//!
//! Removing a key that had expired before its watch began changes nothing that the client could
//! have seen. Each watch of a key therefore records whether the key had expired, until it is
//! removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One client's watch, shared with the shards of its keys.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    touched: AtomicBool,
}

impl Watch {
    pub(crate) fn is_touched(&self) -> bool {
        self.touched.load(Ordering::Acquire)
    }

    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Release);
    }
}

/// State of a key in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Absent,
    /// Expired but not yet removed.
    Expired,
    Live,
}

/// A transaction's watch of one key.
#[derive(Debug)]
pub(crate) struct KeyWatch {
    watch: Arc<Watch>,
    /// Whether the key is present but had expired when the watch began, or replaced an absent key
    /// in this state.
    is_expired: bool,
}

impl KeyWatch {
    pub(crate) fn new(watch: &Arc<Watch>, is_expired: bool) -> Self {
        Self { watch: Arc::clone(watch), is_expired }
    }

    pub(crate) fn belongs_to(&self, watch: &Arc<Watch>) -> bool {
        Arc::ptr_eq(&self.watch, watch)
    }

    /// Whether the key is still expired as it was when the watch began.
    pub(crate) fn is_expired(&self) -> bool {
        self.is_expired
    }

    /// Records that the key has changed. `exists` is whether it is present now.
    pub(crate) fn note_change(&mut self, exists: bool) {
        if self.is_expired && !exists {
            self.is_expired = false;
        } else {
            self.watch.touch();
        }
    }

    /// Records that the key's whole database is replaced.
    pub(crate) fn note_replaced(&mut self, before: Presence, after: Presence) {
        match (before, after) {
            (Presence::Absent, Presence::Absent) => {}
            (_, Presence::Absent) if self.is_expired => self.is_expired = false,
            (_, Presence::Expired) if self.is_expired => {}
            (Presence::Absent, Presence::Expired) => self.is_expired = true,
            _ => self.watch.touch(),
        }
    }
}
