//! What writer, subscriber and executioner know of each other.

use crate::interrupt::Interrupt;
use crate::watch::ledger::Ledger;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The state of one iteration.
pub(super) struct Progress {
    ledger: Mutex<Ledger>,
    /// Writes that were answered or given up.
    written: AtomicU64,
    writer_is_done: AtomicBool,
    /// How often the server was killed; raised when it is gone for sure.
    kills: AtomicU32,
    client_is_to_crash: AtomicBool,
    crashed_at: Mutex<Option<Instant>>,
    /// One of the three cannot go on.
    failed: AtomicBool,
    /// The user has seen enough.
    interrupt: Interrupt,
}

impl Progress {
    pub(super) fn new(run: u64, interrupt: Interrupt) -> Self {
        Progress {
            ledger: Mutex::new(Ledger::new(run)),
            written: AtomicU64::new(0),
            writer_is_done: AtomicBool::new(false),
            kills: AtomicU32::new(0),
            client_is_to_crash: AtomicBool::new(false),
            crashed_at: Mutex::new(None),
            failed: AtomicBool::new(false),
            interrupt,
        }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn into_ledger(self) -> Ledger {
        self.ledger.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count_write(&self) {
        self.written.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn end_writing(&self) {
        self.writer_is_done.store(true, Ordering::Release);
    }

    pub(super) fn writer_is_done(&self) -> bool {
        self.writer_is_done.load(Ordering::Acquire)
    }

    pub(super) fn count_kill(&self) {
        self.kills.fetch_add(1, Ordering::Release);
    }

    pub(super) fn kills(&self) -> u32 {
        self.kills.load(Ordering::Acquire)
    }

    pub(super) fn crash_client(&self) {
        self.client_is_to_crash.store(true, Ordering::Release);
    }

    pub(super) fn client_is_to_crash(&self) -> bool {
        self.client_is_to_crash.load(Ordering::Acquire)
    }

    /// Whether what is written from now on is written after the crash.
    pub(super) fn crash_has_begun(&self) -> bool {
        self.client_is_to_crash() || self.kills() > 0
    }

    /// Notes the moment from which recovery counts.
    pub(super) fn note_crash(&self, at: Instant) {
        *self.crashed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    pub(super) fn crashed_at(&self) -> Option<Instant> {
        *self.crashed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Whether all threads are to stop.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.is_interrupted()
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_asked_for()
    }
}
