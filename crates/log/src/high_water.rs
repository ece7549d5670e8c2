//! The high-water thread: records in `END` how far an open log is durable. A start refuses a log
//! that ends before this mark.
//!
//! ```text
//!  records become durable    END is written and synced
//!  ──┬──────────────────────────┬─────────────────────────► time
//!    └─── at most NOTE_DELAY ───┘
//! ```
//!
//! A busy log pays for one more sync a second, on a thread that no caller waits for; an idle log
//! for none. The mark was durable before it is written, so `END` never claims records that a power
//! failure can lose.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Lsn;
use crate::end_file::{self, EndFile, LogEnd};
use crate::error::Failure;
use crate::shared::{Shared, State, wait};
use crate::storage::is_shortage;

/// Longest time between records becoming durable and the update of `END`.
const NOTE_DELAY: Duration = Duration::from_secs(1);

/// The mark in `END`.
#[derive(Debug)]
pub(crate) struct HighWaterMark {
    file: EndFile,
    /// LSN at which the records of this process start; repeated in every update.
    begun: Lsn,
    /// Durable LSN in `END`.
    noted: AtomicU64,
    /// Held while `END` is written.
    writing: Mutex<()>,
    /// When the next update is due, in a log without threads.
    note_at: Mutex<Option<Instant>>,
}

impl HighWaterMark {
    pub(crate) fn new(file: EndFile, begun: Lsn, noted: Lsn) -> Self {
        Self {
            file,
            begun,
            noted: AtomicU64::new(noted.0),
            writing: Mutex::default(),
            note_at: Mutex::default(),
        }
    }

    fn noted(&self) -> Lsn {
        Lsn(self.noted.load(Ordering::Acquire))
    }

    fn write(&self, durable: Lsn) -> io::Result<()> {
        self.file.write(LogEnd { closed: false, durable, next: self.begun })?;
        self.noted.store(durable.0, Ordering::Release);
        Ok(())
    }

    /// Takes the mark back to `durable`, before records behind it are removed. No greater LSN may
    /// count as durable any more, or the thread would note it again.
    pub(crate) fn lower(&self, durable: Lsn) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.noted() > durable { self.write(durable) } else { Ok(()) }
    }

    /// Notes that the log was closed behind record `last`.
    pub(crate) fn close(&self, last: Lsn, next: Lsn) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.write(LogEnd { closed: true, durable: last, next })
    }
}

pub(crate) struct HighWater {
    shared: Arc<Shared>,
    mark: Arc<HighWaterMark>,
}

impl HighWater {
    pub(crate) fn new(shared: Arc<Shared>, mark: Arc<HighWaterMark>) -> Self {
        Self { shared, mark }
    }

    /// Runs until the log is closed or fails.
    pub(crate) fn run(self) {
        while self.wait_for_more() && self.note() {}
    }

    /// Updates `END` if that is due by now: for a log without threads.
    pub(crate) fn note_if_due(&self) {
        let (durable, has_ended) = {
            let state = self.shared.lock();
            (self.durable(&state), has_ended(&state))
        };
        if has_ended || durable <= self.mark.noted() {
            return;
        }
        let now = self.shared.options.clock.now();
        let mut note_at = self.mark.note_at.lock().unwrap_or_else(PoisonError::into_inner);
        if *note_at.get_or_insert(now + NOTE_DELAY) <= now {
            *note_at = None;
            self.note();
        }
    }

    /// Updates `END`. Returns `false` if that failed, which ends the log.
    fn note(&self) -> bool {
        let _writing = self.mark.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let durable = self.durable(&self.shared.lock());
        if durable <= self.mark.noted() {
            // A group has cut the log meanwhile.
            return true;
        }
        match self.mark.write(durable) {
            Ok(()) => true,
            // A copy-on-write file system needs space even for this. Retried after the next delay.
            Err(error) if is_shortage(&error) => true,
            Err(error) => {
                let what = format!("writing {}", end_file::path(&*self.shared.storage));
                self.shared.fail(Failure::new(what, error));
                false
            }
        }
    }

    /// Waits until more is durable than `END` records, and then for the delay, so that more
    /// accumulates. Returns false if the log is closed or has failed.
    fn wait_for_more(&self) -> bool {
        let shared = &self.shared;
        let mut state = shared.lock();
        while self.durable(&state) <= self.mark.noted() {
            if has_ended(&state) {
                return false;
            }
            state = wait(&shared.wakers.advanced, state);
        }
        let clock = &shared.options.clock;
        let note_at = clock.now() + NOTE_DELAY;
        while let rest = clock.timeout(note_at)
            && !rest.is_zero()
        {
            if has_ended(&state) {
                return false;
            }
            let result = shared.wakers.high_water.wait_timeout(state, rest);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        // After a failed sync the content of the disk is unknown: no new mark is written.
        !has_ended(&state)
    }

    /// Returns the newest record known to be durable. A segment is synced before its successor
    /// starts, in every durability mode.
    fn durable(&self, state: &MutexGuard<'_, State>) -> Lsn {
        Lsn(self.shared.durable.load(Ordering::Acquire)).max(state.sealed)
    }
}

fn has_ended(state: &State) -> bool {
    state.closing || state.failure.is_some()
}
