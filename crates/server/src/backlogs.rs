//! Resuming behind what is retained: a few threads that make emissions again, from snapshots and the log's segments, for as many
//! subscriptions at a time. Others wait for their turn.
//!
//! ```text
//! resumption, slow reader ─► Backlogs::begin ─► a thread: snapshot, segments ─► Past ─► Maker ─► Backlog ─► Cursor
//!                                                            until the query retains what comes next ─► the query itself
//! ```
//!
//! A subscription that takes nothing gives its place up to those that wait, and asks for another one when it has taken what there was.

use crate::backlog::{self, Backlog, Maker, Tell};
use crate::not_resumed::NotResumed;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tidemark_engine::query::SharedQuery;
use tidemark_log::Lsn;

/// Whoever comes back waits for a turn only behind fewer than so many others. Each belongs to a connection that waits with it.
const QUEUE: usize = 4096;
/// Where a subscription goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Behind this LSN; the number is to be found.
    Behind(Lsn),
    /// Behind the emission of this number, which was at the LSN or later.
    After(u64, Lsn),
}

impl Wanted {
    pub(crate) fn lsn(self) -> Lsn {
        match self {
            Wanted::Behind(lsn) | Wanted::After(_, lsn) => lsn,
        }
    }
}

/// A subscription that waits for its turn, or has it.
pub(crate) struct Job {
    pub(crate) query: SharedQuery,
    pub(crate) wanted: Wanted,
    pub(crate) maker: Maker,
}

/// What the workers know of it, and how they ask.
pub(crate) struct Backlogs {
    threads: usize,
    jobs: Mutex<VecDeque<Job>>,
    /// There is a job, or the threads are to end.
    changed: Condvar,
    stopping: AtomicBool,
    /// How many subscriptions are being served, and how many have ever been.
    running: AtomicUsize,
    begun: AtomicU64,
    /// What the operator was told last.
    warning: Mutex<String>,
}

impl Backlogs {
    /// For `threads` subscriptions at a time; 0 means that there are none.
    pub(crate) fn new(threads: usize) -> Backlogs {
        Backlogs {
            threads,
            jobs: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            warning: Mutex::default(),
        }
    }

    /// Lets somebody come back who wants emissions that the query does not retain any more: `floor` is what it says of itself.
    pub(crate) fn begin(
        &self,
        query: &SharedQuery,
        wanted: Wanted,
        floor: Lsn,
        tell: Tell,
    ) -> Result<Backlog, NotResumed> {
        self.queue(query, wanted, floor, tell, QUEUE)
    }

    /// The same for a subscription that has been there, and has become too slow. It is let in however many wait, since it would
    /// have to end otherwise; there are no more of them than of subscriptions.
    pub(crate) fn go_on(
        &self,
        query: &SharedQuery,
        wanted: Wanted,
        floor: Lsn,
        tell: Tell,
    ) -> Result<Backlog, NotResumed> {
        self.queue(query, wanted, floor, tell, usize::MAX)
    }

    fn queue(
        &self,
        query: &SharedQuery,
        wanted: Wanted,
        floor: Lsn,
        tell: Tell,
        limit: usize,
    ) -> Result<Backlog, NotResumed> {
        if self.threads == 0 {
            return Err(NotResumed::Stale(floor));
        }
        // Dropped last, when nothing is locked: their makers tell somebody.
        let mut _left = VecDeque::new();
        let mut jobs = self.lock();
        if jobs.len() >= QUEUE && jobs.len().is_power_of_two() {
            // Often enough that those who have left are never more than the others.
            _left = take_left(&mut jobs);
        }
        if jobs.len() >= limit || self.is_stopping() {
            return Err(NotResumed::TryAgain);
        }
        let (maker, backlog) = backlog::channel(tell);
        jobs.push_back(Job { query: query.clone(), wanted, maker });
        drop(jobs);
        self.changed.notify_one();
        Ok(backlog)
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
        let jobs = std::mem::take(&mut *self.lock());
        drop(jobs);
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

    /// Notes that what [`Backlogs::next`] has given is done.
    pub(crate) fn note_end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// The next job; `None` when the threads are to end.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            if self.is_stopping() {
                return None;
            }
            if let Some(job) = jobs.pop_front() {
                self.running.fetch_add(1, Ordering::Relaxed);
                self.begun.fetch_add(1, Ordering::Relaxed);
                return Some(job);
            }
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether others wait for their turn.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.lock().is_empty()
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

    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes out those for whom nobody waits any more.
fn take_left(jobs: &mut VecDeque<Job>) -> VecDeque<Job> {
    let (left, waiting) = std::mem::take(jobs).into_iter().partition(|job| job.maker.is_left());
    *jobs = waiting;
    left
}
