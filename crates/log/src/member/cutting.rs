//! Cutting: a group takes entries back that it has not committed, and replaces a log by a snapshot.
//!
//! A cut itself erases nothing. The next entry begins a segment that names the last record before
//! it; then the older segment is shortened to that record:
//!
//! ```text
//!  segment: 1 … 60 │ 61 … 80 taken back        before the next entry, a crash may bring them back:
//!                  └► next segment: follows 60  the group then takes them back once more
//! ```
//!
//! `END` is lowered first, or the next start would miss the records; then the segments that lie
//! behind the cut are removed, the newest first, so that a crash leaves no hole. If nothing is left,
//! an empty segment says where the log begins.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::Lsn;
use crate::append::RESERVE_BYTES;
use crate::buffer::Cut;
use crate::commit::Committer;
use crate::end_file;
use crate::entry::EntryEnd;
use crate::error::Failure;
use crate::segment_header::SegmentHeader;
use crate::shared::{Position, State};

use super::recent::Recent;
use super::{EntryError, Member};

impl Member {
    /// Removes the entries behind `index`. O(bytes of a segment).
    ///
    /// # Errors
    /// The entry before the cut is no longer kept or cannot be read, or a removed entry is
    /// committed: nothing has changed. Or the storage failed, which ends the log.
    ///
    /// # Panics
    /// If this node accepts records of appenders, or if some are not written.
    pub fn cut_behind(&self, index: u64) -> Result<(), EntryError> {
        let newest = self.last_entry().id.index;
        if index >= newest {
            return Ok(());
        }
        self.cut_from(index + 1)
    }

    /// Removes the newest entry if only a part of it was written before the process ended.
    pub(crate) fn cut_unfinished_entry(&self) -> Result<(), Failure> {
        let (newest, written) = {
            let committer = self.desk();
            (committer.entry, committer.written)
        };
        if newest.last <= written {
            return Ok(());
        }
        self.cut_from(newest.id.index).map_err(|error| match error {
            EntryError::Storage(failure) => failure,
            error => Failure::new(
                format!("finding where the unfinished entry {} begins", newest.id),
                std::io::Error::other(error.to_string()),
            ),
        })
    }

    /// Removes the entry `index`, which has been opened, and those behind it.
    fn cut_from(&self, index: u64) -> Result<(), EntryError> {
        let reader = self.reader_at(index)?;
        let end = reader.before;
        let _no_sync = self.shared.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut committer = self.desk();
        {
            let mut state = self.shared.lock();
            Self::assert_idle(&committer, &state);
            let committed = Lsn(self.shared.committed.load(Ordering::Acquire));
            if committed > end.last {
                return Err(EntryError::Committed { end: end.last, committed });
            }
            // The segment that has the cut is synced when the next one begins; one that is removed
            // is of no use for that.
            let stays = reader.segment.header.first_lsn <= end.last;
            committer.segment = stays.then(|| reader.segment.clone());
            committer.offset = reader.offset;
            committer.is_cut = true;
            self.set_end(&mut committer, &mut state, end);
        }
        let oldest = self.shared.table().from();
        // The oldest segment alone may know where the log begins.
        let begins_there = oldest == Some(end.last.next()) && end.last > Lsn::ZERO;
        self.remove_behind(end.last, usize::from(begins_there))?;
        if begins_there {
            self.begin_segment(&mut committer, end)?;
        }
        drop(committer);
        // Callers may wait for what is gone.
        self.shared.announce();
        Ok(())
    }

