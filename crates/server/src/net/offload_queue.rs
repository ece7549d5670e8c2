//! The queue of long commands that run beside the event loops.

use crate::net::connection_id::ConnectionId;
use crate::net::outbox::Until;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tidemark_engine::{Command, Reply};
use tidemark_log::Lsn;

/// A long command.
pub(super) struct OffloadJob {
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
    pub(super) reply: Reply,
    pub(super) lsn: Option<Lsn>,
    pub(super) held_until: Option<Until>,
}

/// Queue of long commands. Bounded by the clients, each of which waits for its own.
#[derive(Default)]
pub(crate) struct OffloadQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
    begun: AtomicU64,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<OffloadJob>,
    is_stopping: bool,
}

impl OffloadQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next command; `None` once the queue is empty and stopped.
    pub(super) fn next(&self) -> Option<OffloadJob> {
        let is_idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.is_stopping;
        let waited = self.changed.wait_while(self.lock(), is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).jobs.pop_front()
    }

    /// Adds a command. Returns `false` if the queue is stopped.
    pub(super) fn push(&self, job: OffloadJob) -> bool {
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

    /// Number of commands offloaded so far.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Ends the threads after the queued commands.
    pub(crate) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }
}
