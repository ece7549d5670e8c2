//! The log: open, append, wait, replay, release, close.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tidemark_fault::{Fault, is_planted};

use crate::append::Room;
use crate::commit::{self, Committer, sync_entries};
use crate::end_file;
use crate::error::{AppendError, Failure, OpenError, ReplayError};
use crate::high_water::{HighWater, HighWaterMark};
use crate::housekeeper::Housekeeper;
use crate::opening::{LogKind, begin, find_spares, share, take_lock};
use crate::recovery::{Recovery, recover};
use crate::relief_state::Relief;
use crate::replay::{Replay, Tail};
use crate::segment::{is_of_log, parse_segment_name};
use crate::shared::{Health, Parked, Progress, Shared, State, wait};
use crate::snapshot::{BlockFiles, SnapshotError, SnapshotWriter, Snapshots};
use crate::storage::{Storage, StorageLock};
use crate::{Clock, Durability, Format, Gap, Lsn, Member, Options};

/// An open log. Appending, waiting and reading need only a shared reference.
pub struct Log {
    shared: Arc<Shared>,
    committer: Arc<Mutex<Committer>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Released by `close`, so the directory can be reopened while other handles still exist.
    lock: Mutex<Option<StorageLock>>,
    /// Records a clean close.
    mark: Arc<HighWaterMark>,
}

impl Log {
    /// Locks the directory, verifies its content, cuts a torn tail and starts the log's threads.
    ///
    /// Every recovered record is durable when this returns. If the log was not closed, the next
    /// record skips a gap to an LSN that cannot have been handed out ([`Recovery::gap`]).
    ///
    /// # Errors
    /// Damage to durable records (with file, offset and repair command), missing durable records at
    /// the end, a locked directory, invalid options, or a storage error.
    pub fn open(storage: Arc<dyn Storage>, options: Options) -> Result<(Self, Recovery), OpenError> {
        let (log, recovery) = Self::start(storage, options, LogKind::Alone)?;
        let (thread_shared, thread_committer) = (log.shared.clone(), log.committer.clone());
        log.spawn("tidemark-log-commit", move || commit::run(&thread_shared, &thread_committer))?;
        let (thread_shared, thread_committer) = (log.shared.clone(), log.committer.clone());
        log.spawn("tidemark-log-relief", move || commit::run_relief(&thread_shared, &thread_committer))?;
        log.shared.wait_for_first_segment();
        Ok((log, recovery))
    }

    /// Returns whether a directory has or had a log.
    pub fn is_in(storage: &dyn Storage) -> io::Result<bool> {
        Ok(storage.list()?.iter().any(|name| is_of_log(name)))
    }

    /// Opens the log of a group's member: its batches are the group's entries, and only the
    /// returned [`Member`] writes them. It accepts no records until
    /// [`Member::lead`].
    ///
    /// The member continues the log of a single node. An unclean stop leaves no gap: the group
    /// answers only for what it has committed, and each of its terms begins behind a gap. An entry
    /// of which only a part was written is cut off.
    ///
    /// # Errors
    /// As [`open`](Self::open); also if the format is a text format.
    pub fn open_member(
        storage: Arc<dyn Storage>,
        options: Options,
    ) -> Result<(Self, Member, Recovery), OpenError> {
        Self::start_member(storage, options, LogKind::Member)
    }

    /// Does the same for simulations: nothing happens by itself. The caller gives it a
    /// [`ManualClock`](crate::ManualClock), and calls [`Member::keep_house`] now and then. What would
    /// wait for a thread does its work.
    ///
    /// A [`Replay`] still has a thread; a [`Tail`] has none. [`append`](Self::append) panics if the buffer
    /// is full, which only the caller can empty.
    pub fn open_member_without_threads(
        storage: Arc<dyn Storage>,
        options: Options,
    ) -> Result<(Self, Member, Recovery), OpenError> {
        let (log, member, recovery) = Self::start_member(storage, options, LogKind::MemberWithoutThreads)?;
        member.keep_house();
        Ok((log, member, recovery))
    }

