//! The log of a group's member. The group numbers its entries and decides what is committed; this
//! module writes them, cuts off those that the group took back, and reads them for other members.
//!
//! ```text
//!   appenders ─► buffer ─► take ─► the group gives it an index ─► write_taken ─► sync ─► commit
//!                    (the leader)                                     ▲
//!                        entries of the leader, and of the group ─► append (a follower, or while paused)
//! ```
//!
//! A record that is appended and not yet written is only in memory, and no client knows of it.
//! [`Member::discard`] drops such records when the node loses the lead.

mod cutting;
mod reader;
mod recent;
mod records;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Lsn;
use crate::commit::{Committer, sync_entries};
use crate::entry::{EntryEnd, EntryId, EntryMark};
use crate::error::{AppendError, Failure};
use crate::gap::{may_be_before, next_behind};
use crate::high_water::{HighWater, HighWaterMark};
use crate::housekeeper::Housekeeper;
use crate::shared::{Parked, Shared, State};

pub use reader::EntryError;
use reader::EntryReader;
use recent::Recent;
pub use records::{EntryRecords, InvalidEntry};

/// How a group drives the log of one of its members. Made by
/// [`Log::open_member`](crate::Log::open_member).
///
/// Two threads use it at a time, at most: one takes, writes, appends and cuts, in the order that
/// the group decides, and one syncs. Entries are read by any thread.
pub struct Member {
    shared: Arc<Shared>,
    desk: Arc<Mutex<Committer>>,
    mark: Arc<HighWaterMark>,
    recent: Mutex<Recent>,
    /// A reader that stands behind the entries that it read last.
    reader: Mutex<Option<EntryReader>>,
}

impl Member {
    pub(crate) fn new(shared: Arc<Shared>, desk: Arc<Mutex<Committer>>, mark: Arc<HighWaterMark>) -> Self {
        Self { shared, desk, mark, recent: Mutex::default(), reader: Mutex::default() }
    }

    /// Returns the newest entry in the log; its index is 0 if there is none.
    pub fn last_entry(&self) -> EntryEnd {
        self.desk().entry
    }

    /// Returns the LSN at which a term begins whose first entry follows the newest one: the same on
    /// every member. No member has given a record this LSN or a later one.
    ///
    /// `None` if the LSNs are exhausted.
    pub fn next_term_lsn(&self) -> Option<Lsn> {
        next_behind(self.desk().entry.last)
    }

    /// Returns the LSN at which a term begins behind record `newest`. For a caller that knows of
    /// entries that are not written yet; otherwise as [`next_term_lsn`](Self::next_term_lsn).
    pub fn term_lsn_behind(newest: Lsn) -> Option<Lsn> {
        next_behind(newest)
    }

    /// Returns the LSN of the next record: behind every LSN that a single node, whose log this was, may
    /// have given out.
    pub fn next_lsn(&self) -> Lsn {
        self.shared.lock().next
    }

    /// Sets what an appender calls when records can be taken again after a
    /// [`try_take`](Self::try_take) that found none: once for any number of records. It must return
    /// quickly, because it runs on the appender's thread.
    ///
    /// # Panics
    /// If it is set already.
    pub fn set_waker(&self, wake: Box<dyn Fn() + Send + Sync>) {
        assert!(self.shared.waker.set(wake).is_ok(), "the waker of a member is set twice");
    }

    /// Accepts records of appenders: this node leads.
    pub fn lead(&self) {
        self.set_follows(false);
    }

    /// Refuses records of appenders. Those that were accepted are still [taken](Self::take).
    pub fn pause(&self) {
        self.set_follows(true);
    }

    fn set_follows(&self, follows: bool) {
        let mut state = self.shared.lock();
        state.follows = follows;
        self.shared.update_refusing(&state);
        drop(state);
        self.shared.wakers.commit.notify_all();
        self.shared.announce();
    }

    /// Refuses records of appenders, and drops those that are not written yet: this node has lost
    /// the lead. Returns the first and the last of those, if there are any: what executed them is
    /// ahead of the log.
    pub fn discard(&self) -> Option<(Lsn, Lsn)> {
        let mut committer = self.desk();
        let mut state = self.shared.lock();
        state.follows = true;
        self.shared.update_refusing(&state);
        let first =
            [committer.buffer.first, state.buffer.first].into_iter().find(|first| *first != Lsn::ZERO);
        let dropped = first.map(|first| (first, state.next.previous()));
        if dropped.is_some() {
            self.drop_buffers(&mut committer, &mut state);
        }
        drop(state);
        drop(committer);
        self.shared.announce();
        dropped
    }

