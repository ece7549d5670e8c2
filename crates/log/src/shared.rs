//! What the appenders, the commit thread and the housekeeper share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use crate::buffer::Buffer;
use crate::error::{AppendError, Failure, Stall};
use crate::format::Codec;
use crate::gap::Gaps;
use crate::random::Random;
use crate::ready::Ready;
use crate::relief::Relief;
use crate::segment::SegmentTable;
use crate::stopwatch::Stopwatch;
use crate::storage::Storage;
use crate::{Durability, Lsn, Options};

/// How far the log has come, as told to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Everything up to here survives a power failure.
    pub durable: Lsn,
    /// Everything up to here survives the end of this process.
    pub written: Lsn,
    /// Whether the log accepts records.
    pub writable: bool,
    /// Whether a snapshot is wanted, so that old segments can go before the disk is full: see
    /// [`Log::offer_relief`](crate::Log::offer_relief).
    pub wants_relief: bool,
    /// Whether old segments stay that should have gone: see [`Log::retention_failure`](crate::Log::retention_failure).
    pub retaining: bool,
}

/// Whether the log accepts records, and why not.
#[derive(Clone, Debug)]
pub enum Health {
    /// It does.
    Ok,
    /// There is no space for the next segment; the log tries again by itself.
    Full(Failure),
    /// The storage does not answer; the log goes on when it does.
    Stalled(Stall),
    /// A write or sync failed; only a restart helps.
    Failed(Failure),
}

/// A write of this size costs little more a byte than a larger one.
pub(crate) const WRITE_BYTES: usize = 1 << 20;

pub(crate) type Listener = Box<dyn Fn(Progress) + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Options,
    pub(crate) codec: &'static dyn Codec,
    pub(crate) state: Mutex<State>,
    /// The commit thread sleeps here.
    pub(crate) work: Condvar,
    /// The thread that writes while another syncs sleeps here.
    pub(crate) relief: Condvar,
    /// The housekeeper sleeps here.
    pub(crate) chores: Condvar,
    /// Appenders that wait for buffer or segment space sleep here.
    pub(crate) space: Condvar,
    /// Waiters for durability sleep here.
    pub(crate) advanced: Condvar,
    /// The thread that notes the high-water mark sleeps here before it does.
    pub(crate) ending: Condvar,
    pub(crate) appended: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) durable: AtomicU64,
    pub(crate) refusing: AtomicBool,
    /// Whether [`State::stall`] is there.
    pub(crate) stalled: AtomicBool,
    /// Bytes of the log that this process has written.
    pub(crate) written_bytes: AtomicU64,
    /// The size of the newest snapshot, and what was written when it was begun.
    pub(crate) snapshot_bytes: AtomicU64,
    pub(crate) snapshot_at_bytes: AtomicU64,
    /// Since when appenders should wait.
    pub(crate) crowded: Stopwatch,
    /// The write, the sync and the housekeeper's call of the storage that are under way.
    pub(crate) writing: Stopwatch,
    pub(crate) syncing: Stopwatch,
    pub(crate) keeping: Stopwatch,
    /// Whether [`State::retention_failure`] is there.
    pub(crate) retaining: AtomicBool,
    pub(crate) segments: Mutex<SegmentTable>,
    /// The newest record of earlier processes, behind which the log begins as long as it has no segment.
    pub(crate) recovered: Lsn,
    /// The gaps that are known: those of the segments that were there at the start, and that which the start has made.
    pub(crate) gaps: Gaps,
    pub(crate) listener: RwLock<Option<Listener>>,
}

