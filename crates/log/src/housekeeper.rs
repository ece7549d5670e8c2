//! The second thread: prepares segments ahead of need and drops those that nobody needs any more.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use crate::append::RESERVE_BYTES;
use crate::error::Failure;
use crate::segment::{HEADER_BYTES, Segment, TEMPORARY_SUFFIX, spare_name};
use crate::shared::{Ready, Shared, State, wait};
use crate::storage::{StorageFile, is_shortage, write_zeros};
use crate::{Durability, Lsn};

/// How often a full disk is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Between two looks at whether the log is being closed.
const ZERO_BYTES: u64 = 4 << 20;
/// Size of the reserve: as many records as there are threads that append at once, unless they are large.
const RESERVE_SEGMENT_BYTES: u64 = 1 << 20;

pub(crate) struct Housekeeper {
    shared: Arc<Shared>,
    next_spare: u64,
}

enum Chore {
    Exit,
    /// Make the segment that records take which cannot be refused any more.
    Reserve,
    /// Make an ordinary segment, of at least this size.
    Prepare {
        bytes: u64,
    },
    Retire,
}

impl Housekeeper {
    pub(crate) fn new(shared: Arc<Shared>, next_spare: u64) -> Self {
        Self { shared, next_spare }
    }

    /// Works until the log is closed or fails.
    pub(crate) fn run(mut self) {
        loop {
            match self.next_chore() {
                Chore::Exit => return,
                Chore::Reserve => {
                    let made = self.prepare(RESERVE_SEGMENT_BYTES.min(self.shared.options.segment_bytes));
                    self.deliver(made, |state, ready| state.reserve = Some(ready));
                }
                Chore::Prepare { bytes } => {
                    let bytes = bytes.max(self.shared.options.segment_bytes);
                    let made = self.prepare(bytes);
                    self.deliver(made, |state, ready| {
                        state.ready.push_back(ready);
                        state.wanted_bytes = state.wanted_bytes.filter(|wanted| *wanted > bytes);
                    });
                }
                Chore::Retire => {
                    if let Err(failure) = self.retire() {
                        self.shared.fail(failure);
                    }
                }
            }
        }
    }

    fn next_chore(&self) -> Chore {
        let shared = &self.shared;
        let mut state = shared.lock();
        loop {
            if state.closing || state.failure.is_some() {
                return Chore::Exit;
            }
            if state.retention_due {
                state.retention_due = false;
                return Chore::Retire;
            }
            if state.wanted_bytes.is_some_and(|bytes| state.ready.iter().any(|ready| ready.bytes >= bytes)) {
                // A segment that was dropped has come back for use.
                state.wanted_bytes = None;
                self.end_shortage(state);
                state = shared.lock();
                continue;
            }
            let Some(chore) = self.preparation(&state) else {
                state = wait(&shared.chores, state);
                continue;
            };
            if state.full.is_none() {
                return chore;
            }
            let waited =
                shared.chores.wait_timeout(state, RETRY_DELAY).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() && !state.closing {
                return chore;
            }
        }
    }

    /// What has to be prepared, if anything.
    fn preparation(&self, state: &State) -> Option<Chore> {
        if let Some(bytes) = state.wanted_bytes.filter(|_| state.position.is_none()) {
            // The first segment of all: somebody may be waiting for it.
            return Some(Chore::Prepare { bytes });
        }
        if state.reserve.is_none() && self.shared.codec.preallocates() {
            return Some(Chore::Reserve);
        }
        state.wanted_bytes.map(|bytes| Chore::Prepare { bytes })
    }

