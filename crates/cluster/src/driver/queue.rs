//! A queue of jobs that one thread, or one task of a simulation, works off in order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

struct QueueState<T> {
    jobs: VecDeque<T>,
    is_closed: bool,
}

pub(crate) struct JobQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
    /// Called after each change, for a worker that is not a thread.
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// What a worker finds.
pub(crate) enum Next<T> {
    Job(T),
    /// The time has passed.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

impl<T> JobQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(QueueState { jobs: VecDeque::new(), is_closed: false }),
            changed: Condvar::new(),
            waker: OnceLock::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a job. Drops it if the queue is closed.
    pub(crate) fn push(&self, job: T) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        state.jobs.push_back(job);
        drop(state);
        self.wake();
    }

    /// Accepts no more jobs; those that are queued are still worked off.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.wake();
    }

    /// Closes the queue and drops its jobs: those who wait for them are told so.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        drop(jobs);
        self.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    fn wake(&self) {
        self.changed.notify_one();
        if let Some(wake) = self.waker.get() {
            wake();
        }
    }

    /// Sets what is called after each change.
    #[cfg(test)]
    pub(crate) fn set_waker(&self, wake: Box<dyn Fn() + Send + Sync>) {
        assert!(self.waker.set(wake).is_ok(), "a queue has one worker");
    }

    /// Returns whether a task of a simulation works the queue off.
    #[cfg(test)]
    pub(crate) fn is_simulated(&self) -> bool {
        self.waker.get().is_some()
    }

    /// Returns whether there is nothing to do now.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.jobs.is_empty() && !state.is_closed
    }

    /// Takes the next job without waiting.
    pub(crate) fn try_pop(&self) -> Next<T> {
        let mut state = self.state();
        match state.jobs.pop_front() {
            Some(job) => Next::Job(job),
            None if state.is_closed => Next::Closed,
            None => Next::Nothing,
        }
    }

    /// Waits for the next job, at most `patience`.
    pub(crate) fn pop(&self, patience: Option<Duration>) -> Next<T> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Next::Job(job);
            }
            if state.is_closed {
                return Next::Closed;
            }
            match patience {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let (waited, result) =
                        self.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
                    state = waited;
                    if result.timed_out() && state.jobs.is_empty() && !state.is_closed {
                        return Next::Nothing;
                    }
                }
            }
        }
    }
}

/// Abandons a queue when its worker ends, even by a panic.
pub(crate) struct Worker<'a, T>(pub(crate) &'a JobQueue<T>);

impl<T> Drop for Worker<'_, T> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_leave_in_order_and_a_closed_queue_is_worked_off() {
        let queue = JobQueue::new();
        queue.push(1);
        queue.push(2);
        queue.close();
        queue.push(3);
        let mut seen = Vec::new();
        while let Next::Job(job) = queue.pop(None) {
            seen.push(job);
        }
        assert_eq!(seen, [1, 2]);
        assert!(matches!(queue.try_pop(), Next::Closed) && queue.is_closed());
    }

    #[test]
    fn jobs_of_a_worker_that_ends_are_dropped() {
        let queue = JobQueue::new();
        let (job, waiting) = std::sync::mpsc::channel::<()>();
        queue.push(job);
        drop(Worker(&queue));
        assert!(waiting.recv().is_err() && matches!(queue.try_pop(), Next::Closed));
    }

    #[test]
    fn a_worker_waits_no_longer_than_its_patience() {
        let queue = JobQueue::<u8>::new();
        assert!(matches!(queue.pop(Some(Duration::from_millis(1))), Next::Nothing));
    }
}
