//! Resuming behind what is retained: subscriptions that wait for one of a few threads to make emissions again.
//!
//! ```text
//! resumption, slow reader ─► Backlogs::begin ─► a thread (remaking.rs): snapshot, segments ─► Past ─► Maker ─► Backlog ─► Cursor
//!                                                                          until the query retains what comes next ─► the query itself
//! ```
//!
//! A subscription that takes nothing gives its place up to those that wait, and asks for another one when it has taken what there was.

use crate::subscription::replay_buffer::{self, ReplayBuffer, ReplayWriter, Tell};
use crate::subscription::resume_error::ResumeError;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tidemark_engine::watch::SharedQuery;
use tidemark_log::Lsn;

/// Whoever comes back waits for a turn only behind fewer than so many others who do. Each belongs to a connection that waits with it.
const QUEUE: usize = 4096;
/// From [`QUEUE`] on those who have left are looked for each time that the queue's part of this size has come or been refused.
const SWEEP_PART: usize = 16;

/// Where a subscription goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayStart {
    /// Behind this LSN; the number is to be found.
    Behind(Lsn),
    /// Behind the emission of this number, which was at the LSN or later.
    After(u64, Lsn),
}

impl ReplayStart {
    pub(crate) fn lsn(self) -> Lsn {
        match self {
            ReplayStart::Behind(lsn) | ReplayStart::After(_, lsn) => lsn,
        }
    }
}

/// Who waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever has come back, and may be told to try again.
    Resumption,
    /// A subscription that has a place already, and has become too slow or has lost its turn. It is let in however many wait,
    /// since it would have to end otherwise; subscriptions bound them.
    Slow,
}

/// A subscription that waits for its turn, or has it.
pub(crate) struct ReplayJob {
    pub(crate) query: SharedQuery,
    pub(crate) wanted: ReplayStart,
    pub(crate) writer: ReplayWriter,
}

/// Jobs in the order in which they came.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<ReplayJob>,
    /// How many come before those who have left are looked for.
    until_sweep: usize,
}

impl Queue {
    /// Takes out those for whom nobody waits any more, if there are many and it was long ago: it costs each who comes the same,
    /// and those who have left are never many more than a part of the others.
    fn sweep(&mut self) -> VecDeque<ReplayJob> {
        if self.jobs.len() < QUEUE {
            return VecDeque::new();
        }
        // There may have been many more the last time.
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

/// Those who wait for their turn. Many of one kind do not keep those of the other from theirs.
#[derive(Default)]
struct Waiting {
    resumption: Queue,
    slow: Queue,
    /// The turn is the slow ones'.
    is_turn_of_slow: bool,
}

impl Waiting {
    fn len(&self) -> usize {
        self.resumption.jobs.len() + self.slow.jobs.len()
    }

    /// Takes the next job: of either kind in turn, if there are both.
    fn next(&mut self) -> Option<ReplayJob> {
        let Waiting { resumption, slow, is_turn_of_slow } = self;
        let (first, second) = if *is_turn_of_slow { (slow, resumption) } else { (resumption, slow) };
        *is_turn_of_slow = !*is_turn_of_slow;
        first.jobs.pop_front().or_else(|| second.jobs.pop_front())
    }
}

/// What the workers know of it, and how they ask.
pub(crate) struct ReplayQueue {
    threads: usize,
    waiting: Mutex<Waiting>,
    /// There is a job, or the threads are to end.
    changed: Condvar,
    stopping: AtomicBool,
    /// How many subscriptions are being served, and how many have ever been.
    running: AtomicUsize,
    begun: AtomicU64,
    /// What the operator was told last.
    warning: Mutex<String>,
}

impl ReplayQueue {
    /// For `threads` subscriptions at a time; 0 means that there are none.
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

    /// Lets a subscription go on with emissions that its query does not retain any more: `floor` is what it says of itself.
    pub(crate) fn begin(
        &self,
        who: Who,
        query: &SharedQuery,
        wanted: ReplayStart,
        floor: Lsn,
        tell: Tell,
    ) -> Result<ReplayBuffer, ResumeError> {
        if self.threads == 0 {
            return Err(ResumeError::Stale(floor));
        }
        let mut waiting = self.lock();
        let (queue, limit) = match who {
            Who::Resumption => (&mut waiting.resumption, QUEUE),
            Who::Slow => (&mut waiting.slow, usize::MAX),
        };
        let left = queue.sweep();
        let buffer = if queue.jobs.len() >= limit || self.is_stopping() {
            Err(ResumeError::TryAgain)
        } else {
            let (writer, buffer) = replay_buffer::channel(tell);
            queue.jobs.push_back(ReplayJob { query: query.clone(), wanted, writer });
            self.changed.notify_one();
            Ok(buffer)
        };
        drop(waiting);
        // What they hold is freed while nobody waits for the lock.
        drop(left);
        buffer
    }

    /// How many subscriptions are being served, how many wait, and how many there have been.
    pub(crate) fn figures(&self) -> (usize, usize, u64) {
        let waiting = self.lock().len();
        (self.running.load(Ordering::Relaxed), waiting, self.begun.load(Ordering::Relaxed))
    }

    /// Lets the threads end. Whoever waits is told.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Makers that nobody works for say so when they are dropped.
        let waiting = std::mem::take(&mut *self.lock());
        drop(waiting);
        self.changed.notify_all();
    }

    /// Whether there is nothing more to be had, because the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// How many subscriptions are served at a time.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Notes that what [`ReplayQueue::next`] has given is done.
    pub(crate) fn note_end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// The next job; `None` when the threads are to end.
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

    /// Whether others wait for their turn.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.lock().len() > 0
    }

    /// Tells the operator why resumptions fail, unless it is what was told last.
    pub(crate) fn warn(&self, why: &dyn std::error::Error) {
        let line = why.to_string();
        let mut last = self.warning.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != line {
            // Nobody has to listen.
            let _ = writeln!(io::stderr(), "warning: a watched read cannot resume from the log: {line}");
            *last = line;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
