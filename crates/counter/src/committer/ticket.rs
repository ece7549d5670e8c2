//! A one-shot answer for a waiting thread.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// A slot for one answer, which is set once and stays.
#[derive(Debug)]
pub(crate) struct Ticket<T> {
    answer: Mutex<Option<T>>,
    given: Condvar,
}

impl<T> Default for Ticket<T> {
    fn default() -> Self {
        Self { answer: Mutex::new(None), given: Condvar::new() }
    }
}

impl<T: Clone> Ticket<T> {
    /// Sets the answer, unless there is one.
    pub(crate) fn answer(&self, answer: T) {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(answer);
        self.given.notify_all();
    }

    /// Returns the answer, if it is set.
    pub(crate) fn peek(&self) -> Option<T> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the answer; returns `None` at `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> Option<T> {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        while answer.is_none() {
            let left = deadline.checked_duration_since(Instant::now())?;
            (answer, _) = self.given.wait_timeout(answer, left).unwrap_or_else(PoisonError::into_inner);
        }
        answer.clone()
    }
}
