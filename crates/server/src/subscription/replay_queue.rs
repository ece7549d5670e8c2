//! Queue of subscriptions that wait for a replay thread, because their next emissions are below
//! retention.
//!
//! ```text
//! resumption, slow reader ─► ReplayQueue::begin ─► a thread (replay.rs): snapshot, log ─► Past
//!    ─► ReplayWriter ─► ReplayBuffer ─► Cursor; once the query retains the next emission: query
//! ```
//!
//! A subscription that takes nothing yields its thread to waiting jobs, and queues again when it
//! has taken what was available.

use crate::subscription::replay_buffer::{self, Notifier, ReplayBuffer, ReplayWriter};
use crate::subscription::resume_error::ResumeError;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tidemark_engine::watch::SharedQuery;
use tidemark_log::Lsn;

/// Most queued resumptions; further ones are refused. Each belongs to a connection that waits.
const QUEUE: usize = 4096;
/// From [`QUEUE`] jobs on, abandoned jobs are removed each time that this fraction of the queue was
/// added or refused.
const SWEEP_PART: usize = 16;

/// Where a replay begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayStart {
    /// After this LSN; the emission's number is not known yet.
    Behind(Lsn),
    /// After the emission with this number, whose LSN is at least the given one.
    After(u64, Lsn),
}

impl ReplayStart {
    pub(crate) fn lsn(self) -> Lsn {
        match self {
            ReplayStart::Behind(lsn) | ReplayStart::After(_, lsn) => lsn,
        }
    }
}

/// Kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayReason {
    /// A client that resumes. It may be refused and try again.
    Resumption,
    /// A subscription that is too slow, or that had to yield its thread. It is never refused,
    /// because it would have to end; the limit on subscriptions bounds these jobs.
    Slow,
}

/// A replay that waits for a thread or runs.
pub(crate) struct ReplayJob {
    pub(crate) query: SharedQuery,
    pub(crate) wanted: ReplayStart,
    pub(crate) writer: ReplayWriter,
}

/// Jobs in order of arrival.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<ReplayJob>,
    /// Jobs to add until the next sweep.
    until_sweep: usize,
}

impl Queue {
    /// Removes jobs whose subscriber has left, from a long queue and not too often. The cost is
    /// amortized O(1) per job, and abandoned jobs stay a small fraction of the queue.
    fn sweep(&mut self) -> VecDeque<ReplayJob> {
        if self.jobs.len() < QUEUE {
            return VecDeque::new();
        }
        // The queue may have been much longer at the last sweep.
        self.until_sweep = self.until_sweep.min(self.jobs.len() / SWEEP_PART);
        if self.until_sweep > 0 {
            self.until_sweep -= 1;
            return VecDeque::new();
        }
        let (left, waiting) =
            std::mem::take(&mut self.jobs).into_iter().partition(|job| job.writer.is_left());
        self.jobs = waiting;
        self.until_sweep = self.jobs.len() / SWEEP_PART;
        left
    }
}

/// Waiting jobs by kind. Many of one kind do not starve the other.
#[derive(Default)]
struct Waiting {
    resumption: Queue,
    slow: Queue,
    /// The next turn is a slow subscription's.
    is_turn_of_slow: bool,
}

impl Waiting {
    fn len(&self) -> usize {
        self.resumption.jobs.len() + self.slow.jobs.len()
    }

    /// Takes the next job, alternating between the kinds.
    fn next(&mut self) -> Option<ReplayJob> {
        let Waiting { resumption, slow, is_turn_of_slow } = self;
        let (first, second) = if *is_turn_of_slow { (slow, resumption) } else { (resumption, slow) };
        *is_turn_of_slow = !*is_turn_of_slow;
        first.jobs.pop_front().or_else(|| second.jobs.pop_front())
    }
}

/// The queue, its limits and its figures.
pub(crate) struct ReplayQueue {
    threads: usize,
    waiting: Mutex<Waiting>,
    /// Signalled when a job was added or the threads are to end.
    changed: Condvar,
    stopping: AtomicBool,
    /// Number of running replays, and of all that ever began.
    running: AtomicUsize,
    begun: AtomicU64,
    /// The last warning to the operator.
    warning: Mutex<String>,
}

impl ReplayQueue {
    /// Creates a queue for `threads` replays at a time; 0 disables replays.
    pub(crate) fn new(threads: usize) -> ReplayQueue {
        ReplayQueue {
            threads,
            waiting: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            warning: Mutex::default(),
        }
    }

    /// Queues a replay. `floor` is the query's retention floor, for the error if replays are
    /// disabled.
    pub(crate) fn begin(
        &self,
        reason: ReplayReason,
        query: &SharedQuery,
        wanted: ReplayStart,
        floor: Lsn,
        notifier: Notifier,
    ) -> Result<ReplayBuffer, ResumeError> {
        if self.threads == 0 {
            return Err(ResumeError::Stale(floor));
        }
        let mut waiting = self.lock();
        let (queue, limit) = match reason {
            ReplayReason::Resumption => (&mut waiting.resumption, QUEUE),
            ReplayReason::Slow => (&mut waiting.slow, usize::MAX),
        };
        let left = queue.sweep();
        let buffer = if queue.jobs.len() >= limit || self.is_stopping() {
            Err(ResumeError::TryAgain)
        } else {
            let (writer, buffer) = replay_buffer::channel(notifier);
            queue.jobs.push_back(ReplayJob { query: query.clone(), wanted, writer });
            self.changed.notify_one();
            Ok(buffer)
        };
        drop(waiting);
        // Freed without the lock.
        drop(left);
        buffer
    }

    /// Number of running, waiting and ever begun replays.
    pub(crate) fn figures(&self) -> (usize, usize, u64) {
        let waiting = self.lock().len();
        (self.running.load(Ordering::Relaxed), waiting, self.begun.load(Ordering::Relaxed))
    }

    /// Ends the threads. Waiting subscriptions are notified.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Dropping a writer notifies its subscription.
        let waiting = std::mem::take(&mut *self.lock());
        drop(waiting);
        self.changed.notify_all();
    }

    /// Whether the server stops, which ends all replays.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Number of replays that can run at a time.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Notes that a job from [`ReplayQueue::next`] is done.
    pub(crate) fn note_end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits for the next job; `None` when the threads are to end.
    pub(crate) fn next(&self) -> Option<ReplayJob> {
        let mut waiting = self.lock();
        loop {
            if self.is_stopping() {
                return None;
            }
            if let Some(job) = waiting.next() {
                self.running.fetch_add(1, Ordering::Relaxed);
                self.begun.fetch_add(1, Ordering::Relaxed);
                return Some(job);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether jobs wait for a thread.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.lock().len() > 0
    }

    /// Warns the operator why a replay failed, unless it is the last warning again.
    pub(crate) fn warn(&self, why: &dyn std::error::Error) {
        let line = why.to_string();
        let mut last = self.warning.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != line {
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "warning: a watched read cannot resume from the log: {line}");
            *last = line;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
