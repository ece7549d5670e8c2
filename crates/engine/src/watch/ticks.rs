//! When the time of which query moves on: see [`crate::watch::ticking`].

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_log::Lsn;

/// Queries whose time moves, by when the next step of each is over.
pub(in crate::watch) struct Ticks {
    due: Mutex<BTreeSet<(u64, Lsn)>>,
    /// The first of these times, in milliseconds since 1970; `u64::MAX` if there is none. Ordered with the
    /// announcements of workers that fall asleep.
    next_ms: AtomicU64,
}

impl Default for Ticks {
    fn default() -> Self {
        Self { due: Mutex::default(), next_ms: AtomicU64::new(u64::MAX) }
    }
}

impl Ticks {
    /// Adds a query whose step is over at a time, in milliseconds since 1970. Returns whether that is
    /// earlier than all others.
    pub(in crate::watch) fn add(&self, at_ms: u64, id: Lsn) -> bool {
        let mut due = self.lock();
        let is_first = due.first().is_none_or(|(first_ms, _)| at_ms < *first_ms);
        due.insert((at_ms, id));
        self.note_next(&due);
        is_first
    }

    /// Takes out a query whose step is over.
    pub(in crate::watch) fn take(&self, now_ms: u64) -> Option<Lsn> {
        let mut due = self.lock();
        let first = due.first().copied().filter(|(at_ms, _)| *at_ms <= now_ms)?;
        due.remove(&first);
        self.note_next(&due);
        Some(first.1)
    }

    /// When the next step is over, in milliseconds since 1970.
    pub(in crate::watch) fn next(&self) -> Option<u64> {
        Some(self.next_ms.load(Ordering::SeqCst)).filter(|at| *at != u64::MAX)
    }

    fn note_next(&self, due: &BTreeSet<(u64, Lsn)>) {
        self.next_ms.store(due.first().map_or(u64::MAX, |(at_ms, _)| *at_ms), Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(u64, Lsn)>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