    fn start_member(
        storage: Arc<dyn Storage>,
        options: Options,
        kind: LogKind,
    ) -> Result<(Self, Member, Recovery), OpenError> {
        if options.format != Format::Binary {
            return Err(OpenError::Options("the log of a group's member has the binary format"));
        }
        let (log, mut recovery) = Self::start(storage, options, kind)?;
        let member = Member::new(log.shared.clone(), log.committer.clone(), log.mark.clone());
        member.cut_unfinished_entry().map_err(|failure| OpenError::Storage {
            what: failure.what,
            error: io::Error::new(failure.error.kind(), failure.error),
        })?;
        recovery.last_lsn = log.appended();
        recovery.records = log.records_between(recovery.first_lsn.previous(), recovery.last_lsn);
        Ok((log, member, recovery))
    }

    fn start(
        storage: Arc<dyn Storage>,
        options: Options,
        kind: LogKind,
    ) -> Result<(Self, Recovery), OpenError> {
        let began = options.clock.now();
        options.check().map_err(OpenError::Options)?;
        let lock = take_lock(&*storage)?;
        let mut recovered = recover(&*storage, options.verify, kind != LogKind::Alone)?;
        let spares = find_spares(&*storage, &recovered.names, &options)?;
        let segment = recovered.continued(&options);
        let end_offset = recovered.end_offset;
        let marked = recovered.marked;
        let (last, next) = (recovered.recovery.last_lsn, recovered.next);
        let end_file = begin(&*storage, recovered.end_file.take(), last, next)?;
        let mark = Arc::new(HighWaterMark::new(end_file, next, last));
        let shared = Arc::new(share(storage, options, &recovered, spares, kind)?);
        *shared.table() = recovered.table;
        let committer = Committer::new(shared.clone(), segment, end_offset, marked, recovered.entry);
        let committer = Arc::new(Mutex::new(committer));
        let log = Self { shared, committer, threads: Mutex::default(), lock: Mutex::new(Some(lock)), mark };
        if kind != LogKind::MemberWithoutThreads {
            let shared = log.shared.clone();
            log.spawn("tidemark-log-keep", move || Housekeeper::of(&shared).run())?;
            let high_water = HighWater::new(log.shared.clone(), log.mark.clone());
            log.spawn("tidemark-log-end", move || high_water.run())?;
        }
        recovered.recovery.elapsed = log.clock().elapsed(began);
        Ok((log, recovered.recovery))
    }

    /// Appends a record. `write` appends the payload to the given buffer. It must not change the
    /// bytes already there, and must be short: all appenders wait for it.
    ///
    /// The record has its LSN when this returns, but is not durable yet: see
    /// [`request_sync`](Self::request_sync). Waits while the buffer is full or a new segment is
    /// being made. On an error, nothing was appended.
    #[inline]
    pub fn append(
        &self,
        time_us: u64,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Lsn, AppendError> {
        if self.shared.is_crowded() {
            self.shared.wait_for_room()?;
        }
        self.shared.append::<false>(Room::NONE, time_us, kind, write)
    }

    /// Like [`append`](Self::append), but into reserved space, or space that
    /// [`has_room_for`](Self::has_room_for) found: for appenders that hold locks. It does not wait
    /// for the buffer, so such records can exceed its limit, by one record per thread.
    #[inline]
    pub fn append_into(
        &self,
        room: Room<'_>,
        time_us: u64,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Lsn, AppendError> {
        self.shared.append::<true>(room, time_us, kind, write)
    }

    /// Waits until a record of `payload_bytes` fits and reserves the space, so that
    /// [`append_into`](Self::append_into) cannot fail for lack of it. For callers that change state
    /// before they append. Records that are small compared to a segment cost one comparison and
    /// need no reservation.
    #[inline]
    pub fn make_room(&self, payload_bytes: usize) -> Result<Room<'_>, AppendError> {
        self.shared.make_room(payload_bytes)
    }

    /// Returns whether a record of `payload_bytes` can be appended without waiting, or would be
    /// refused. For callers that must not wait, such as event loops, before they change anything.
    /// If false, the listener is called when the caller should try again.
    #[inline]
    pub fn has_room_for(&self, payload_bytes: usize) -> bool {
        self.shared.has_room_for(payload_bytes)
    }

    /// Returns whether a small record can be appended without waiting. One atomic load.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.shared.is_crowded()
    }

