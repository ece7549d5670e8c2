//! Pending calls: futures to be awaited or waited for.

use super::error::CallError;
use super::inbox::{Asked, Call};
use super::reply::Reply;
use super::request::{Outcome, draw_of};
use super::shared::Shared;
use super::slot::Slot;
use crate::pool::Draw;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A pending call. It is queued when it is created, if the queue has room, otherwise when it is
/// polled.
///
/// A queued call is executed and logged even if this is dropped.
#[must_use = "the answer is there when this is awaited, or waited for"]
pub struct Calling {
    shared: Arc<Shared>,
    stage: Stage,
}

enum Stage {
    /// The queue had no room.
    Unasked(Asked),
    Asked(Arc<Slot>),
    /// The queue is closed.
    Refused(CallError),
    Over,
}

impl Calling {
    pub(super) fn new(shared: Arc<Shared>, asked: Asked) -> Self {
        let mut calling = Self { shared, stage: Stage::Unasked(asked) };
        calling.ask(None);
        calling
    }

    /// Blocks the thread until the answer arrives.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn wait(mut self) -> Outcome {
        if self.shared.inbox.is_owner() {
            return Err(CallError::InCallback);
        }
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Unasked(asked) => self.shared.call_and_wait(asked),
            Stage::Asked(slot) => {
                self.shared.inbox.hurry();
                let outcome = slot.wait();
                self.shared.give_back(slot);
                outcome
            }
            Stage::Refused(error) => Err(error),
            Stage::Over => unreachable!("a future that has given its answer cannot be waited for"),
        }
    }

    /// Queues the call if it is not queued yet.
    fn ask(&mut self, context: Option<&Context<'_>>) {
        let Stage::Unasked(asked) = std::mem::replace(&mut self.stage, Stage::Over) else { return };
        let slot = self.shared.take_slot();
        let call = Call { asked, reply: Reply::in_slot(Arc::clone(&slot)) };
        self.stage = match self.shared.inbox.try_push(call, context) {
            Ok(()) => Stage::Asked(slot),
            Err((call, error)) => {
                let Call { asked, reply } = call;
                reply.forget();
                self.shared.give_back(slot);
                if error == CallError::Full { Stage::Unasked(asked) } else { Stage::Refused(error) }
            }
        };
    }
}

impl Future for Calling {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        if matches!(self.stage, Stage::Unasked(_)) {
            self.ask(Some(context));
        }
        let outcome = match &self.stage {
            Stage::Unasked(_) => return Poll::Pending,
            Stage::Asked(slot) => ready!(slot.poll(context)),
            Stage::Refused(error) => Err(error.clone()),
            Stage::Over => panic!("a future that has given its answer is polled again"),
        };
        if let Stage::Asked(slot) = std::mem::replace(&mut self.stage, Stage::Over) {
            self.shared.give_back(slot);
        }
        Poll::Ready(outcome)
    }
}

impl fmt::Debug for Calling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calling")
    }
}

/// A pending draw: a [`Calling`] whose answer is a draw.
#[derive(Debug)]
#[must_use = "what was drawn is there when this is awaited, or waited for"]
pub struct Drawing(pub(super) Calling);

impl Drawing {
    /// Blocks the thread until the answer arrives.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn wait(self) -> Result<Draw, CallError> {
        draw_of(self.0.wait())
    }
}

impl Future for Drawing {
    type Output = Result<Draw, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(draw_of)
    }
}
