//! State shared by the appenders, the commit thread and the housekeeper.

use fastrand::Rng;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::Instant;

use crate::buffer::Buffer;
use crate::error::{AppendError, Failure, Stall};
use crate::format::Codec;
use crate::gap::Gaps;
use crate::ready::{Chores, Ready, Surplus};
use crate::relief_state::Relief;
use crate::segment::SegmentTable;
use crate::snapshot::BlockFiles;
use crate::stopwatch::Stopwatch;
use crate::storage::Storage;
use crate::{Durability, Lsn, Options};

/// Watermarks and health of the log, as reported to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Everything up to this LSN survives a power failure.
    pub durable: Lsn,
    /// Everything up to this LSN may be told: see [`Log::committed`](crate::Log::committed).
    pub committed: Lsn,
    /// Everything up to this LSN survives the end of this process.
    pub written: Lsn,
    /// Whether the log accepts records.
    pub writable: bool,
    /// Whether a snapshot is wanted, so that old segments can be dropped before the disk is full:
    /// see [`Log::offer_relief`](crate::Log::offer_relief).
    pub wants_relief: bool,
    /// Whether released segments could not be deleted: see
    /// [`Log::retention_failure`](crate::Log::retention_failure).
    pub retaining: bool,
}

/// Whether the log accepts records, and if not, why.
#[derive(Clone, Debug)]
pub enum Health {
    /// The log accepts records.
    Ok,
    /// There is no space for the next segment; the log retries in the background.
    Full(Failure),
    /// The storage does not answer; the log continues when it does.
    Stalled(Stall),
    /// A write or sync failed; only a restart helps.
    Failed(Failure),
}

/// Above this size, a write costs little less per byte.
pub(crate) const WRITE_BYTES: usize = 1 << 20;

pub(crate) type Listener = Box<dyn Fn(Progress) + Send + Sync>;
pub(crate) type Waker = Box<dyn Fn() + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) block_files: Arc<BlockFiles>,
    pub(crate) options: Options,
    pub(crate) codec: &'static dyn Codec,
    pub(crate) state: Mutex<State>,
    pub(crate) wakers: Wakers,
    pub(crate) appended: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) durable: AtomicU64,
    pub(crate) committed: AtomicU64,
    /// Whether batches are a group's entries, which only [`Member`](crate::Member) writes.
    pub(crate) has_entries: bool,
    /// Counts how often the log's end was taken back: what readers know of segments is void then.
    pub(crate) cuts: AtomicU64,
    /// The last record that a member does not need, because snapshots cover it. The group decides what
    /// becomes of it.
    pub(crate) covered: AtomicU64,
    /// The last record that the snapshots found at the start cover, if they are usable.
    pub(crate) found_covered: Lsn,
    /// Counts the snapshots that this process has completed.
    pub(crate) snapshots_taken: AtomicU64,
    pub(crate) refusing: AtomicBool,
    /// Whether [`State::stall`] is set.
    pub(crate) stalled: AtomicBool,
    pub(crate) sizes: Sizes,
    pub(crate) stopwatches: Stopwatches,
    /// Held during a sync of a group's entries: one at a time.
    pub(crate) syncing: Mutex<()>,
    pub(crate) chores: Mutex<Chores>,
    /// In a log without threads: does the chores that are due, and returns their number. Callers that
    /// would wait for them do them.
    pub(crate) do_chores: Option<fn(&Shared) -> usize>,
    /// Whether [`State::retention_failure`] is set.
    pub(crate) retaining: AtomicBool,
    pub(crate) segments: Mutex<SegmentTable>,
    /// The newest record of earlier processes. The log starts after it while it has no segment.
    pub(crate) recovered: Lsn,
    /// Known gaps: those of the segments found at the start, the one that the start made, and those
    /// before a group's terms.
    pub(crate) gaps: RwLock<Gaps>,
    pub(crate) listener: RwLock<Option<Listener>>,
    /// Called instead of waking the commit thread, in the log of a group's member.
    pub(crate) waker: OnceLock<Waker>,
}

