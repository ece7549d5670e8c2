//! Group commit: batches are written and synced one after the other, and all waiters of a batch
//! share one sync. The commit thread does this on time; a caller that needs a batch earlier may do
//! it itself ([`commit_here`]).
//!
//! ```text
//!        append (empty → not empty)            deadline, size or request
//!  Idle ───────────────────────────► Timed ─────────────────────────────► Working ──► write, sync, announce
//!   ▲                                  ▲                                     │
//!   └── nothing left after a while ────┴──────────────── nothing urgent ─────┘
//! ```
//!
//! While one batch is synced, the next one collects. With `interval` and `off` the syncing thread
//! releases the committer, and the relief thread writes in its place ([`run_relief`]): a slow sync
//! does not increase what a process crash loses. With `always` no reply is sent before its sync, so
//! the next batch can wait. An idle log sleeps without a timer.

mod successor;

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidemark_fault::{Fault, is_planted};

use crate::buffer::Buffer;
use crate::entry::{EntryEnd, EntryMark};
use crate::error::Failure;
use crate::format::Marker;
use crate::segment::Segment;
use crate::shared::{Parked, Shared, State, WRITE_BYTES, wait};
use crate::storage::write_all;
use crate::{Durability, Lsn};

/// Limit on how long records stay unwritten, and so on what a process crash loses.
const WRITE_DELAY: Duration = Duration::from_millis(10);

/// Idle time after which a marker records that the last records were durable: damage to them then
/// is no torn tail. Long enough to spare an occasional writer a second sync each time.
const MARK_DELAY: Duration = Duration::from_millis(100);

/// Syncs faster than this are not worth gathering for: the wait would be close to the timer
/// resolution.
const GATHER_FROM: Duration = Duration::from_micros(400);
/// Fraction of the last sync's time that the next sync waits at most.
const GATHER_DIVISOR: u32 = 4;

pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) segment: Option<Arc<Segment>>,
    /// Offset of the next write in `segment`.
    pub(crate) offset: u64,
    /// Behind `offset` the segment has records that a group has taken back.
    pub(crate) is_cut: bool,
    /// Expected `offset` once `buffer` is written; `None` before the first segment.
    end: Option<u64>,
    pub(crate) buffer: Buffer,
    /// The entry that `buffer` holds, while it is written; `None` in a log without entries.
    pub(crate) opening: Option<EntryMark>,
    /// The newest entry that was written.
    pub(crate) entry: EntryEnd,
    pub(crate) written: Lsn,
    pub(crate) durable: Lsn,
    /// Durable LSN in the newest marker on disk.
    pub(crate) marked: Lsn,
    /// Latest time to write the buffered records.
    write_at: Option<Instant>,
    /// Latest time to sync the written records.
    sync_at: Option<Instant>,
    /// Time to write a marker, if nothing else is written before.
    mark_at: Option<Instant>,
    /// How long to stay `Timed` with nothing to do.
    linger_until: Option<Instant>,
    gathering: Option<Gathering>,
    /// Duration of the last sync.
    last_sync: Duration,
    /// Waiting appenders must be notified that there is space.
    has_made_room: bool,
}

/// Delay after a slow sync: the next sync waits briefly for the callers that the last one released.
/// Without it, callers in a closed loop split into two groups that alternate, each with its own
/// sync.
struct Gathering {
    /// Records released by the last sync plus records already waiting: as many may arrive together.
    expected: u64,
    /// Latest start of the next sync.
    until: Instant,
}

/// Runs the commit thread until the log is closed or fails.
pub(crate) fn run(shared: &Shared, desk: &Mutex<Committer>) {
    work(shared, desk);
    // The relief thread ends after this one.
    shared.wakers.relief.notify_all();
}

