//! A follower of the log for those who await its changes, many at a time.

use std::sync::Arc;
use tidemark_changes::{End, Feed, Follower, Format, NotFollowed, Selection};
use tidemark_log::Lsn;
use tokio::sync::Notify;

use crate::outlet::Message;

/// The most messages passed on together.
const BATCH_MESSAGES: usize = 512;
/// As much of them, unless a single one is larger: below what brokers take at once by default. Bytes.
const BATCH_BYTES: usize = 512 << 10;

/// See the module's documentation.
pub(crate) struct Supply {
    follower: Arc<Follower>,
    called: Arc<Notify>,
    /// What did not fit into the last batch.
    next: Option<Message>,
}

impl Supply {
    /// The changes behind `seen`.
    pub(crate) fn follow(
        feed: &Feed,
        seen: Lsn,
        selection: &Selection,
        format: Format,
    ) -> Result<Supply, NotFollowed> {
        let called = Arc::new(Notify::new());
        let waker = Arc::clone(&called);
        let follower = feed.follow(seen, selection.clone(), format, Box::new(move || waker.notify_one()))?;
        Ok(Supply { follower: Arc::new(follower), called, next: None })
    }

    /// Who follows.
    pub(crate) fn follower(&self) -> &Arc<Follower> {
        &self.follower
    }

    /// The next changes, at least one. Nothing is lost if it is not waited for to the end.
    pub(crate) async fn batch(&mut self) -> Result<Vec<Message>, End> {
        loop {
            let batch = self.take();
            if !batch.is_empty() {
                return Ok(batch);
            }
            if let Some(end) = self.follower.end() {
                return Err(end);
            }
            self.called.notified().await;
        }
    }

    fn take(&mut self) -> Vec<Message> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_MESSAGES {
            let Some(message) = self.next.take().or_else(|| self.follower.next().map(Message::from)) else {
                break;
            };
            if !batch.is_empty() && bytes + message.payload.len() > BATCH_BYTES {
                self.next = Some(message);
                break;
            }
            bytes += message.payload.len();
            batch.push(message);
        }
        batch
    }
}
