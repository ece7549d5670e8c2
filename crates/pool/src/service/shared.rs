//! What callers share with the thread that has the pool.

use super::callback::Callback;
use super::error::CallError;
use super::inbox::{Asked, Call, Inbox};
use super::reply::Reply;
use super::request::Outcome;
use super::slot::Slot;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What callers share with the thread.
pub(super) struct Shared {
    pub(super) inbox: Inbox,
    /// Slots that no call has.
    slots: Mutex<Vec<Arc<Slot>>>,
}

impl Shared {
    pub(super) fn new(queue: usize) -> Self {
        Self { inbox: Inbox::new(queue), slots: Mutex::default() }
    }

    /// Has something done, and keeps the thread waiting until it is answered.
    pub(super) fn call_and_wait(&self, asked: Asked) -> Outcome {
        if self.inbox.is_owner() {
            return Err(CallError::InCallback);
        }
        let slot = Slot::of_this_thread();
        self.inbox.hurry();
        match self.inbox.push(Call { asked, reply: Reply::in_slot(Arc::clone(&slot)) }) {
            Ok(()) => slot.wait(),
            Err((call, error)) => {
                call.reply.forget();
                Err(error)
            }
        }
    }

    /// Has something done, and calls a function with the outcome.
    pub(super) fn call_with(&self, asked: Asked, then: impl FnOnce(Outcome) + Send + 'static) {
        let reply = Reply::by_callback(Callback::new(then));
        if let Err((call, error)) = self.inbox.push(Call { asked, reply }) {
            call.reply.answer(Err(error));
        }
    }

    /// A slot for a call.
    pub(super) fn take_slot(&self) -> Arc<Slot> {
        self.slots().pop().unwrap_or_default()
    }

    /// Keeps a slot for later, whose answer was taken or will never come.
    pub(super) fn give_back(&self, slot: Arc<Slot>) {
        let mut slots = self.slots();
        // More than that are used only where answers are left lying.
        if slots.len() < self.inbox.capacity() {
            slots.push(slot);
        }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