/// Commits until the log is closed or fails. The thread holds the committer while it works.
fn work(shared: &Shared, desk: &Mutex<Committer>) {
    while let Ok(mut committer) = desk.lock() {
        let mut state = shared.lock();
        if state.failure.is_some() || state.closed {
            return;
        }
        if let Some(action) = committer.due(&mut state) {
            state.parked = Parked::Working;
            let Action::Commit { sync } = action else { return };
            committer.take_batch(&mut state);
            if let Err(failure) = commit(shared, desk, committer, state, sync) {
                shared.fail(failure);
                return;
            }
            continue;
        }
        let (deadline, parked) = committer.deadline(&state);
        state.parked = parked;
        // While this thread sleeps other threads may commit. Lock order: the committer before the
        // state.
        drop(committer);
        let mut state = if let Some(deadline) = deadline {
            let timeout = shared.options.clock.timeout(deadline);
            let result = shared.wakers.commit.wait_timeout(state, timeout);
            result.unwrap_or_else(PoisonError::into_inner).0
        } else {
            wait(&shared.wakers.commit, state)
        };
        state.parked = Parked::Working;
    }
    // A thread that panicked with the committer has left a batch half written.
    shared.fail(broken("another thread panicked while it wrote"));
}

/// Runs the relief thread: writes while another thread syncs, until the log is closed or fails.
pub(crate) fn run_relief(shared: &Shared, desk: &Mutex<Committer>) {
    // The panic that poisons the lock also fails the log.
    while let Ok(mut committer) = desk.lock() {
        let mut state = shared.lock();
        if state.failure.is_some() || (state.closing && !state.is_syncing) {
            return;
        }
        let due = if state.is_syncing { committer.due(&mut state) } else { None };
        if due.is_some() {
            state.parked = Parked::Working;
            committer.take_batch(&mut state);
            drop(state);
            if let Err(failure) = committer.commit(false) {
                shared.fail(failure);
                return;
            }
            continue;
        }
        let deadline = if state.is_syncing {
            let (deadline, parked) = committer.deadline(&state);
            state.parked = parked;
            deadline
        } else {
            None
        };
        drop(committer);
        if let Some(deadline) = deadline {
            let timeout = shared.options.clock.timeout(deadline);
            drop(shared.wakers.relief.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner));
        } else {
            drop(wait(&shared.wakers.relief, state));
        }
    }
}

/// Commits the batch that was taken. Releases the committer during a sync if other threads should
/// write meanwhile.
fn commit(
    shared: &Shared,
    desk: &Mutex<Committer>,
    mut committer: MutexGuard<'_, Committer>,
    state: MutexGuard<'_, State>,
    sync: bool,
) -> Result<(), Failure> {
    let lets_go = sync && state.durability != Durability::Always && !state.closing;
    drop(state);
    if !lets_go {
        return committer.commit(sync);
    }
    committer.hand_over()?;
    let task = committer.begin_sync();
    drop(committer);
    let guard = FailsByPanic(shared);
    let synced = task.run(shared);
    drop(guard);
    let Ok(mut committer) = desk.lock() else { return Err(broken("another thread panicked while it wrote")) };
    committer.end_sync(task, synced)?;
    committer.set_deadlines();
    Ok(())
}

/// Failure for a broken invariant.
fn broken(message: &str) -> Failure {
    Failure::new("writing the log", io::Error::other(message.to_owned()))
}

/// Commits the appended records on the caller's thread, if no other thread does and syncs are
/// quick. Returns whether it did.
///
/// Saves the two thread wake-ups, which take longer than a quick sync. A slow sync is left to the
/// commit thread, so that the caller can do other work and more appenders share it.
pub(crate) fn commit_here(desk: &Mutex<Committer>) -> bool {
    let Ok(mut committer) = desk.try_lock() else { return false };
    let shared = committer.shared.clone();
    let mut state = shared.lock();
    if !committer.may_commit_here(&state) {
        return false;
    }
    committer.take_batch(&mut state);
    // A caller that requests a sync meanwhile wakes the thread, which waits until this is done.
    if let Err(failure) = commit(&shared, desk, committer, state, true) {
        shared.fail(failure);
    }
    true
}

/// Writes the appended records on the caller's thread, if no other thread does and no sync or new
/// segment is needed. Returns whether it did. The commit thread does the rest.
pub(crate) fn write_here(desk: &Mutex<Committer>) -> bool {
    desk.try_lock().is_ok_and(|mut committer| committer.write_here())
}

enum Action {
    Exit,
    Commit { sync: bool },
}

