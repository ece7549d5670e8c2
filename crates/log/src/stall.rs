//! Room for appenders that must not wait, and storage that does not answer.
//!
//! An event loop asks for room before it runs a command ([`Shared::has_room_for`]) and lets the command wait if there is none.
//! Under locks nothing waits for the buffer: what was admitted exceeds it by one record a thread. Nobody watches the clock:
//! callers who have turns or questions ask whether the storage answers ([`Shared::look_for_stall`]).

use std::sync::atomic::Ordering;

use crate::error::{AppendError, Stall};
use crate::shared::{Position, Shared, State};

/// The part of the last segment that is left to records under way when no further one is admitted: those of 16 threads, of
/// the largest that need no promise.
const LAST_DIVISOR: u64 = 4;

/// The part of it that is left to them where the disk is full and what takes no memory goes on.
const FULL_DIVISOR: u64 = 8;

impl Shared {
    /// Whether appenders should wait: for the buffer to be written, or for the next segment. One load.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.is_running()
    }

    /// Follows what has changed of buffer, position or prepared segments. Returns whether appenders may go on that had to
    /// wait; the caller announces it when it has released the lock.
    #[must_use]
    pub(crate) fn update_crowded(&self, state: &State) -> bool {
        let is_crowded = state.buffer.sealed >= self.options.buffer_bytes || lacks_segment(state);
        let was_crowded = self.is_crowded();
        if is_crowded && !was_crowded {
            self.crowded.start();
        } else if was_crowded && !is_crowded {
            self.crowded.stop();
            self.space.notify_all();
        }
        was_crowded && !is_crowded
    }

    /// Whether a small record may be appended although the log cannot grow; the end of the segment stays for those under way.
    pub(crate) fn has_last_room_for(&self, payload_bytes: usize) -> bool {
        let state = self.lock();
        let refuses = state.failure.is_some() || state.closing || state.stall.is_some();
        let fits = |at: Position| {
            let left = at.capacity.saturating_sub(at.offset + state.promised_bytes);
            left >= at.capacity / FULL_DIVISOR + payload_bytes as u64
        };
        state.full.is_some() && !refuses && self.is_small(payload_bytes) && state.position.is_some_and(fits)
    }

    /// Waits until a new log has a segment, or cannot have one: no appender should have to.
    pub(crate) fn wait_for_first_segment(&self) {
        let mut state = self.lock();
        while state.position.is_none()
            && state.ready.is_empty()
            && state.full.is_none()
            && state.check().is_ok()
        {
            state = self.wait_for_space(state);
        }
    }

    /// Waits until appenders may go on, if they may not; so they may if the log cannot grow, as far as there is space.
    pub(crate) fn wait_for_room(&self) -> Result<(), AppendError> {
        let mut state = self.lock();
        while self.is_crowded() && state.full.is_none() {
            state.check()?;
            self.ask_for_room(&mut state);
            state = self.wait_for_space(state);
        }
        Ok(())
    }

    /// Has the threads make the room that is lacking.
    fn ask_for_room(&self, state: &mut State) {
        if lacks_segment(state) {
            self.want_next(state);
        }
        self.wake_writer(state.is_syncing);
    }

    /// Whether the log has room for a record of so many payload bytes, or will refuse it. If not, the listener is told when
    /// it is worth asking again.
    #[inline]
    pub(crate) fn has_room_for(&self, payload_bytes: usize) -> bool {
        let has_room = !self.is_crowded() && self.is_small(payload_bytes);
        has_room || self.refusing.load(Ordering::Relaxed) || self.finds_room_for(payload_bytes)
    }

    #[cold]
    fn finds_room_for(&self, payload_bytes: usize) -> bool {
        let mut state = self.lock();
        if self.refusing.load(Ordering::Relaxed) {
            return true;
        }
        let is_crowded = self.is_crowded();
        if is_crowded {
            self.ask_for_room(&mut state);
        }
        let needed =
            if self.is_small(payload_bytes) { None } else { self.lacking_bytes(&state, payload_bytes) };
        if let Some(bytes) = needed {
            self.want_segment(&mut state, bytes);
            state.is_room_awaited = true;
        }
        !is_crowded && needed.is_none()
    }

    /// Refuses records if the storage does not answer. Some loads unless it has been at work for long.
    pub(crate) fn look_for_stall(&self) {
        if let Some(what) = self.stalled_work()
            && !self.stalled.load(Ordering::Acquire)
        {
            self.begin_stall(what);
        }
    }

    /// What has been going on for too long.
    fn stalled_work(&self) -> Option<&'static str> {
        let limit = self.options.stall_after;
        let keeper_is_needed = || self.is_crowded() || self.lock().is_room_awaited;
        if self.writing.has_run_for(limit) {
            Some("a write of the log has been under way")
        } else if self.syncing.has_run_for(limit) {
            Some("a sync of the log has been under way")
        } else if self.keeping.has_run_for(limit) && keeper_is_needed() {
            Some("the next segment has been under way")
        } else if self.crowded.has_run_for(limit) {
            Some("the log has had no room")
        } else {
            None
        }
    }

    #[cold]
    fn begin_stall(&self, what: &'static str) {
        let mut state = self.lock();
        if state.failure.is_some() || state.closing || state.stall.is_some() {
            return;
        }
        let (path, seconds) = (self.storage.path(""), self.options.stall_after.as_secs());
        state.stall = Some(Stall { path, what, seconds });
        self.stalled.store(true, Ordering::Release);
        self.update_refusing(&state);
        drop(state);
        self.space.notify_all();
        self.announce();
    }

    /// Accepts records again if the storage has answered. One load if it has not been silent.
    pub(crate) fn end_stall(&self) {
        if !self.stalled.load(Ordering::Acquire) || self.stalled_work().is_some() {
            return;
        }
        let mut state = self.lock();
        state.stall = None;
        self.stalled.store(false, Ordering::Release);
        self.update_refusing(&state);
        drop(state);
        self.space.notify_all();
        self.announce();
    }

    /// Follows what has changed of the reasons to refuse records.
    pub(crate) fn update_refusing(&self, state: &State) {
        let refuses =
            state.failure.is_some() || state.closing || state.full.is_some() || state.stall.is_some();
        self.refusing.store(refuses, Ordering::Release);
    }
}

/// Whether no segment is prepared and little is left of the last one, or there is none.
fn lacks_segment(state: &State) -> bool {
    state.ready.is_empty()
        && state.position.is_none_or(|at| {
            let left = at.capacity.saturating_sub(at.offset + state.promised_bytes);
            left < at.capacity / LAST_DIVISOR
        })
}
