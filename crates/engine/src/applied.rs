//! The last record that memory has: see [`crate::execute::leading`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tidemark_log::Lsn;

/// How far memory has come in the log.
#[derive(Debug)]
pub(crate) struct Applied {
    /// Whether the log is that of a group's member.
    is_in_group: bool,
    /// Whether the log may have records that memory lacks.
    follows: AtomicBool,
    /// The last record that was applied, or that the loaded snapshot covers; of no use while memory
    /// leads.
    lsn: AtomicU64,
    /// Held for writing while a record is applied, and for reading by those that need the state and its
    /// LSN together. Taken before all locks of the keyspace.
    between_records: RwLock<()>,
}

impl Applied {
    /// Memory without records. In a group it follows.
    pub(crate) fn new(is_in_group: bool) -> Self {
        Self {
            is_in_group,
            follows: AtomicBool::new(is_in_group),
            lsn: AtomicU64::new(0),
            between_records: RwLock::default(),
        }
    }

    #[inline]
    pub(crate) fn is_in_group(&self) -> bool {
        self.is_in_group
    }

    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.follows.load(Ordering::Relaxed)
    }

    pub(crate) fn set_follows(&self, follows: bool) {
        self.follows.store(follows, Ordering::Release);
    }

    /// The last record that was applied.
    pub(crate) fn last(&self) -> Lsn {
        Lsn(self.lsn.load(Ordering::Acquire))
    }

    pub(crate) fn set_last(&self, lsn: Lsn) {
        self.lsn.store(lsn.0, Ordering::Release);
    }

    /// Waits until no record is applied in part, and keeps the next from being begun.
    pub(crate) fn between_records(&self) -> RwLockReadGuard<'_, ()> {
        self.between_records.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no one needs the state and its LSN together.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.between_records.write().unwrap_or_else(PoisonError::into_inner)
    }
}