    /// Takes the log back to what is written. The next record begins a segment, because the space
    /// of the dropped records has been given out.
    fn drop_buffers(&self, committer: &mut Committer, state: &mut State) {
        let written = committer.written;
        for buffer in [&mut state.buffer, &mut committer.buffer] {
            for cut in buffer.cuts.drain(..).rev() {
                state.ready.push_front(cut.ready);
            }
            buffer.clear();
        }
        state.position = None;
        state.next = written.next();
        self.shared.appended.store(written.0, Ordering::Release);
        self.shared.gaps_mut().cut_behind(written);
        // Appenders that wait for space are refused when they look.
        let _ = self.shared.update_crowded(state);
        self.shared.wakers.space.notify_all();
    }

    /// Takes what appenders have appended since the last call, as the records of the next entry.
    /// Waits at most `timeout` for the first of them. The caller then has the group number it, and
    /// calls [`write_taken`](Self::write_taken).
    ///
    /// # Panics
    /// If the records taken before are not written or discarded.
    pub fn take(&self, timeout: Duration) -> Option<EntryRecords> {
        let until = self.shared.options.clock.now() + timeout;
        loop {
            let mut committer = self.desk();
            let mut state = self.shared.lock();
            if state.failure.is_some() || state.closing {
                return None;
            }
            if state.buffer.has_records() {
                return Some(Self::take_batch(&mut committer, state));
            }
            let rest = self.shared.options.clock.timeout(until);
            if rest.is_zero() {
                return None;
            }
            state.parked = Parked::Idle;
            drop(committer);
            let waited = self.shared.wakers.commit.wait_timeout(state, rest);
            waited.unwrap_or_else(PoisonError::into_inner).0.parked = Parked::Working;
        }
    }

    /// Like [`take`](Self::take), but does not wait: if there is no record, the next one calls the
    /// [waker](Self::set_waker).
    ///
    /// # Panics
    /// If the records taken before are not written or discarded.
    pub fn try_take(&self) -> Option<EntryRecords> {
        let mut committer = self.desk();
        let mut state = self.shared.lock();
        if state.failure.is_some() || state.closing {
            return None;
        }
        if state.buffer.has_records() {
            return Some(Self::take_batch(&mut committer, state));
        }
        state.parked = Parked::Idle;
        None
    }

    fn take_batch(committer: &mut Committer, mut state: MutexGuard<'_, State>) -> EntryRecords {
        state.parked = Parked::Working;
        committer.take_batch(&mut state);
        drop(state);
        let buffer = &committer.buffer;
        let frames = &buffer.bytes[buffer.marker_bytes..buffer.sealed];
        EntryRecords::of_frames(frames, buffer.first, buffer.last)
    }

    /// Writes the records that were [taken](Self::take) as the entry `id`. They survive the end of
    /// this process when this returns, and a power failure after a [`sync`](Self::sync).
    ///
    /// # Errors
    /// The storage failed, which ends the log; or the entry does not follow the newest one.
    ///
    /// # Panics
    /// If nothing was taken.
    pub fn write_taken(&self, id: EntryId, records: &EntryRecords) -> Result<(), AppendError> {
        let committer = self.desk();
        let (first, last) = (committer.buffer.first, committer.buffer.last);
        assert!(
            first == records.first_lsn() && last == records.last_lsn(),
            "entry {id} is written as {records:?}, and the records {first} to {last} were taken"
        );
        let mark = self.mark_of(&committer, id, records)?;
        self.write(committer, mark, records)
    }

    /// Appends an entry of the leader, or one that the group itself has made, and writes it.
    ///
    /// The first record of a term lies behind a gap, at [`next_term_lsn`](Self::next_term_lsn).
    /// Blocks on the disk, and while the next segment is made.
    ///
    /// # Errors
    /// The entry does not follow the newest one, or there is no space for it: nothing was appended.
    /// Or the storage failed, which ends the log.
    ///
    /// # Panics
    /// If this node accepts records of appenders, or has some that are not written.
    pub fn append(&self, id: EntryId, records: &EntryRecords) -> Result<(), AppendError> {
        let mut committer = self.desk();
        let mark = self.mark_of(&committer, id, records)?;
        let mut state = self.shared.lock();
        Self::assert_idle(&committer, &state);
        state.check()?;
        let (written, first) = (committer.written, records.first_lsn());
        if first != state.next {
            if first < state.next || !may_be_before(first) {
                return Err(AppendError::OutOfOrder { entry: id, newest: committer.entry });
            }
            self.shared.gaps_mut().add(written, first);
            state.next = first;
            state.position = None;
        }
        match self.push(state, records) {
            Ok(mut state) => committer.take_batch(&mut state),
            Err(error) => {
                let mut state = self.shared.lock();
                self.drop_buffers(&mut committer, &mut state);
                return Err(error);
            }
        }
        self.write(committer, mark, records)
    }