impl Committer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        segment: Option<Arc<Segment>>,
        offset: u64,
        marked: Lsn,
        entry: EntryEnd,
    ) -> Self {
        let durable = Lsn(shared.durable.load(Ordering::Acquire));
        Self {
            shared,
            segment,
            offset,
            is_cut: false,
            end: None,
            buffer: Buffer::default(),
            opening: None,
            entry,
            written: durable,
            durable,
            marked,
            write_at: None,
            sync_at: None,
            mark_at: None,
            linger_until: None,
            gathering: None,
            last_sync: Duration::ZERO,
            has_made_room: false,
        }
    }

    fn now(&self) -> Instant {
        self.shared.options.clock.now()
    }

    fn may_commit_here(&self, state: &State) -> bool {
        // An idle thread would not see the new deadlines; a timed one wakes up soon and does.
        let will_look = self.commits_itself(state) && state.parked != Parked::Idle;
        let is_quick = self.last_sync < GATHER_FROM && self.has_little_to_do(state);
        will_look && is_quick && !state.is_syncing && state.buffer.has_records()
    }

    /// Returns whether threads of the log and its callers commit, and not a group.
    fn commits_itself(&self, state: &State) -> bool {
        state.failure.is_none() && !state.closing && !self.shared.has_entries
    }

    fn write_here(&mut self) -> bool {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        // An idle thread would not see the sync deadline; a timed one wakes up soon and does.
        let will_look = self.commits_itself(&state) && state.parked != Parked::Idle;
        let is_handing_over = state.durability != Durability::Always && state.buffer.cuts.is_empty();
        if !(will_look && is_handing_over && state.buffer.has_records()) {
            return false;
        }
        self.take_batch(&mut state);
        drop(state);
        if let Err(failure) = self.commit(false) {
            shared.fail(failure);
        }
        true
    }

    /// Returns whether a sync will take about as long as the last one: no written records have
    /// piled up, and no segment is changed.
    fn has_little_to_do(&self, state: &State) -> bool {
        self.written == self.durable
            && state.buffer.cuts.is_empty()
            && state.buffer.sealed < self.shared.write_bytes()
    }

    pub(crate) fn take_batch(&mut self, state: &mut State) {
        let left = self.buffer.bytes.len();
        assert!(left == 0, "the committer takes a batch while {left} bytes of the last one are unwritten");
        mem::swap(&mut self.buffer, &mut state.buffer);
        self.end = state.position.map(|position| position.offset);
        if state.waiting_for_space > 0 {
            self.shared.wakers.space.notify_all();
        }
        if self.shared.is_crowded() {
            self.has_made_room |= self.shared.update_crowded(state);
        }
        if self.shared.has_entries {
            self.has_made_room |= mem::take(&mut state.is_room_awaited);
        }
    }

    /// Returns the next deadline, and whether it suits records that are appended meanwhile.
    fn deadline(&self, state: &State) -> (Option<Instant>, Parked) {
        let wanted = state.sync_wanted > self.durable;
        let gathered_at = self.gathering.as_ref().filter(|_| wanted).map(|gathering| gathering.until);
        if gathered_at.is_some() {
            // Until then nothing else is due, even if its deadline has passed.
            return (gathered_at, Parked::Timed);
        }
        let soon = [self.write_at, self.linger_until].into_iter().flatten().min();
        // Buffered records bring their own marker.
        let mark_at = self.mark_at.filter(|_| !state.buffer.has_records());
        let deadline = [soon, self.sync_at, mark_at].into_iter().flatten().min();
        // Only a deadline within the write delay suits new records; an append ends a longer sleep.
        (deadline, if soon.is_some() { Parked::Timed } else { Parked::Idle })
    }

    /// Returns what is due now, and sets the deadlines for the rest.
    fn due(&mut self, state: &mut State) -> Option<Action> {
        let buffered = state.buffer.has_records();
        if state.is_syncing {
            return self.due_while_syncing(state);
        }
        if state.closing {
            return Some(self.closing_action(state));
        }
        if state.sync_wanted > self.durable && (buffered || self.written > self.durable) {
            return if self.is_gathering(state) { None } else { Some(Action::Commit { sync: true }) };
        }
        if buffered && state.write_wanted > self.written {
            let sync = self.sync_at.is_some_and(|at| at <= self.now());
            return Some(Action::Commit { sync: sync || state.durability == Durability::Always });
        }
        if !buffered && self.sync_at.is_none() && self.mark_at.is_none() && self.linger_until.is_none() {
            return None;
        }
        let now = self.now();
        let sync = self.sync_at.is_some_and(|at| at <= now);
        if sync
            || state.buffer.sealed >= self.shared.write_bytes()
            || self.write_at.is_some_and(|at| at <= now)
        {
            return Some(Action::Commit { sync: sync || state.durability == Durability::Always });
        }
        if buffered {
            // A batch that began while the thread lingered has waited at most this long.
            let began = self.linger_until.take();
            self.write_at = self.write_at.or(began).or(Some(now + write_delay(state.durability)));
            if self.write_at.is_some_and(|at| at <= now) {
                return Some(Action::Commit { sync: state.durability == Durability::Always });
            }
        } else if self.linger_until.is_some_and(|at| at <= now) {
            self.linger_until = None;
        }
        if !buffered && self.mark_at.is_some_and(|at| at <= now) {
            self.mark_at = None;
            return self.marker_action(state);
        }
        None
    }

    /// Like [`Committer::due`], while another thread syncs: only writes.
    fn due_while_syncing(&mut self, state: &State) -> Option<Action> {
        if !state.buffer.has_records() {
            return None;
        }
        let now = self.now();
        let write_at = *self.write_at.get_or_insert(now + write_delay(state.durability));
        let is_due = write_at <= now
            || state.write_wanted > self.written
            || state.buffer.sealed >= self.shared.write_bytes();
        is_due.then_some(Action::Commit { sync: false })
    }

    /// Returns whether the requested sync should wait for more records.
    fn is_gathering(&mut self, state: &State) -> bool {
        let Some(gathering) = &self.gathering else { return false };
        let waiting = state.next.previous().0.saturating_sub(self.durable.0);
        let goes_on = waiting < gathering.expected && self.now() < gathering.until;
        if !goes_on {
            self.gathering = None;
        }
        goes_on
    }

    /// Ends the log with a marker, so that damage to any record before it is not taken for a torn
    /// tail.
    fn closing_action(&self, state: &mut State) -> Action {
        if state.buffer.has_records() || self.written > self.durable {
            return Action::Commit { sync: true };
        }
        state.closed = true;
        self.marker_action(state).unwrap_or(Action::Exit)
    }

    /// Writes a separate marker if the last one does not cover everything that is durable.
    fn marker_action(&self, state: &mut State) -> Option<Action> {
        let last = state.buffer.last;
        assert!(last == Lsn::ZERO, "a marker of its own is written before the buffered record {last}");
        if self.marked == self.durable || self.segment.is_none() {
            return None;
        }
        if state.buffer.sealed == 0 {
            let time_us = state.time_us;
            self.shared.open_buffer(state, time_us);
        }
        // A full segment has no space for a marker; its successor will be the proof.
        (state.buffer.sealed > 0).then_some(Action::Commit { sync: true })
    }

    fn commit(&mut self, sync: bool) -> Result<(), Failure> {
        self.hand_over()?;
        if sync {
            self.sync()?;
        }
        self.set_deadlines();
        Ok(())
    }

    /// Writes the batch, so that it survives the end of the process.
    pub(crate) fn hand_over(&mut self) -> Result<(), Failure> {
        if mem::take(&mut self.has_made_room) {
            self.shared.announce();
        }
        self.write_at = None;
        let before = self.written;
        let mut buffer = mem::take(&mut self.buffer);
        let result = self.write(&mut buffer);
        self.buffer = buffer;
        self.shared.stopwatches.writing.stop();
        result?;
        if self.shared.lock().write_wanted > before {
            self.shared.announce();
        }
        Ok(())
    }

    /// Sets the next deadlines.
    fn set_deadlines(&mut self) {
        let durability = self.shared.lock().durability;
        let now = self.now();
        if self.written > self.durable {
            if self.sync_at.is_none()
                && let Durability::Interval(interval) = durability
            {
                self.sync_at = Some(now + interval.saturating_sub(write_delay(durability)));
            }
        } else {
            self.sync_at = None;
        }
        self.linger_until = Some(now + write_delay(durability));
        self.mark_at = (self.marked < self.durable).then_some(now + MARK_DELAY);
        self.shared.end_stall();
    }

    /// Writes the batch and carries out its cuts between segments.
    fn write(&mut self, buffer: &mut Buffer) -> Result<(), Failure> {
        assert!(
            self.opening.is_some() == self.shared.has_entries,
            "a batch is written with the entry {:?}",
            self.opening
        );
        if buffer.marker_bytes > 0 {
            buffer.patch_marker(self.shared.codec, &Marker { durable: self.durable, entry: self.opening });
            self.marked = self.durable;
        }
        let mut next = buffer.first;
        let mut from = 0;
        for cut in mem::take(&mut buffer.cuts) {
            let end = cut.at - usize::from(is_planted(Fault::Cut) && cut.at > from);
            if end > from {
                next = self.write_part(buffer, from..end, next)?;
            }
            from = cut.at;
            // The successor's existence proves that this segment was durable to its end.
            self.shared.stopwatches.writing.start();
            if self.segment.is_some() {
                self.sync_file()?;
            }
            self.shared.stopwatches.writing.start();
            self.activate(cut)?;
        }
        next = self.write_part(buffer, from..buffer.sealed, next)?;
        let (first, last) = (buffer.first, buffer.last);
        assert!(
            !buffer.has_records() || next == last.next(),
            "the batch of the records {first} to {last} ends before record {next}"
        );
        if let Some(end) = self.end {
            let offset = self.offset;
            assert!(offset == end, "the log was written up to offset {offset}, and appended up to {end}");
        }
        self.advance_written(buffer);
        if let Some(opened) = self.opening.take() {
            self.entry = opened.end();
        }
        buffer.clear();
        Ok(())
    }

    /// Advances the written watermark over the batch.
    fn advance_written(&mut self, buffer: &Buffer) {
        if !buffer.has_records() {
            return;
        }
        let (first, last, written) = (buffer.first, buffer.last, self.written);
        let between = self.shared.gaps().records_between(written, first.previous());
        assert!(
            written < first && between == 0,
            "the log was written up to record {written}, and the next batch has the records {first} to {last}"
        );
        self.written = last;
        self.shared.written.store(last.0, Ordering::Release);
    }

    /// Writes the batch's bytes in `range`, which must be whole frames starting at record `next`.
    /// Returns the LSN after them.
    fn write_part(&mut self, buffer: &Buffer, range: Range<usize>, next: Lsn) -> Result<Lsn, Failure> {
        let behind = buffer.check_part(self.shared.codec, range.clone(), next);
        let bytes = &buffer.bytes[range];
        if bytes.is_empty() {
            return Ok(behind);
        }
        let Some(segment) = &self.segment else {
            panic!("{} bytes of records have no segment to be written to", bytes.len());
        };
        let mut offset = self.offset;
        for piece in bytes.chunks(WRITE_BYTES) {
            self.shared.stopwatches.writing.start();
            write_all(&*segment.file, piece, offset)
                .map_err(|error| self.failure("writing", segment, error))?;
            offset += piece.len() as u64;
        }
        self.shared.sizes.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.offset += bytes.len() as u64 - u64::from(is_planted(Fault::Offset));
        Ok(behind)
    }

    fn sync(&mut self) -> Result<(), Failure> {
        let task = SyncTask::of(self);
        let synced = task.run(&self.shared);
        self.note_synced(task, synced)
    }

    /// Starts a sync during which other threads may write, until [`Committer::end_sync`].
    fn begin_sync(&mut self) -> SyncTask {
        // Records written after this are not part of this sync.
        self.sync_at = None;
        let mut state = self.shared.lock();
        assert!(!state.is_syncing, "a second sync begins while one is under way");
        state.is_syncing = true;
        if state.buffer.has_records() {
            self.shared.wakers.relief.notify_one();
        } else {
            // The first append wakes the thread.
            state.parked = Parked::Idle;
        }
        drop(state);
        SyncTask::of(self)
    }

    fn end_sync(&mut self, task: SyncTask, synced: Result<(), Failure>) -> Result<(), Failure> {
        let mut state = self.shared.lock();
        state.is_syncing = false;
        // The commit thread may have gone to sleep meanwhile and must check for remaining work.
        state.parked = Parked::Working;
        drop(state);
        self.shared.wakers.commit.notify_one();
        self.note_synced(task, synced)
    }

    pub(crate) fn note_synced(&mut self, task: SyncTask, synced: Result<(), Failure>) -> Result<(), Failure> {
        synced?;
        let SyncTask { began, written, .. } = task;
        let took = self.shared.options.clock.elapsed(began);
        self.last_sync = took;
        if self.written == written {
            self.sync_at = None;
        }
        self.gathering = None;
        if written > self.durable {
            let released = self.shared.gaps().records_between(self.durable, written);
            self.advance_durable(written);
            if took >= GATHER_FROM {
                let waiting = self.shared.lock().next.previous().0.saturating_sub(self.durable.0);
                let until = began + took + took / GATHER_DIVISOR;
                self.gathering = Some(Gathering { expected: released + waiting, until });
            }
            self.shared.announce();
        }
        Ok(())
    }

    /// Advances the durable watermark after a sync; never past the written watermark.
    fn advance_durable(&mut self, to: Lsn) {
        let (durable, written) = (self.durable, self.written);
        assert!(
            durable <= to && to <= written,
            "the log would call record {to} durable, with {durable} durable and {written} written"
        );
        self.durable = to;
        // First, so that a caller that has waited for `durable` finds the record committed.
        if !self.shared.has_entries {
            self.shared.committed.store(to.0, Ordering::Release);
        }
        self.shared.durable.store(to.0, Ordering::Release);
    }

    fn sync_file(&self) -> Result<(), Failure> {
        match &self.segment {
            Some(segment) => {
                segment.file.sync_data().map_err(|error| self.failure("syncing", segment, error))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn failure(&self, what: &str, segment: &Segment, error: io::Error) -> Failure {
        Failure::new(format!("{what} {}", self.shared.storage.path(&segment.name)), error)
    }
}

/// Fails the log if the thread panics during a sync. It does not hold the committer then, so no
/// poisoned lock would show the panic to other threads.
struct FailsByPanic<'a>(&'a Shared);

impl Drop for FailsByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(broken("a thread panicked while it synced"));
        }
    }
}

