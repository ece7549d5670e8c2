//! The caller's side of a watch.

use crate::error::Error;
use crate::event::Event;
use crate::follower::{Follower, Message};
use crate::position::Position;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages between the task and the caller. Few, because events queue in the connection first.
const MESSAGES_MAX: usize = 16;

/// A watched read: a [`Stream`] of [`Event`]s. It ends after an error, which is final; before that
/// it reconnects whenever it must. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Watch {
    messages: mpsc::Receiver<Message>,
    task: JoinHandle<()>,
    position: Option<Position>,
}

impl Watch {
    pub(crate) fn start(
        follower: impl FnOnce(mpsc::Sender<Message>) -> Follower,
        position: Option<Position>,
    ) -> Watch {
        let (sender, messages) = mpsc::channel(MESSAGES_MAX);
        let task = tokio::spawn(follower(sender).run());
        Watch { messages, task, position }
    }

    /// Returns the next event; `None` after an error. Cancel safe: dropping the future loses no
    /// event.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the position after the last event that was taken:
    /// [`Client::resume`](crate::Client::resume) continues from it. `None` before the first event.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }
}

impl Stream for Watch {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(message) = ready!(self.messages.poll_recv(cx)) else { return Poll::Ready(None) };
        Poll::Ready(Some(match message {
            Message::Snapshot(position, snapshot) => {
                self.position = Some(*position);
                Ok(Event::Snapshot(snapshot))
            }
            Message::Emission(emission) => {
                if let Some(position) = &mut self.position {
                    (position.lsn, position.seq) = (emission.lsn, emission.seq);
                }
                Ok(Event::Emission(emission))
            }
            Message::Failed(error) => Err(error),
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