    /// Makes an empty segment file whose space is its own, so that a full disk shows now.
    fn prepare(&mut self, bytes: u64) -> io::Result<Ready> {
        let storage = self.shared.storage.clone();
        let name = spare_name(self.next_spare);
        self.next_spare += 1;
        let temporary = format!("{name}{TEMPORARY_SUFFIX}");
        let file = storage.create(&temporary)?;
        let made = self.fill(&*file, bytes).and_then(|()| storage.rename(&temporary, &name));
        if let Err(error) = made {
            // Best effort: what stays is removed at the next open.
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
        // Where every answer waits for a sync, reserved blocks must also have been written once: the file system would
        // have to note the first write of each, and a sync would wait for that note too. Elsewhere syncs are few, and
        // zeros would double what is written.
        let written_once =
            if reserved && self.shared.lock().durability != Durability::Always { bytes } else { 0 };
        let mut offset = written_once;
        while offset < bytes {
            if self.shared.lock().closing {
                return Err(io::Error::other("the log is being closed"));
            }
            let end = bytes.min(offset + ZERO_BYTES);
            write_zeros(file, offset, end)?;
            offset = end;
        }
        file.sync_data()
    }

    /// Hands over what was prepared, or tells everybody why it could not be.
    fn deliver(&self, made: io::Result<Ready>, hand_over: impl FnOnce(&mut State, Ready)) {
        let mut state = self.shared.lock();
        match made {
            Ok(ready) => {
                hand_over(&mut state, ready);
                self.end_shortage(state);
            }
            Err(_) if state.closing => {}
            Err(error) => {
                let failure = Failure::new("preparing the next segment", error);
                if is_shortage(&failure.error) {
                    self.begin_shortage(state, failure);
                } else {
                    // A disk that cannot take zeros is not one to trust with records.
                    drop(state);
                    self.shared.fail(failure);
                }
            }
        }
    }

    /// Refuses records until there is space.
    fn begin_shortage(&self, mut state: MutexGuard<'_, State>, failure: Failure) {
        let is_new = state.full.replace(failure).is_none();
        self.set_refusing(&state, true);
        drop(state);
        self.shared.space.notify_all();
        if is_new {
            self.shared.announce();
        }
    }

    /// Accepts records again if it was for want of space that they were refused.
    fn end_shortage(&self, mut state: MutexGuard<'_, State>) {
        let was_full = state.full.take().is_some();
        self.set_refusing(&state, false);
        drop(state);
        self.shared.space.notify_all();
        if was_full {
            self.shared.announce();
        }
    }

    fn set_refusing(&self, state: &State, refusing: bool) {
        if state.failure.is_none() && !state.closing {
            self.shared.refusing.store(refusing, Ordering::Release);
        }
    }

    /// Drops the oldest segments as far as release and retention allow.
    fn retire(&mut self) -> Result<(), Failure> {
        loop {
            let (released, now_us) = {
                let state = self.shared.lock();
                (state.released, state.time_us)
            };
            let Some(segment) = self.take_retired(released, now_us)? else {
                return Ok(());
            };
            let name = segment.name.clone();
            self.dispose(segment).map_err(|error| {
                Failure::new(format!("dropping {}", self.shared.storage.path(&name)), error)
            })?;
        }
    }

    fn take_retired(&self, released: Lsn, now_us: u64) -> Result<Option<Arc<Segment>>, Failure> {
        let retention = self.shared.options.retention;
        let mut table = self.shared.table();
        let Some(second) = table.iter().nth(1).cloned() else {
            return Ok(None);
        };
        if second.header.first_lsn > released {
            return Ok(None);
        }
        if let Some(age) = retention.age
            && u128::from(now_us.saturating_sub(second.header.created_us)) < age.as_micros()
        {
            return Ok(None);
        }
        if let Some(bytes) = retention.bytes {
            let mut kept = 0;
            for segment in table.iter().skip(1) {
                let failed = |error| Failure::new(format!("measuring {}", segment.name), error);
                kept += segment.file.len().map_err(failed)?;
            }
            if kept < bytes {
                return Ok(None);
            }
        }
        Ok(table.pop_first())
    }

    /// Keeps the file for another use if nobody reads it and few are kept already; removes it otherwise.
    /// The directory is synced each time: if two removals could survive a crash out of order, the log had a hole.
    fn dispose(&mut self, segment: Arc<Segment>) -> io::Result<()> {
        let storage = self.shared.storage.clone();
        let name = segment.name.clone();
        let recycles = self.shared.codec.preallocates() && segment.format == self.shared.options.format;
        let wanted = recycles && self.shared.lock().ready.len() < self.shared.options.recycle;
        let Some(segment) = wanted.then_some(segment).and_then(Arc::into_inner) else {
            storage.remove(&name)?;
            return storage.sync_dir();
        };
        let bytes = segment.file.len()?;
        if bytes < self.shared.options.segment_bytes {
            storage.remove(&name)?;
            return storage.sync_dir();
        }
        let spare = spare_name(self.next_spare);
        self.next_spare += 1;
        storage.rename(&name, &spare)?;
        storage.sync_dir()?;
        let mut state = self.shared.lock();
        state.ready.push_back(Ready { name: spare, file: segment.file, bytes, recycled: true });
        drop(state);
        self.shared.space.notify_all();
        Ok(())
    }
}

const _: () = assert!(crate::Options::SEGMENT_BYTES_MIN > HEADER_BYTES as u64 + RESERVE_BYTES);