/// Where threads wait, each with the mutex of [`State`].
#[derive(Default)]
pub(crate) struct Wakers {
    /// The commit thread.
    pub(crate) commit: Condvar,
    /// The relief thread, which writes while another thread syncs.
    pub(crate) relief: Condvar,
    /// The housekeeper.
    pub(crate) housekeeping: Condvar,
    /// Appenders that need buffer or segment space.
    pub(crate) space: Condvar,
    /// Callers that need durability.
    pub(crate) advanced: Condvar,
    /// The thread that records the high-water mark.
    pub(crate) high_water: Condvar,
}

/// What is under way, and since when: a storage that hangs shows here.
pub(crate) struct Stopwatches {
    /// Appenders should wait.
    pub(crate) crowded: Stopwatch,
    /// A write.
    pub(crate) writing: Stopwatch,
    /// A sync.
    pub(crate) syncing: Stopwatch,
    /// A storage call of the housekeeper.
    pub(crate) housekeeping: Stopwatch,
}

/// Sizes that decide when a snapshot is due. Bytes.
#[derive(Default)]
pub(crate) struct Sizes {
    /// What this process has written to the log.
    pub(crate) written: AtomicU64,
    /// The newest snapshot.
    pub(crate) snapshot: AtomicU64,
    /// `written` when the newest snapshot was begun.
    pub(crate) written_at_snapshot: AtomicU64,
}

/// Everything under the one mutex that an append takes.
pub(crate) struct State {
    /// LSN of the next record.
    pub(crate) next: Lsn,
    /// Admission time of the newest record.
    pub(crate) time_us: u64,
    pub(crate) buffer: Buffer,
    /// Position of the end of `buffer` on disk; `None` before the first segment.
    pub(crate) position: Option<Position>,
    pub(crate) ready: VecDeque<Ready>,
    /// What old segments of a member have left unused.
    pub(crate) surplus: Vec<Surplus>,
    /// Until then the housekeeper of a member does nothing that can wait.
    pub(crate) calm_at: Option<Instant>,
    /// A small segment for records that were under way when the disk filled up: their appenders
    /// have changed their state already and can no longer be refused.
    pub(crate) reserve: Option<Ready>,
    /// Bytes reserved for large records that are not appended yet: the sum of all
    /// [`Room`](crate::Room)s.
    pub(crate) promised_bytes: u64,
    /// Number of appenders in [`Shared::wait_for_space`].
    pub(crate) waiting_for_space: usize,
    /// Whether to notify the listener of the next segment, because a large record waits for it.
    pub(crate) is_room_awaited: bool,
    /// Minimum size of the requested segment.
    pub(crate) wanted_bytes: Option<u64>,
    pub(crate) parked: Parked,
    /// A thread syncs without holding the committer; the relief thread writes meanwhile.
    pub(crate) is_syncing: bool,
    pub(crate) sync_wanted: Lsn,
    /// A caller waits until the records up to this LSN are written.
    pub(crate) write_wanted: Lsn,
    pub(crate) durability: Durability,
    /// Records before this LSN may be dropped.
    pub(crate) released: Lsn,
    /// The last record of the newest segment with a successor, and so durable; 0 if this process
    /// has started no segment.
    pub(crate) sealed: Lsn,
    pub(crate) retention_due: bool,
    /// Why a released segment could not be deleted.
    pub(crate) retention_failure: Option<Failure>,
    pub(crate) closing: bool,
    pub(crate) closed: bool,
    /// Records come from the leader of the group: other appenders are refused.
    pub(crate) follows: bool,
    pub(crate) failure: Option<Failure>,
    pub(crate) full: Option<Failure>,
    pub(crate) relief: Relief,
    pub(crate) stall: Option<Stall>,
    /// Source of segments' salts, which need no secrecy.
    pub(crate) random: Rng,
}

/// End of the accepted records within the segment that will hold them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) offset: u64,
    /// Frames end at or before this offset; the space for closing markers is after it.
    pub(crate) capacity: u64,
    pub(crate) salt: u32,
    pub(crate) created_us: u64,
}