/// Everything under the one mutex that an append takes.
pub(crate) struct State {
    /// The LSN that the next record gets.
    pub(crate) next: Lsn,
    /// Admission time of the newest record.
    pub(crate) time_us: u64,
    pub(crate) buffer: Buffer,
    /// Where the end of `buffer` will be on disk; `None` before the first segment.
    pub(crate) position: Option<Position>,
    /// Segments prepared for use.
    pub(crate) ready: VecDeque<Ready>,
    /// A small segment for records that were on their way when the disk was found full: whoever appends has changed
    /// its state already and cannot be refused any more.
    pub(crate) reserve: Option<Ready>,
    /// Room that large records were promised which are not appended yet: the sum of all [`Room`](crate::Room)s.
    pub(crate) promised_bytes: u64,
    /// How many appenders sleep until there is more space: see [`Shared::wait_for_space`].
    pub(crate) waiting_for_space: usize,
    /// Whether the listener is to be told of the next segment, because a large record awaits it.
    pub(crate) is_room_awaited: bool,
    /// A segment of at least this capacity is wanted.
    pub(crate) wanted_bytes: Option<u64>,
    pub(crate) parked: Parked,
    /// A thread syncs that has let go of the committer: what is to be written is the relief's.
    pub(crate) is_syncing: bool,
    pub(crate) sync_wanted: Lsn,
    /// Whoever is told of records up to here waits until they are written.
    pub(crate) write_wanted: Lsn,
    pub(crate) durability: Durability,
    /// Records before this may be dropped.
    pub(crate) released: Lsn,
    /// The last record of the newest segment that has a successor, and so is durable; 0 if this process has begun none.
    pub(crate) sealed: Lsn,
    /// Retention has something to look at.
    pub(crate) retention_due: bool,
    /// Why an old segment stays that should have gone.
    pub(crate) retention_failure: Option<Failure>,
    pub(crate) closing: bool,
    pub(crate) closed: bool,
    pub(crate) failure: Option<Failure>,
    pub(crate) full: Option<Failure>,
    pub(crate) relief: Relief,
    pub(crate) stall: Option<Stall>,
    pub(crate) random: Random,
}

/// The end of what is accepted, in terms of the segment that will hold it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) offset: u64,
    /// Frames end at or before this; room for closing markers lies behind it.
    pub(crate) capacity: u64,
    pub(crate) salt: u32,
    pub(crate) created_us: u64,
}

/// What the thread that writes is doing, so that an appender pays for a wake-up only when one is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// Looks at the state again before it sleeps.
    Working,
    /// Sleeps until a deadline that suits whatever is appended meanwhile.
    Timed,
    /// Sleeps until woken, or until a deadline too far away for what is appended meanwhile.
    Idle,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Shared {
    /// A panic in a payload writer leaves at most bytes behind `Buffer::sealed`, which nobody reads.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, SegmentTable> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This much is written without waiting for more.
    pub(crate) fn write_bytes(&self) -> usize {
        WRITE_BYTES.min(self.options.buffer_bytes)
    }

    /// Where the log begins: nothing before it can be read, and nothing behind it is missing that is not lost.
    pub(crate) fn floor(&self) -> Lsn {
        self.table().from().unwrap_or(self.recovered.next())
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress {
            durable: Lsn(self.durable.load(Ordering::Acquire)),
            written: Lsn(self.written.load(Ordering::Acquire)),
            writable: !self.refusing.load(Ordering::Acquire),
            wants_relief: self.lock().relief == Relief::Wanted,
            retaining: self.retaining.load(Ordering::Acquire),
        }
    }

    /// Sleeps until there may be more space in the buffer, another segment, or a failure, or for `stall_after`. Whoever only makes room in the
    /// buffer, which happens many times a second, tells nobody if nobody is counted here: each telling is a system call.
    pub(crate) fn wait_for_space<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting_for_space += 1;
        let waited = self.space.wait_timeout(state, self.options.stall_after);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiting_for_space -= 1;
        state
    }

    /// Wakes the thread that writes at the moment.
    pub(crate) fn wake_writer(&self, is_syncing: bool) {
        if is_syncing { self.relief.notify_one() } else { self.work.notify_one() }
    }

    /// Tells waiters and the listener that the durable LSN or the health changed.
    pub(crate) fn announce(&self) {
        drop(self.lock());
        self.advanced.notify_all();
        if let Some(listener) = &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            listener(self.progress());
        }
    }

    /// Ends the log's acceptance of records for ever.
    pub(crate) fn fail(&self, failure: Failure) {
        {
            let mut state = self.lock();
            state.failure.get_or_insert(failure);
            self.refusing.store(true, Ordering::Release);
        }
        self.space.notify_all();
        self.chores.notify_all();
        self.work.notify_all();
        self.ending.notify_all();
        self.relief.notify_all();
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

/// Sleeps on `condvar`. A panic elsewhere does not matter, see [`Shared::lock`].
pub(crate) fn wait<'a>(condvar: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condvar.wait(state).unwrap_or_else(PoisonError::into_inner)
}