    /// Copies the records to the buffer.
    fn push<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        records: &EntryRecords,
    ) -> Result<MutexGuard<'a, State>, AppendError> {
        for record in records.iter() {
            let lsn;
            (state, lsn) =
                self.shared.append_locked::<false>(state, false, record.time_us, record.kind, |bytes| {
                    bytes.extend_from_slice(record.payload);
                })?;
            assert!(lsn == record.lsn, "record {} of an entry is appended as record {lsn}", record.lsn);
        }
        Ok(state)
    }

    /// Returns the mark of an entry, if it is the next one.
    fn mark_of(
        &self,
        committer: &Committer,
        id: EntryId,
        records: &EntryRecords,
    ) -> Result<EntryMark, AppendError> {
        let committed = Lsn(self.shared.committed.load(Ordering::Acquire));
        let mark = EntryMark { id, last: records.last_lsn(), committed };
        if mark.follows(committer.entry) {
            Ok(mark)
        } else {
            Err(AppendError::OutOfOrder { entry: id, newest: committer.entry })
        }
    }

    fn write(
        &self,
        mut committer: MutexGuard<'_, Committer>,
        mark: EntryMark,
        records: &EntryRecords,
    ) -> Result<(), AppendError> {
        committer.opening = Some(mark);
        if let Err(failure) = committer.hand_over() {
            drop(committer);
            self.shared.fail(failure.clone());
            return Err(AppendError::Failed(failure));
        }
        self.shared.end_stall();
        // Before the next entry can be written, so that they are in order.
        self.recent().push(mark.id, records);
        Ok(())
    }

    /// Makes everything that is written durable. Returns the newest durable record.
    ///
    /// # Errors
    /// The storage failed, which ends the log.
    pub fn sync(&self) -> Result<Lsn, Failure> {
        sync_entries(&self.shared, &self.desk)
    }

    /// Notes that the group has committed everything up to record `lsn`; never goes back.
    ///
    /// # Panics
    /// If the record is not written here: what is committed is in the log.
    pub fn commit(&self, lsn: Lsn) {
        let written = Lsn(self.shared.written.load(Ordering::Acquire));
        assert!(lsn <= written, "record {lsn} is committed, and the log is written up to {written}");
        if self.shared.committed.fetch_max(lsn.0, Ordering::AcqRel) < lsn.0 {
            self.shared.announce();
        }
    }

    /// Returns the last record that this node does not need, because the snapshots that it keeps cover
    /// it; 0 if there is none, and until the node has [recovered](crate::Log::retain) from one or taken
    /// one. One load.
    pub fn covered(&self) -> Lsn {
        Lsn(self.shared.covered.load(Ordering::Acquire))
    }

    /// Returns how many snapshots this process has completed. One load.
    pub fn snapshots_taken(&self) -> u64 {
        self.shared.snapshots_taken.load(Ordering::Acquire)
    }

    /// Allows the log to drop records before `before`, but none that this node [needs](Self::covered),
    /// or that the retention options keep. For a group that knows what it needs to know of them by other
    /// means.
    pub fn release(&self, before: Lsn) {
        self.shared.release(before.min(self.covered().next()));
    }

    /// Returns the bytes of the segments that have records behind `lsn`.
    ///
    /// # Errors
    /// A segment cannot be measured.
    pub fn bytes_behind(&self, lsn: Lsn) -> std::io::Result<u64> {
        let segments: Vec<_> = {
            let table = self.shared.table();
            let after = table.iter().skip(1).map(|next| next.header.follows).chain([Lsn(u64::MAX)]);
            table
                .iter()
                .zip(after)
                .filter(|(_, last)| *last > lsn)
                .map(|(segment, _)| segment.clone())
                .collect()
        };
        segments.iter().map(|segment| segment.file.len()).sum()
    }

    /// Does what is due of the work that the threads of other logs do: prepares segments, drops old
    /// ones, and notes how far the log is durable. For [`Log::open_member_without_threads`].
    ///
    /// [`Log::open_member_without_threads`]: crate::Log::open_member_without_threads
    pub fn keep_house(&self) {
        Housekeeper::run_due(&self.shared);
        HighWater::new(self.shared.clone(), self.mark.clone()).note_if_due();
    }

    /// Asserts that no record of an appender is under way.
    fn assert_idle(committer: &Committer, state: &State) {
        let has_records = state.buffer.has_records() || committer.buffer.has_records();
        assert!(
            state.follows && !has_records,
            "the group changes the log at {} while appenders may append: accepting {}, unwritten {has_records}",
            committer.entry.id,
            !state.follows
        );
    }

    fn desk(&self) -> MutexGuard<'_, Committer> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("log", &self.shared).finish_non_exhaustive()
    }
}