/// A sync of what is written when it begins.
pub(crate) struct SyncTask {
    segment: Option<Arc<Segment>>,
    began: Instant,
    /// Durable watermark once the sync has succeeded.
    written: Lsn,
}

impl SyncTask {
    pub(crate) fn of(committer: &Committer) -> Self {
        Self { segment: committer.segment.clone(), began: committer.now(), written: committer.written }
    }

    pub(crate) fn run(&self, shared: &Shared) -> Result<(), Failure> {
        let Some(segment) = &self.segment else { return Ok(()) };
        shared.stopwatches.syncing.start();
        let synced = segment.file.sync_data();
        shared.stopwatches.syncing.stop();
        synced.map_err(|error| Failure::new(format!("syncing {}", shared.storage.path(&segment.name)), error))
    }
}

/// Makes the written entries of a group durable, one sync at a time. Returns the newest durable record.
pub(crate) fn sync_entries(shared: &Shared, desk: &Mutex<Committer>) -> Result<Lsn, Failure> {
    let _one = shared.syncing.lock().unwrap_or_else(PoisonError::into_inner);
    let desk = || desk.lock().unwrap_or_else(PoisonError::into_inner);
    let task = SyncTask::of(&desk());
    let synced = task.run(shared);
    let mut committer = desk();
    let noted = committer.note_synced(task, synced);
    let durable = committer.durable;
    drop(committer);
    match noted {
        Ok(()) => {
            shared.end_stall();
            Ok(durable)
        }
        Err(failure) => {
            shared.fail(failure.clone());
            Err(failure)
        }
    }
}

/// Returns how long records may stay unwritten: at most a fifth of the interval, so that their sync
/// is on time.
fn write_delay(durability: Durability) -> Duration {
    match durability {
        Durability::Interval(interval) => WRITE_DELAY.min(interval / 5),
        Durability::Always | Durability::Off => WRITE_DELAY,
    }
}
