//! The housekeeper: prepares segments ahead of need and drops those that are no longer needed. On a
//! thread of its own, or in a log without threads whenever it is called.
//!
//! The member of a group begins a segment with each term and behind each cut, and the group waits for
//! it. So a member has one prepared segment more than a single node.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::append::RESERVE_BYTES;
use crate::error::Failure;
use crate::ready::{Chores, Ready};
use crate::relief_state::Relief;
use crate::segment::{Segment, TEMPORARY_SUFFIX, spare_name};
use crate::segment_header::HEADER_BYTES;
use crate::shared::{Shared, State, WRITE_BYTES, wait};
use crate::storage::{StorageFile, is_shortage, write_zeros};
use crate::{Durability, Lsn};

/// Delay before the housekeeper retries to prepare a segment on a full disk, or to drop an old one.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Bytes zeroed between two checks whether the log is being closed.
const ZERO_BYTES: u64 = 4 << 20;
/// Size of the emergency reserve: enough for one small record per appending thread.
const RESERVE_SEGMENT_BYTES: u64 = 1 << 20;
/// Size of a segment that the first record of a process may wait for, if there is none to append
/// to. Made within milliseconds, and filled about when a segment of the usual size is ready.
const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// Number of prepared segments that a member keeps: one to grow into, one for the next term or cut.
const MEMBER_SPARES: usize = 2;

pub(crate) struct Housekeeper<'a> {
    shared: &'a Shared,
    chores: MutexGuard<'a, Chores>,
}

enum Chore {
    /// Make the emergency reserve, for records that can no longer be refused.
    Reserve,
    /// Make a segment of this size.
    Prepare {
        bytes: u64,
    },
    Retire,
    /// Free what old segments have left unused.
    Shorten,
}

/// Why old segments are not dropped.
enum Obstacle {
    /// The file still exists, and so does every acknowledged record: worth a retry.
    Kept(Failure),
    /// The content of the directory is unknown.
    Fatal(Failure),
}

