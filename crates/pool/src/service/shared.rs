//! State shared by callers and the thread that owns the pool.

use super::callback::Callback;
use super::error::CallError;
use super::inbox::{Asked, Call, Inbox};
use super::reply::Reply;
use super::request::Outcome;
use super::slot::Slot;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct Shared {
    pub(super) inbox: Inbox,
    /// Free slots.
    slots: Mutex<Vec<Arc<Slot>>>,
}

impl Shared {
    pub(super) fn new(queue: usize) -> Self {
        Self { inbox: Inbox::new(queue), slots: Mutex::default() }
    }

    /// Makes a call, and blocks the thread until it is answered.
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

    /// Makes a call, and calls a function with the outcome.
    pub(super) fn call_with(&self, asked: Asked, then: impl FnOnce(Outcome) + Send + 'static) {
        let reply = Reply::by_callback(Callback::new(then));
        if let Err((call, error)) = self.inbox.push(Call { asked, reply }) {
            call.reply.answer(Err(error));
        }
    }

    pub(super) fn take_slot(&self) -> Arc<Slot> {
        self.slots().pop().unwrap_or_default()
    }

    /// Returns a slot for reuse; its answer was taken or will never come.
    pub(super) fn give_back(&self, slot: Arc<Slot>) {
        let mut slots = self.slots();
        // More slots are in use only if answers are not taken.
        if slots.len() < self.inbox.capacity() {
            slots.push(slot);
        }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