/// State of the writing thread: an appender wakes it only when necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// Checks the state again before it sleeps.
    Working,
    /// Sleeps until a deadline that is early enough for records appended meanwhile.
    Timed,
    /// Sleeps until woken, or until a deadline that is too late for records appended meanwhile.
    Idle,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Locks the state. Ignores poisoning: a panic in a payload writer leaves at most bytes after
    /// `Buffer::sealed`, which are never read.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, SegmentTable> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn gaps(&self) -> RwLockReadGuard<'_, Gaps> {
        self.gaps.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn gaps_mut(&self) -> RwLockWriteGuard<'_, Gaps> {
        self.gaps.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the newest record that may be replayed: of a group's log, only what is committed.
    pub(crate) fn replayable(&self) -> Lsn {
        let watermark = if self.has_entries { &self.committed } else { &self.written };
        Lsn(watermark.load(Ordering::Acquire))
    }

    /// Returns the batch size that is written without waiting for more.
    pub(crate) fn write_bytes(&self) -> usize {
        WRITE_BYTES.min(self.options.buffer_bytes)
    }

    /// Allows to drop records before `before`.
    pub(crate) fn release(&self, before: Lsn) {
        let mut state = self.lock();
        state.released = state.released.max(before);
        state.retention_due = true;
        self.wakers.housekeeping.notify_one();
    }

    /// Returns the start of the log: nothing before it can be read, and after it only LSNs in gaps
    /// have no record.
    pub(crate) fn floor(&self) -> Lsn {
        let from = self.table().from();
        // A group may have taken back even what was recovered.
        let newest = || Lsn(self.appended.load(Ordering::Acquire)).min(self.recovered);
        from.unwrap_or_else(|| newest().next())
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress {
            durable: Lsn(self.durable.load(Ordering::Acquire)),
            committed: Lsn(self.committed.load(Ordering::Acquire)),
            written: Lsn(self.written.load(Ordering::Acquire)),
            writable: !self.refusing.load(Ordering::Acquire),
            wants_relief: self.lock().relief == Relief::Wanted,
            retaining: self.retaining.load(Ordering::Acquire),
        }
    }

    /// Waits for buffer space, a new segment or a failure, at most `stall_after`. Counts the
    /// waiters: frequent releases of buffer space skip the notification, a system call, when there
    /// are none.
    ///
    /// # Panics
    /// The log has no threads, and there is nothing that the caller could do.
    pub(crate) fn wait_for_space<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if let Some(do_chores) = self.do_chores {
            drop(state);
            let done = do_chores(self);
            assert!(done > 0, "a log without threads waits for space that only its caller could make");
            return self.lock();
        }
        state.waiting_for_space += 1;
        let waited = self.wakers.space.wait_timeout(state, self.options.stall_after);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiting_for_space -= 1;
        state
    }

    /// Wakes the thread that currently writes.
    pub(crate) fn wake_writer(&self, is_syncing: bool) {
        if is_syncing {
            self.wakers.relief.notify_one();
        } else {
            self.wakers.commit.notify_one();
        }
        if let Some(wake) = self.waker.get() {
            wake();
        }
    }

    /// Notifies waiters and the listener of a change of the durable LSN or the health.
    pub(crate) fn announce(&self) {
        drop(self.lock());
        self.wakers.advanced.notify_all();
        if let Some(listener) = &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            listener(self.progress());
        }
    }

    /// Stops the log: no records are accepted after this.
    pub(crate) fn fail(&self, failure: Failure) {
        {
            let mut state = self.lock();
            state.failure.get_or_insert(failure);
            self.refusing.store(true, Ordering::Release);
        }
        self.wakers.space.notify_all();
        self.wakers.housekeeping.notify_all();
        self.wakers.commit.notify_all();
        self.wakers.high_water.notify_all();
        self.wakers.relief.notify_all();
        self.announce();
    }
}

impl State {
    #[inline]
    pub(crate) fn check(&self) -> Result<(), AppendError> {
        if let Some(failure) = &self.failure {
            return Err(AppendError::Failed(failure.clone()));
        }
        if self.closing {
            return Err(AppendError::Closed);
        }
        Ok(())
    }
}

/// Waits on `condvar`. Ignores poisoning, see [`Shared::lock`].
pub(crate) fn wait<'a>(condvar: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condvar.wait(state).unwrap_or_else(PoisonError::into_inner)
}