impl<'a> Housekeeper<'a> {
    pub(crate) fn of(shared: &'a Shared) -> Self {
        Self { shared, chores: shared.chores.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Runs until the log is closed or fails.
    pub(crate) fn run(mut self) {
        while self.run_next(true) {}
    }

    /// Does what is due now. Returns the number of chores done.
    pub(crate) fn run_due(shared: &Shared) -> usize {
        let mut housekeeper = Housekeeper::of(shared);
        std::iter::from_fn(|| housekeeper.run_next(false).then_some(())).count()
    }

    /// Does the next chore. Returns `false` if there is none, or if it `waits`, none to come.
    fn run_next(&mut self, waits: bool) -> bool {
        self.shared.stopwatches.housekeeping.stop();
        self.shared.end_stall();
        let Some(chore) = self.next_chore(waits) else { return false };
        self.shared.stopwatches.housekeeping.start();
        self.run_chore(chore);
        true
    }

    fn run_chore(&mut self, chore: Chore) {
        match chore {
            Chore::Reserve => {
                let made = self.prepare(RESERVE_SEGMENT_BYTES.min(self.shared.options.segment_bytes));
                self.deliver(made, |state, ready| state.reserve = Some(ready));
            }
            Chore::Prepare { bytes } => {
                let made = self.prepare(bytes);
                let usual_bytes = self.shared.options.segment_bytes;
                self.deliver(made, |state, ready| {
                    state.ready.push_back(ready);
                    // After a small first segment, one of the usual size is wanted immediately.
                    let wanted = state.wanted_bytes.map(|wanted| wanted.max(usual_bytes));
                    state.wanted_bytes = wanted.filter(|wanted| *wanted > bytes);
                });
            }
            Chore::Shorten => {
                if let Err(failure) = self.shorten() {
                    self.shared.fail(failure);
                }
            }
            Chore::Retire => match self.retire() {
                Ok(()) => self.end_obstacle(),
                Err(Obstacle::Kept(failure)) => self.begin_obstacle(failure),
                Err(Obstacle::Fatal(failure)) => self.shared.fail(failure),
            },
        }
    }

    fn next_chore(&self, waits: bool) -> Option<Chore> {
        let shared = self.shared;
        let mut state = shared.lock();
        loop {
            if state.closing || state.failure.is_some() {
                return None;
            }
            let now = shared.options.clock.now();
            let is_time = |at: Option<Instant>| at.is_none_or(|at| at <= now);
            if state.retention_due && is_time(self.chores.retire_at) {
                state.retention_due = false;
                return Some(Chore::Retire);
            }
            if state.wanted_bytes.is_some_and(|bytes| state.ready.iter().any(|ready| ready.bytes >= bytes)) {
                // A dropped segment became available for reuse.
                state.wanted_bytes = None;
                self.end_shortage(state);
                state = shared.lock();
                continue;
            }
            state.calm_at = state.calm_at.filter(|at| *at > now);
            if !state.surplus.is_empty() && state.calm_at.is_none() {
                return Some(Chore::Shorten);
            }
            let chore = self.preparation(&state);
            let prepare_at = self.chores.prepare_at.filter(|_| chore.is_some());
            let retire_at = self.chores.retire_at.filter(|_| state.retention_due);
            if let Some(chore) = chore.filter(|_| is_time(prepare_at)) {
                return Some(chore);
            }
            if !waits {
                return None;
            }
            let next = [prepare_at, retire_at, state.calm_at].into_iter().flatten().min();
            state = if let Some(at) = next {
                let result = shared.wakers.housekeeping.wait_timeout(state, shared.options.clock.timeout(at));
                result.unwrap_or_else(PoisonError::into_inner).0
            } else {
                wait(&shared.wakers.housekeeping, state)
            };
        }
    }

    /// Returns what has to be prepared, if anything.
    fn preparation(&self, state: &State) -> Option<Chore> {
        let preallocates = self.shared.codec.preallocates();
        let usual_bytes = self.shared.options.segment_bytes;
        if let Some(bytes) = state.wanted_bytes.filter(|_| state.position.is_none() && state.ready.is_empty())
        {
            // The very first segment: an appender may be waiting for it.
            let least = if preallocates { FIRST_SEGMENT_BYTES.min(usual_bytes) } else { usual_bytes };
            return Some(Chore::Prepare { bytes: bytes.max(least) });
        }
        if state.reserve.is_none() && preallocates {
            return Some(Chore::Reserve);
        }
        let is_calm = state.calm_at.is_none() || state.ready.is_empty();
        let wanted = state.wanted_bytes.or_else(|| (is_calm && self.lacks_spare(state)).then_some(0));
        wanted.map(|bytes| Chore::Prepare { bytes: bytes.max(usual_bytes) })
    }

    /// Returns whether a member has too few segments prepared.
    fn lacks_spare(&self, state: &State) -> bool {
        let usual_bytes = self.shared.options.segment_bytes;
        let spares = state.ready.iter().filter(|ready| ready.bytes >= usual_bytes).count();
        self.shared.has_entries && spares < MEMBER_SPARES
    }

    /// Makes an empty segment file with its space allocated, so that a full disk is detected now.
    fn prepare(&mut self, bytes: u64) -> io::Result<Ready> {
        let storage = &self.shared.storage;
        self.shared.check_free_space(bytes)?;
        let name = spare_name(self.chores.next_spare);
        self.chores.next_spare += 1;
        let temporary = format!("{name}{TEMPORARY_SUFFIX}");
        let file = storage.create(&temporary)?;
        let made = self.fill(&*file, bytes).and_then(|()| storage.rename(&temporary, &name));
        if let Err(error) = made {
            // Best effort: a leftover is removed at the next open.
            let _ = storage.remove(&temporary);
            return Err(error);
        }
        Ok(Ready { name, file, bytes, recycled: false })
    }

    fn fill(&self, file: &dyn StorageFile, bytes: u64) -> io::Result<()> {
        if !self.shared.codec.preallocates() {
            return Ok(());
        }
        let reserved = file.allocate(bytes)?;
        // With `always`, reserved blocks must also be written once: the first write of a block
        // changes file system metadata, and a sync would wait for that too. In the other modes
        // syncs are few, and zeros would double the bytes written.
        let written_once =
            if reserved && self.shared.lock().durability != Durability::Always { bytes } else { 0 };
        let mut offset = written_once;
        while offset < bytes {
            if self.shared.lock().closing {
                return Err(io::Error::other("the log is being closed"));
            }
            let end = bytes.min(offset + ZERO_BYTES);
            self.shared.stopwatches.housekeeping.start();
            write_zeros(file, offset, end)?;
            offset = end;
        }
        self.shared.stopwatches.housekeeping.start();
        file.sync_data()
    }

    /// Hands over a prepared segment, or reports why it could not be made.
    fn deliver(&mut self, made: io::Result<Ready>, hand_over: impl FnOnce(&mut State, Ready)) {
        let shared = self.shared;
        let mut state = shared.lock();
        match made {
            Ok(ready) => {
                self.chores.prepare_at = None;
                if matches!(state.relief, Relief::Done { .. }) {
                    state.relief = Relief::Offered;
                }
                hand_over(&mut state, ready);
                self.end_shortage(state);
            }
            Err(_) if state.closing => {}
            Err(error) => {
                let failure = Failure::new("preparing the next segment", error);
                if is_shortage(&failure.error) {
                    self.chores.prepare_at = Some(shared.options.clock.now() + RETRY_DELAY);
                    if state.wanted_bytes.is_none() && !state.ready.is_empty() && state.reserve.is_some() {
                        // A member lacks the segment for its next term but one: nothing waits for it.
                        return;
                    }
                    let (may_help, is_new) = self.shared.seek_relief(&mut state);
                    if may_help {
                        drop(state);
                    } else {
                        self.begin_shortage(state, failure);
                    }
                    if is_new {
                        self.shared.announce();
                    }
                } else {
                    // A disk that cannot store zeros cannot be trusted with records.
                    drop(state);
                    self.shared.fail(failure);
                }
            }
        }
    }

    /// Refuses records until there is space.
    fn begin_shortage(&self, mut state: MutexGuard<'_, State>, failure: Failure) {
        let is_new = state.full.replace(failure).is_none();
        self.shared.update_refusing(&state);
        drop(state);
        self.shared.wakers.space.notify_all();
        if is_new {
            self.shared.announce();
        }
    }

    /// Accepts records again if they were refused for lack of space.
    fn end_shortage(&self, mut state: MutexGuard<'_, State>) {
        let was_full = state.full.take().is_some();
        self.shared.update_refusing(&state);
        let was_awaited = std::mem::take(&mut state.is_room_awaited);
        let is_roomy = self.shared.update_crowded(&state);
        drop(state);
        self.shared.wakers.space.notify_all();
        if was_full || was_awaited || is_roomy {
            self.shared.announce();
        }
    }

    /// Reports, unless already reported, that old segments could not be dropped, and schedules a
    /// retry.
    fn begin_obstacle(&mut self, failure: Failure) {
        self.chores.retire_at = Some(self.shared.options.clock.now() + RETRY_DELAY);
        let mut state = self.shared.lock();
        state.retention_due = true;
        let is_new = state.retention_failure.replace(failure).is_none();
        self.shared.retaining.store(true, Ordering::Release);
        drop(state);
        if is_new {
            self.shared.announce();
        }
    }

    fn end_obstacle(&mut self) {
        self.chores.retire_at = None;
        let mut state = self.shared.lock();
        let was_there = state.retention_failure.take().is_some();
        self.shared.retaining.store(false, Ordering::Release);
        drop(state);
        if was_there {
            self.shared.announce();
        }
    }

    /// Frees what old segments have left unused: otherwise many terms could fill the disk.
    fn shorten(&self) -> Result<(), Failure> {
        let surplus = std::mem::take(&mut self.shared.lock().surplus);
        let segments = surplus.iter().filter_map(|one| Some((one.segment.upgrade()?, one.end)));
        for (segment, end) in segments {
            self.shared.stopwatches.housekeeping.start();
            let failed = |error| {
                Failure::new(format!("shortening {}", self.shared.storage.path(&segment.name)), error)
            };
            // No record is written behind its end: at worst, beside a cut, zeros stay there.
            if segment.file.len().map_err(failed)? > end + WRITE_BYTES as u64 {
                segment.file.set_len(end).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Drops the oldest segments that release and retention allow to drop.
    fn retire(&mut self) -> Result<(), Obstacle> {
        loop {
            let (released, now_us) = {
                let state = self.shared.lock();
                (state.released, state.time_us)
            };
            let Some(segment) = self.retirable(released, now_us)? else {
                return Ok(());
            };
            self.dispose(segment)?;
        }
    }

    /// Returns the oldest segment if release and retention allow to drop it.
    fn retirable(&self, released: Lsn, now_us: u64) -> Result<Option<Arc<Segment>>, Obstacle> {
        let retention = self.shared.options.retention;
        // Copies the list: readers of the table must not wait for the storage.
        let segments: Vec<Arc<Segment>> = self.shared.table().iter().cloned().collect();
        let [first, second, ..] = segments.as_slice() else { return Ok(None) };
        if second.header.from() > released {
            return Ok(None);
        }
        if let Some(age) = retention.age
            && u128::from(now_us.saturating_sub(second.header.created_us)) < age.as_micros()
        {
            return Ok(None);
        }
        if let Some(bytes) = retention.bytes {
            let mut kept = 0;
            for segment in &segments[1..] {
                kept += segment.file.len().map_err(|error| self.kept("measuring", segment, error))?;
            }
            if kept < bytes {
                return Ok(None);
            }
        }
        Ok(Some(first.clone()))
    }

    /// Recycles the oldest segment's file if it has no readers and few spares exist; removes it
    /// otherwise. The table drops the segment only after this has succeeded.
    ///
    /// Syncs the directory each time: two removals that survive a crash out of order would leave a
    /// hole.
    fn dispose(&mut self, segment: Arc<Segment>) -> Result<(), Obstacle> {
        let storage = &self.shared.storage;
        let bytes = segment.file.len().map_err(|error| self.kept("measuring", &segment, error))?;
        let spare = self.is_of_use(&segment, bytes).then(|| spare_name(self.chores.next_spare));
        match &spare {
            Some(spare) => storage.rename(&segment.name, spare),
            None => storage.remove(&segment.name),
        }
        .map_err(|error| self.kept("dropping", &segment, error))?;
        storage.sync_dir().map_err(|error| {
            Obstacle::Fatal(Failure::new(format!("dropping {}", storage.path(&segment.name)), error))
        })?;
        let dropped = self.shared.table().pop_first();
        let is_ours = dropped.as_ref().is_some_and(|dropped| Arc::ptr_eq(dropped, &segment));
        // Only this thread drops segments.
        assert!(is_ours, "the oldest segment was {} and is no longer", segment.name);
        drop(dropped);
        let Some(spare) = spare else { return Ok(()) };
        self.chores.next_spare += 1;
        let Some(segment) = Arc::into_inner(segment) else {
            // A reader has opened it meanwhile. Best effort: a leftover is handled at the next
            // open.
            let _ = storage.remove(&spare);
            return Ok(());
        };
        let mut state = self.shared.lock();
        state.ready.push_back(Ready { name: spare, file: segment.file, bytes, recycled: true });
        let was_awaited = std::mem::take(&mut state.is_room_awaited);
        let is_roomy = self.shared.update_crowded(&state);
        drop(state);
        self.shared.wakers.space.notify_all();
        if was_awaited || is_roomy {
            self.shared.announce();
        }
        Ok(())
    }

    /// Returns whether a segment's file should become a spare: few spares exist, and it has no
    /// readers.
    fn is_of_use(&self, segment: &Arc<Segment>, bytes: u64) -> bool {
        /// References of the table and of the caller.
        const OWN_REFERENCES: usize = 2;
        let options = &self.shared.options;
        self.shared.codec.preallocates()
            && segment.format == options.format
            && bytes >= options.segment_bytes
            && Arc::strong_count(segment) == OWN_REFERENCES
            && self.shared.lock().ready.len() < options.recycle
    }

    fn kept(&self, what: &str, segment: &Segment, error: io::Error) -> Obstacle {
        Obstacle::Kept(Failure::new(format!("{what} {}", self.shared.storage.path(&segment.name)), error))
    }
}

const _: () = assert!(crate::Options::SEGMENT_BYTES_MIN > HEADER_BYTES as u64 + RESERVE_BYTES);
