//! What the caller holds of a watch.

use crate::error::Error;
use crate::event::Event;
use crate::follower::{Follower, Message};
use crate::position::Position;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages between the task and the caller. Few: what has arrived waits before, in the connection.
const MESSAGES_MAX: usize = 16;

/// A read that is watched: a [`Stream`] of [`Event`]s. It ends behind an error, after which nothing could come any more; until
/// then it connects anew whenever it must. Dropping it ends the subscription.
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

    /// The next event; `None` behind an error. It may be dropped before it is ready: nothing is lost by that.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Where the watch is behind the last event that was taken from it: [`Client::resume`](crate::Client::resume) goes on from
    /// there. `None` before the first.
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
