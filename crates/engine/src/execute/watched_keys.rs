//! Optimistic transactions: a flag that any change to a watched key raises.
//!
//! That a key is removed which had expired before its watch began changes nothing that the client could have seen. So each watch
//! of a key notes whether the key had expired, until it is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One client's watch, shared with the shards of the keys that it watches.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    touched: AtomicBool,
}

impl Watch {
    /// Whether a watched key has changed.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched.load(Ordering::Acquire)
    }

    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Release);
    }
}

/// What a database holds at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Absent,
    /// Its time has come, and it has not been removed.
    Expired,
    Live,
}

/// A transaction's watch of one key.
#[derive(Debug)]
pub(crate) struct KeyWatch {
    watch: Arc<Watch>,
    /// The key is there and had expired when it was watched, or has come in this state in the place of no key.
    is_expired: bool,
}

impl KeyWatch {
    pub(crate) fn new(watch: &Arc<Watch>, is_expired: bool) -> Self {
        Self { watch: Arc::clone(watch), is_expired }
    }

    /// Whether it is part of this watch.
    pub(crate) fn belongs_to(&self, watch: &Arc<Watch>) -> bool {
        Arc::ptr_eq(&self.watch, watch)
    }

    /// Whether the key is still as expired as it was when it was watched.
    pub(crate) fn is_expired(&self) -> bool {
        self.is_expired
    }

    /// Notes that the key has changed. `exists` is whether it is there now.
    pub(crate) fn note_change(&mut self, exists: bool) {
        if self.is_expired && !exists {
            self.is_expired = false;
        } else {
            self.watch.touch();
        }
    }

    /// Notes that the key's whole database is replaced.
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
