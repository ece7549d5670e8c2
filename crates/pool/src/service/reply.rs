//! Destination of an answer. Each call is answered once, even if the service panics.

use super::callback::Callback;
use super::error::CallError;
use super::request::Outcome;
use super::slot::Slot;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Destination of an answer. Dropped unanswered, it answers that the service's thread has panicked:
/// nothing else drops it.
pub(super) struct Reply(To);

enum To {
    Callback(Callback),
    Slot(Arc<Slot>),
    /// It has been answered.
    Answered,
}

impl Reply {
    pub(super) fn by_callback(callback: Callback) -> Self {
        Self(To::Callback(callback))
    }

    pub(super) fn in_slot(slot: Arc<Slot>) -> Self {
        Self(To::Slot(slot))
    }

    #[inline]
    pub(super) fn answer(mut self, outcome: Outcome) {
        self.send(outcome);
    }

    /// Drops a call that was not queued, without an answer; its caller has the error already.
    pub(super) fn forget(mut self) {
        self.0 = To::Answered;
    }

    #[inline]
    fn send(&mut self, outcome: Outcome) {
        match mem::replace(&mut self.0, To::Answered) {
            To::Callback(callback) => foreign(|| callback.call(outcome)),
            To::Slot(slot) => {
                if let Some(waiter) = slot.put(outcome) {
                    foreign(|| waiter.wake());
                }
            }
            To::Answered => {}
        }
    }
}

/// Runs a callback or a waker of the caller. The panic hook reports one that panics; the other
/// calls are answered all the same.
#[inline]
fn foreign(run: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(run));
}

impl Drop for Reply {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.0, To::Answered) {
            self.send(Err(CallError::Panicked));
        }
    }
}