    /// Refuses records if the storage has not answered for [`Options::stall_after`], until it
    /// answers. Appenders call this periodically. A few atomic loads, and a clock read while a
    /// storage call is under way.
    pub fn look_for_stall(&self) {
        self.shared.look_for_stall();
    }

    /// Returns an error if the log refuses records. One atomic load if it accepts them.
    #[inline]
    pub fn check_writable(&self) -> Result<(), AppendError> {
        if self.shared.refusing.load(Ordering::Relaxed) { Err(self.refusal()) } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self) -> AppendError {
        let state = self.shared.lock();
        match (&state.failure, &state.full, &state.stall) {
            (Some(failure), ..) => AppendError::Failed(failure.clone()),
            (None, Some(failure), _) => AppendError::Full(failure.clone()),
            (None, None, Some(stall)) => AppendError::Stalled(stall.clone()),
            (None, None, None) if state.follows && !state.closing => AppendError::Follows,
            (None, None, None) => AppendError::Closed,
        }
    }

    /// Returns whether the log accepts records, and if not, why.
    pub fn health(&self) -> Health {
        let state = self.shared.lock();
        match (&state.failure, &state.full, &state.stall) {
            (Some(failure), ..) => Health::Failed(failure.clone()),
            (None, Some(failure), _) => Health::Full(failure.clone()),
            (None, None, Some(stall)) => Health::Stalled(stall.clone()),
            (None, None, None) => Health::Ok,
        }
    }

    /// Returns why released segments could not be deleted; `None` if there was no failure. The log
    /// retries in the background and accepts records meanwhile.
    pub fn retention_failure(&self) -> Option<Failure> {
        self.shared.lock().retention_failure.clone()
    }

    /// Returns the clock that the log was opened with.
    pub fn clock(&self) -> &Clock {
        &self.shared.options.clock
    }

    /// Returns the newest record found when the log was opened.
    pub fn recovered(&self) -> Lsn {
        self.shared.recovered
    }

    /// Returns the appended watermark: the newest record that has an LSN.
    #[inline]
    pub fn appended(&self) -> Lsn {
        Lsn(self.shared.appended.load(Ordering::Acquire))
    }

    /// Returns the written watermark: the newest record that survives the end of this process.
    #[inline]
    pub fn written(&self) -> Lsn {
        Lsn(self.shared.written.load(Ordering::Acquire))
    }

