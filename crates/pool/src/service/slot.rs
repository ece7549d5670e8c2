//! Slots: hold an answer until the caller takes it.
//!
//! A slot belongs to one call until its answer is taken. So no answer is lost, and no other caller
//! sees it.

use super::request::Outcome;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Thread};

#[derive(Default)]
pub(super) struct Slot(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    answer: Option<Outcome>,
    waiter: Option<Waiter>,
}

pub(super) enum Waiter {
    Thread(Thread),
    Task(Waker),
}

thread_local! {
    /// Slot of this thread's blocking calls: a thread waits for one at a time.
    static OWN: Arc<Slot> = Arc::default();
}

impl Slot {
    /// Returns the slot of this thread, for a blocking call.
    pub(super) fn of_this_thread() -> Arc<Self> {
        OWN.try_with(Arc::clone).unwrap_or_default()
    }

    /// Puts the answer in and returns the waiter to wake.
    #[must_use]
    pub(super) fn put(&self, outcome: Outcome) -> Option<Waiter> {
        let mut contents = self.contents();
        assert!(contents.answer.is_none(), "a slot of one call has been given an answer before");
        contents.answer = Some(outcome);
        contents.waiter.take()
    }

    /// Blocks the thread until the answer arrives, and takes it.
    pub(super) fn wait(&self) -> Outcome {
        loop {
            let mut contents = self.contents();
            if let Some(answer) = contents.answer.take() {
                contents.waiter = None;
                return answer;
            }
            contents.waiter = Some(Waiter::Thread(thread::current()));
            drop(contents);
            thread::park();
        }
    }

    /// Takes the answer, or registers the task to be woken.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Outcome> {
        let mut contents = self.contents();
        if let Some(answer) = contents.answer.take() {
            return Poll::Ready(answer);
        }
        match &mut contents.waiter {
            Some(Waiter::Task(waker)) => waker.clone_from(context.waker()),
            waiter => *waiter = Some(Waiter::Task(context.waker().clone())),
        }
        Poll::Pending
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    pub(super) fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}
