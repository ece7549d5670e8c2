//! Back-pressure for appenders that must not wait, and detection of storage that does not answer.
//!
//! An event loop checks for space before it runs a command ([`Shared::has_room_for`]) and postpones
//! the command if there is none. Appenders that hold locks never wait for the buffer, so admitted
//! records can exceed its limit, by one record per thread. No thread watches the clock: callers
//! check regularly whether the storage answers ([`Shared::look_for_stall`]).

use std::sync::atomic::Ordering;

use crate::error::{AppendError, Stall};
use crate::shared::{Position, Shared, State};

/// Fraction of the last segment that is left to records under way when nothing more is admitted:
/// those of 16 threads, each of the largest size that needs no reservation.
const LAST_DIVISOR: u64 = 4;

/// The fraction left to them when the disk is full and only changes that take no memory are
/// accepted.
const FULL_DIVISOR: u64 = 8;

impl Shared {
    /// Returns whether appenders should wait: for the buffer to be written, or for the next
    /// segment. One load.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.stopwatches.crowded.is_running()
    }

    /// Updates the crowded state after a change of the buffer, the position or the prepared
    /// segments. Returns whether waiting appenders may continue; the caller announces that after it
    /// has released the lock.
    #[must_use]
    pub(crate) fn update_crowded(&self, state: &State) -> bool {
        let is_crowded = state.buffer.sealed >= self.options.buffer_bytes || lacks_segment(state);
        let was_crowded = self.is_crowded();
        if is_crowded && !was_crowded {
            self.stopwatches.crowded.start();
        } else if was_crowded && !is_crowded {
            self.stopwatches.crowded.stop();
            self.wakers.space.notify_all();
        }
        was_crowded && !is_crowded
    }

    /// Returns whether a small record may be appended although the log cannot grow. Leaves the end
    /// of the segment to records under way.
    pub(crate) fn has_last_room_for(&self, payload_bytes: usize) -> bool {
        let state = self.lock();
        let refuses = state.failure.is_some() || state.closing || state.stall.is_some();
        let fits = |at: Position| {
            let left = at.capacity.saturating_sub(at.offset + state.promised_bytes);
            left >= at.capacity / FULL_DIVISOR + payload_bytes as u64
        };
        state.full.is_some() && !refuses && self.is_small(payload_bytes) && state.position.is_some_and(fits)
    }

    /// Waits until a new log has a segment or cannot get one, so that no appender has to.
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

    /// Waits until appenders may continue. They may also continue, while there is space, if the log
    /// cannot grow.
    pub(crate) fn wait_for_room(&self) -> Result<(), AppendError> {
        let mut state = self.lock();
        while self.is_crowded() && state.full.is_none() {
            state.check()?;
            self.ask_for_room(&mut state);
            state = self.wait_for_space(state);
        }
        Ok(())
    }

    /// Makes the threads provide the missing space.
    fn ask_for_room(&self, state: &mut State) {
        if lacks_segment(state) {
            self.want_next(state);
        }
        self.wake_writer(state.is_syncing);
    }

    /// Returns whether a record of `payload_bytes` can be appended without waiting, or will be
    /// refused. If this is false, the listener is called when the caller should try again.
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
        let is_small = self.is_small(payload_bytes);
        if !is_small && self.overfills_entry(&state, payload_bytes) {
            state.is_room_awaited = true;
            self.wake_writer(state.is_syncing);
            return false;
        }
        let needed = if is_small { None } else { self.lacking_bytes(&state, payload_bytes) };
        if let Some(bytes) = needed {
            self.want_segment(&mut state, bytes);
            state.is_room_awaited = true;
        }
        !is_crowded && needed.is_none()
    }

    /// Refuses records if the storage does not answer. A few loads, unless a call has taken long.
    pub(crate) fn look_for_stall(&self) {
        if let Some(what) = self.stalled_work()
            && !self.stalled.load(Ordering::Acquire)
        {
            self.begin_stall(what);
        }
    }

    /// Returns the operation that has taken too long, if any.
    fn stalled_work(&self) -> Option<&'static str> {
        let limit = self.options.stall_after;
        let keeper_is_needed = || self.is_crowded() || self.lock().is_room_awaited;
        if self.stopwatches.writing.has_run_for(limit) {
            Some("a write of the log has been under way")
        } else if self.stopwatches.syncing.has_run_for(limit) {
            Some("a sync of the log has been under way")
        } else if self.stopwatches.housekeeping.has_run_for(limit) && keeper_is_needed() {
            Some("the next segment has been under way")
        } else if self.stopwatches.crowded.has_run_for(limit) {
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
        self.wakers.space.notify_all();
        self.announce();
    }

    /// Accepts records again if the storage has answered. One load if there was no stall.
    pub(crate) fn end_stall(&self) {
        if !self.stalled.load(Ordering::Acquire) || self.stalled_work().is_some() {
            return;
        }
        let mut state = self.lock();
        state.stall = None;
        self.stalled.store(false, Ordering::Release);
        self.update_refusing(&state);
        drop(state);
        self.wakers.space.notify_all();
        self.announce();
    }

    /// Updates whether records are refused.
    pub(crate) fn update_refusing(&self, state: &State) {
        let refuses = state.failure.is_some()
            || state.closing
            || state.full.is_some()
            || state.stall.is_some()
            || state.follows;
        self.refusing.store(refuses, Ordering::Release);
    }
}

/// Returns whether no segment is prepared and the last one is nearly full or missing.
fn lacks_segment(state: &State) -> bool {
    state.ready.is_empty()
        && state.position.is_none_or(|at| {
            let left = at.capacity.saturating_sub(at.offset + state.promised_bytes);
            left < at.capacity / LAST_DIVISOR
        })
}