    /// Returns the durable watermark: the newest record that survives a power failure.
    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.shared.durable.load(Ordering::Acquire))
    }

    /// Returns the committed watermark: everything up to this record may be told to anybody. Alone,
    /// that is what is durable; in a group, what a quorum has, which its leader may know before it
    /// is durable here.
    #[inline]
    pub fn committed(&self) -> Lsn {
        Lsn(self.shared.committed.load(Ordering::Acquire))
    }

    /// Returns whether this is the log of a group's member: see [`open_member`](Self::open_member).
    pub fn is_member(&self) -> bool {
        self.shared.has_entries
    }

    /// Returns the start of the log: the oldest readable record, or the next one if there is none,
    /// including a gap before it. From here on, only LSNs in gaps have no record.
    pub fn floor(&self) -> Lsn {
        self.shared.floor()
    }

    /// Returns whether `lsn` lies in a known gap: it has no record and never will, but may have
    /// been handed out before a crash. Gaps that retention removed before the log was opened are
    /// unknown.
    #[inline]
    pub fn is_lost(&self, lsn: Lsn) -> bool {
        self.shared.gaps().contains(lsn)
    }

    /// Returns the known gaps that end after `lsn`, oldest first. Each is the result of an unclean
    /// stop, or lies before a term of a group.
    pub fn gaps_behind(&self, lsn: Lsn) -> Vec<Gap> {
        self.shared.gaps().behind(lsn).to_vec()
    }

    /// Returns the number of records after `after` up to and including `last`, without LSNs in
    /// gaps.
    pub fn records_between(&self, after: Lsn, last: Lsn) -> u64 {
        self.shared.gaps().records_between(after, last)
    }

    /// Requests that everything up to `lsn` become durable as soon as possible. Does not wait.
    pub fn request_sync(&self, lsn: Lsn) {
        if lsn <= self.durable() {
            return;
        }
        self.want(lsn, |state| &mut state.sync_wanted);
    }

    /// Raises a target of the commit thread to `lsn` and wakes the thread if necessary.
    fn want(&self, lsn: Lsn, wanted: impl FnOnce(&mut State) -> &mut Lsn) {
        let mut state = self.shared.lock();
        // Never beyond the end: a target that cannot be reached would be served again and again.
        let lsn = lsn.min(self.appended());
        let wanted = wanted(&mut state);
        *wanted = lsn.max(*wanted);
        if state.parked != Parked::Working {
            state.parked = Parked::Working;
            let is_syncing = state.is_syncing;
            drop(state);
            self.shared.wake_writer(is_syncing);
        }
    }

    /// Like [`request_sync`](Self::request_sync), but the caller's thread writes and syncs if no
    /// other thread does and syncs take at most a few hundred microseconds, less than two thread
    /// wake-ups. Everything up to `lsn` is then durable on return, unless the log has failed.
    pub fn sync_or_request(&self, lsn: Lsn) {
        if lsn > self.durable() && !commit::commit_here(&self.committer) {
            self.request_sync(lsn);
        }
    }

    /// Requests that everything up to `lsn` be handed to the system as soon as possible. Does not
    /// wait; the listener is notified.
    pub fn request_write(&self, lsn: Lsn) {
        if lsn > self.written() {
            self.want(lsn, |state| &mut state.write_wanted);
        }
    }

    /// Hands everything up to `lsn` to the system, so that it survives the end of this process. The
    /// caller's thread writes, in a few microseconds, unless another thread does or a segment has
    /// to be started. Then this is [`request_write`](Self::request_write).
    pub fn write_or_request(&self, lsn: Lsn) {
        if lsn > self.written() && !commit::write_here(&self.committer) {
            self.request_write(lsn);
        }
    }

    /// Waits until everything up to `lsn` is durable, or the log fails.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), AppendError> {
        self.sync_or_request(lsn);
        let lsn = lsn.min(self.appended());
        // A group may take back what is waited for.
        self.wait_for(|_| Ok(self.durable() >= lsn.min(self.appended())))?;
        let durable = self.durable();
        assert!(
            durable >= lsn.min(self.appended()),
            "a caller that waits for record {lsn} is released when {durable} is durable"
        );
        Ok(())
    }

    /// Waits until everything up to `lsn` is committed: alone, until it is durable.
    ///
    /// # Errors
    /// The log fails or is closed, or the group takes the record back.
    pub fn wait_committed(&self, lsn: Lsn) -> Result<(), AppendError> {
        self.wait_committed_while(lsn, |_| Ok(()))
    }

    /// Waits until everything up to `lsn` is committed, or `goes_on` returns an error.
    fn wait_committed_while(
        &self,
        lsn: Lsn,
        goes_on: impl Fn(&State) -> Result<(), AppendError>,
    ) -> Result<(), AppendError> {
        if !self.is_member() {
            return self.wait_durable(lsn);
        }
        self.wait_for(|state| {
            // What was taken back lies behind the end, or in the gap before the next term.
            if lsn > self.appended() || self.is_lost(lsn) {
                return Err(AppendError::TakenBack { lsn });
            }
            let has_come = self.committed() >= lsn;
            if has_come { Ok(true) } else { goes_on(state).map(|()| false) }
        })?;
        let committed = self.committed();
        assert!(
            committed >= lsn,
            "a caller that waits for record {lsn} is released when {committed} is committed"
        );
        Ok(())
    }

    /// Waits until a snapshot that covers everything up to `lsn` may count.
    pub(crate) fn wait_until_it_may_count(&self, lsn: Lsn) -> Result<(), AppendError> {
        // Without the lead it is unknown whether that ever comes, and a stop must not wait for it.
        let leads = |state: &State| if state.follows { Err(AppendError::Follows) } else { Ok(()) };
        self.wait_committed_while(lsn, leads)?;
        if self.durable() < lsn {
            // Others may have committed it before this disk has it, and no snapshot may be ahead of its log.
            sync_entries(&self.shared, &self.committer).map_err(AppendError::Failed)?;
        }
        Ok(())
    }

    /// Waits until `has_come`, or the log fails or is closed.
    fn wait_for(&self, has_come: impl Fn(&State) -> Result<bool, AppendError>) -> Result<(), AppendError> {
        let mut state = self.shared.lock();
        while !is_planted(Fault::Waiter) && !has_come(&state)? {
            if let Some(failure) = &state.failure {
                return Err(AppendError::Failed(failure.clone()));
            }
            if state.closed {
                return Err(AppendError::Closed);
            }
            state = wait(&self.shared.wakers.advanced, state);
        }
        Ok(())
    }

    /// Returns the durability mode in force.
    pub fn durability(&self) -> Durability {
        self.shared.lock().durability
    }

    /// Changes the durability mode, from the next batch on.
    pub fn set_durability(&self, durability: Durability) {
        let mut state = self.shared.lock();
        state.durability = durability;
        if durability != Durability::Off {
            // Syncs what the old mode left unsynced, to meet the promise of the new one.
            state.sync_wanted = self.appended();
        }
        state.parked = Parked::Working;
        let is_syncing = state.is_syncing;
        drop(state);
        self.shared.wake_writer(is_syncing);
    }

    /// Sets the listener. It is called once before this returns, then after every advance of the
    /// durable LSN and every change of health or of [`retention_failure`](Self::retention_failure),
    /// on a thread of the log or of a caller that syncs. It must be quick and must not call
    /// `close`.
    pub fn set_listener(&self, listener: Box<dyn Fn(Progress) + Send + Sync>) {
        let mut slot = self.shared.listener.write().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that no other thread reports newer progress first.
        slot.insert(listener)(self.shared.progress());
    }

    /// Reads from `from` to the current written watermark, or to the committed one in a group.
    pub fn replay(&self, from: Lsn) -> Result<Replay, ReplayError> {
        Replay::start(self.shared.clone(), from)
    }

    /// Follows the log from `from` as it grows.
    pub fn tail(&self, from: Lsn) -> Result<Tail, ReplayError> {
        Tail::start(self.shared.clone(), from)
    }

    /// Allows the log to drop records before `before`, unless the retention options keep them. For
    /// callers whose snapshot covers these records.
    ///
    /// Of the log of a group's member, records are dropped only when the group [releases] them too: other
    /// members may need them.
    ///
    /// [releases]: crate::Member::release
    pub fn release(&self, before: Lsn) {
        let before = before.min(self.durable().min(self.committed()).next());
        self.shared.covered.fetch_max(before.previous().0, Ordering::AcqRel);
        if !self.is_member() {
            self.shared.release(before);
        }
    }

    /// Removes a log that is not open, and not its snapshots: the next start begins behind the newest
    /// snapshot. For a member that installs one; the caller holds the directory's lock. If this is
    /// interrupted, it must be repeated before the log is opened.
    pub fn remove(storage: &dyn Storage) -> io::Result<()> {
        let mut segments: Vec<String> =
            storage.list()?.into_iter().filter(|name| parse_segment_name(name).is_some()).collect();
        // `END` first: it says which records the log must have. Then the newest segments, so that no hole
        // is left.
        end_file::remove(storage)?;
        segments.sort_unstable();
        for name in segments.iter().rev() {
            storage.remove(name)?;
        }
        storage.sync_dir()
    }

    /// Removes a log that is not open, with its snapshots and their blocks. For a member whose data is damaged,
    /// and that gets all of it from others; the caller holds the directory's lock. If this is interrupted,
    /// it must be repeated before the log is opened.
    pub fn remove_all(storage: &dyn Storage) -> io::Result<()> {
        Self::remove(storage)?;
        for name in storage.list()?.iter().filter(|name| is_of_log(name)) {
            storage.remove(name)?;
        }
        storage.sync_dir()
    }

    /// Keeps the records from `from` on, although snapshots seemed to cover them. For a caller that
    /// has recovered from an older snapshot and has not appended anything yet.
    ///
    /// A member that has recovered needs nothing of what the kept snapshots cover, up to there.
    pub fn retain(&self, from: Lsn) {
        let covered = self.shared.found_covered.min(from.previous());
        self.shared.covered.fetch_max(covered.0, Ordering::AcqRel);
        let mut state = self.shared.lock();
        state.released = state.released.min(from);
    }

    /// Completes a snapshot: makes the log durable up to it, then the snapshot itself, removes
    /// surplus older ones, and releases the records that the oldest kept full snapshot covers.
    /// Blocks on the disk, and in a group until what the snapshot covers is committed. The snapshot is
    /// dropped if the node loses the lead before.
    ///
    /// Releases nothing until there are as many full snapshots as are to be kept: the log remains
    /// the fallback if the only one is damaged. A failed sync stops the log.
    pub fn finish_snapshot(&self, writer: SnapshotWriter) -> Result<(), SnapshotError> {
        let finished = self.complete(writer);
        if let Err(SnapshotError::Sync(failure)) = &finished {
            self.shared.fail(failure.clone());
        }
        finished
    }

    /// Like [`finish_snapshot`](Self::finish_snapshot), for a disk that fills up: reads the
    /// snapshot back. If it is intact, it becomes the only one kept, and the log before it is
    /// released.
    pub fn finish_relief(&self, writer: SnapshotWriter) -> Result<(), SnapshotError> {
        let lsn = writer.lsn();
        self.finish_snapshot(writer)?;
        let snapshots = Snapshots::new(self.shared.storage.clone());
        let snapshot = snapshots.open(lsn)?;
        snapshot.verify()?;
        snapshot.verify_blocks(&*self.shared.storage)?;
        let pruned = snapshots.prune(1);
        if let Err(SnapshotError::Sync(failure)) = &pruned {
            self.shared.fail(failure.clone());
        }
        let covered = pruned?;
        assert!(covered >= lsn, "the snapshot at {lsn} stays, and the log is covered up to {covered}");
        self.release(covered.next());
        Ok(())
    }

    /// Declares that the caller takes a snapshot when the listener reports
    /// [`Progress::wants_relief`]: when there is no space for the next segment, or none would be
    /// left for a snapshot. Records are refused only if the snapshot does not help. The caller
    /// finishes it with [`finish_relief`](Self::finish_relief), and always calls
    /// [`end_relief`](Self::end_relief).
    pub fn offer_relief(&self) {
        let mut state = self.shared.lock();
        if state.relief == Relief::None {
            state.relief = Relief::Offered;
        }
    }

    /// Returns whether a snapshot would help against a shortage of space.
    pub fn wants_relief(&self) -> bool {
        let state = self.shared.lock();
        state.relief == Relief::Wanted || (state.full.is_some() && state.relief != Relief::None)
    }

    /// Reports that the requested snapshot was taken or could not be taken.
    pub fn end_relief(&self) {
        self.shared.end_relief();
    }

    /// Reports the size of the newest snapshot, begun when [`written_bytes`](Self::written_bytes)
    /// was `at`. The log keeps about as much space free for the next one.
    pub fn note_snapshot(&self, bytes: u64, at: u64) {
        self.shared.sizes.snapshot.store(bytes, Ordering::Relaxed);
        self.shared.sizes.written_at_snapshot.store(at, Ordering::Relaxed);
    }

    /// Returns the bytes of the log that this process has written.
    pub fn written_bytes(&self) -> u64 {
        self.shared.sizes.written.load(Ordering::Relaxed)
    }

    /// Returns whether a change that takes no memory may be logged although the log cannot grow:
    /// true while it fits in the last segment, so that deletions can free space.
    pub fn has_last_room_for(&self, payload_bytes: usize) -> bool {
        self.shared.has_last_room_for(payload_bytes)
    }

    fn complete(&self, writer: SnapshotWriter) -> Result<(), SnapshotError> {
        if let Some(failure) = &self.shared.lock().failure {
            // A disk that has failed cannot keep the promise of a snapshot either.
            return Err(SnapshotError::Log(AppendError::Failed(failure.clone())));
        }
        self.wait_until_it_may_count(writer.lsn()).map_err(SnapshotError::Log)?;
        writer.finish()?;
        self.shared.snapshots_taken.fetch_add(1, Ordering::AcqRel);
        let keep = self.shared.options.retention.keep_snapshots;
        let covered = Snapshots::new(self.shared.storage.clone()).prune(keep)?;
        if covered > Lsn::ZERO {
            self.release(covered.next());
        }
        Ok(())
    }

    /// Returns the directory, which also holds the snapshots.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.shared.storage
    }

    /// Returns the block files in the directory, which belong to the snapshots.
    pub fn block_files(&self) -> &Arc<BlockFiles> {
        &self.shared.block_files
    }

    /// Refuses further records, writes and syncs the accepted ones, ends the threads and unlocks
    /// the directory. Further calls do nothing.
    ///
    /// # Errors
    /// Accepted records may not be durable.
    pub fn close(&self) -> Result<(), Failure> {
        {
            let mut state = self.shared.lock();
            state.closing = true;
            self.shared.refusing.store(true, Ordering::Release);
        }
        self.shared.wakers.commit.notify_all();
        self.shared.wakers.relief.notify_all();
        self.shared.wakers.housekeeping.notify_all();
        self.shared.wakers.space.notify_all();
        self.shared.wakers.advanced.notify_all();
        self.shared.wakers.high_water.notify_all();
        // Held to the end: a second caller must not unlock the directory before the threads have
        // ended.
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                self.shared
                    .fail(Failure::new("closing the log", io::Error::other("a thread of the log panicked")));
            }
        }
        self.shared.lock().closed = true;
        self.shared.wakers.advanced.notify_all();
        let failure = self.shared.lock().failure.clone();
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() && failure.is_none() {
            self.note_end();
        }
        *lock = None;
        failure.map_or(Ok(()), Err)
    }

    /// Records the clean close and the end of the log, if the directory is still locked by us.
    fn note_end(&self) {
        let (last, next) = (self.appended(), self.shared.lock().next);
        if self.durable() == last {
            // Best effort: every record is durable. Without this the next start leaves a gap.
            let _ = self.mark.close(last, next);
        }
    }

    /// Starts a thread of the log. A panic on it (a broken invariant) fails the log like a disk
    /// failure: no caller waits forever, and no record is falsely reported as durable.
    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let shared = self.shared.clone();
        let run = move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                let message = panic.downcast_ref::<String>().map(String::as_str);
                let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
                let message = message.unwrap_or("a thread of the log panicked");
                shared.fail(Failure::new("running the log", io::Error::other(message.to_owned())));
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)
            .map_err(|error| OpenError::storage("starting a thread", error))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Callers that need the result call `close` first.
        let _ = self.close();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("appended", &self.appended())
            .field("written", &self.written())
            .field("durable", &self.durable())
            .finish_non_exhaustive()
    }
}
