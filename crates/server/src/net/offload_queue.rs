//! The queue of work that runs beside the event loops: long commands, or migrations.

use crate::net::connection_id::ConnectionId;
use crate::net::outbox::Until;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tidemark_engine::{Command, Reply};
use tidemark_log::Lsn;

/// A long command.
pub(crate) struct OffloadJob {
    pub(super) command: &'static Command,
    pub(super) args: Vec<Box<[u8]>>,
    pub(super) db: u8,
    /// Has the limit and the memory budget of the client's reply.
    pub(super) reply: Reply,
    pub(super) worker: usize,
    pub(super) client: ConnectionId,
}

/// Result of a long command.
pub(crate) struct OffloadResult {
    pub(crate) reply: Reply,
    pub(crate) lsn: Option<Lsn>,
    pub(crate) held_until: Option<Until>,
}

/// Queue of such work. Bounded by the clients, each of which waits for its own.
pub(crate) struct OffloadQueue<J> {
    queue: Mutex<Queue<J>>,
    changed: Condvar,
    begun: AtomicU64,
}

struct Queue<J> {
    jobs: VecDeque<J>,
    is_stopping: bool,
}

impl<J> Default for OffloadQueue<J> {
    fn default() -> Self {
        let queue = Mutex::new(Queue { jobs: VecDeque::new(), is_stopping: false });
        Self { queue, changed: Condvar::new(), begun: AtomicU64::new(0) }
    }
}

impl<J> OffloadQueue<J> {
    fn lock(&self) -> MutexGuard<'_, Queue<J>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job; `None` once the queue is empty and stopped.
    pub(crate) fn next(&self) -> Option<J> {
        let is_idle = |queue: &mut Queue<J>| queue.jobs.is_empty() && !queue.is_stopping;
        let waited = self.changed.wait_while(self.lock(), is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).jobs.pop_front()
    }

    /// Adds a job. Returns `false` if the queue is stopped.
    pub(crate) fn push(&self, job: J) -> bool {
        {
            let mut queue = self.lock();
            if queue.is_stopping {
                return false;
            }
            queue.jobs.push_back(job);
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        true
    }

    /// Number of jobs so far.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Ends the threads after the queued jobs.
    pub(crate) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }
}