    /// Replaces the whole log by its beginning behind a snapshot that covers everything up to the
    /// entry `end`, is durable, and is in the directory. It may have a part of the entry behind that.
    ///
    /// If this is interrupted, the caller [removes the log](crate::Log::remove) before it is opened, and
    /// repeats this.
    ///
    /// # Errors
    /// The storage failed, which ends the log, or there is no space for a segment.
    ///
    /// # Panics
    /// If the snapshot lacks what is committed, if this node accepts records of appenders, or if
    /// some are not written.
    pub fn restart_behind(&self, end: EntryEnd) -> Result<(), EntryError> {
        let _no_sync = self.shared.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut committer = self.desk();
        {
            let mut state = self.shared.lock();
            Self::assert_idle(&committer, &state);
            let committed = self.shared.committed.swap(end.last.0, Ordering::AcqRel);
            // Of a log that was removed, the end is that of the snapshot.
            assert!(
                committed <= end.last.0 || committer.entry.id.index == 0,
                "a snapshot at {} replaces {committed}",
                end.last
            );
            committer.segment = None;
            committer.offset = 0;
            committer.is_cut = false;
            committer.durable = end.last;
            self.set_end(&mut committer, &mut state, end);
            // The entries up to the snapshot's may be here, but not those just before it.
            *self.recent() = Recent::default();
        }
        self.remove_behind(Lsn::ZERO, 0)?;
        self.begin_segment(&mut committer, end)?;
        drop(committer);
        self.shared.announce();
        Ok(())
    }

    /// Makes `end` the end of the log in memory.
    fn set_end(&self, committer: &mut Committer, state: &mut State, end: EntryEnd) {
        let last = end.last;
        committer.entry = end;
        committer.written = last;
        committer.durable = committer.durable.min(last);
        committer.marked = committer.marked.min(last);
        state.next = last.next();
        state.position = None;
        state.sealed = state.sealed.min(last);
        let shared = &self.shared;
        shared.gaps_mut().cut_behind(last);
        shared.appended.store(last.0, Ordering::Release);
        shared.written.store(last.0, Ordering::Release);
        shared.durable.store(committer.durable.0, Ordering::Release);
        // Readers look at this before they use what they know of segments.
        shared.cuts.fetch_add(1, Ordering::AcqRel);
        self.recent().cut_behind(end.id.index);
        let _ = shared.update_crowded(state);
    }

    /// Lowers `END`, and removes the segments that begin behind record `last`, but for the oldest
    /// `kept`.
    fn remove_behind(&self, last: Lsn, kept: usize) -> Result<(), EntryError> {
        let removed = self.try_remove_behind(last, kept);
        if let Err(failure) = &removed {
            // What the directory holds is unknown.
            self.shared.fail(failure.clone());
        }
        Ok(removed?)
    }

    fn try_remove_behind(&self, last: Lsn, kept: usize) -> Result<(), Failure> {
        let storage = &*self.shared.storage;
        let durable = Lsn(self.shared.durable.load(Ordering::Acquire));
        self.mark
            .lower(durable)
            .map_err(|error| Failure::new(format!("writing {}", end_file::path(storage)), error))?;
        loop {
            let newest = Some(self.shared.table()).filter(|table| table.len() > kept);
            let newest = newest.and_then(|table| table.newest());
            let Some(segment) = newest.filter(|segment| segment.header.first_lsn > last) else {
                return Ok(());
            };
            storage
                .remove(&segment.name)
                .and_then(|()| storage.sync_dir())
                .map_err(|error| Failure::new(format!("removing {}", storage.path(&segment.name)), error))?;
            let _ = self.shared.table().pop_last();
        }
    }

    /// Begins the log's only segment behind `end`.
    fn begin_segment(&self, committer: &mut Committer, end: EntryEnd) -> Result<(), EntryError> {
        let shared = &*self.shared;
        let mut state = shared.lock();
        let ready = loop {
            if let Some(ready) = state.ready.pop_front() {
                break ready;
            }
            let failure = [&state.failure, &state.full].into_iter().flatten().next();
            if let Some(failure) = failure {
                return Err(failure.clone().into());
            }
            shared.want_segment(&mut state, 0);
            state = shared.wait_for_space(state);
        };
        let header = SegmentHeader {
            first_lsn: state.next,
            follows: end.last,
            salt: state.random.u32(..),
            created_us: state.time_us,
            recycled: ready.recycled,
            entry: Some(end),
        };
        state.position = Some(Position {
            offset: shared.codec.encode_header(&header).len() as u64,
            capacity: ready.bytes - RESERVE_BYTES,
            salt: header.salt,
            created_us: header.created_us,
        });
        drop(state);
        committer.activate(Cut { at: 0, ready, header }).map_err(|failure| {
            shared.fail(failure.clone());
            EntryError::Storage(failure)
        })
    }
}
