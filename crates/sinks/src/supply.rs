//! Batches of changes from a follower, for asynchronous consumers.

use std::sync::Arc;
use tidemark_changes::{End, Feed, Follower, Format, NotFollowed, Selection};
use tidemark_log::Lsn;
use tokio::sync::Notify;

use crate::outlet::Message;
use crate::status::Status;

/// Most messages of a batch.
const BATCH_MESSAGES: usize = 512;
/// Most payload bytes of a batch, unless a single message is larger: below the brokers' default
/// limits.
const BATCH_BYTES: usize = 512 << 10;

/// Asynchronous, batching reader of a follower.
pub(crate) struct Supply {
    follower: Arc<Follower>,
    called: Arc<Notify>,
    /// A message that did not fit into the last batch.
    next: Option<Message>,
}

impl Supply {
    /// Follows the changes after `seen`.
    pub(crate) fn follow(
        feed: &Feed,
        seen: Lsn,
        selection: &Selection,
        format: Format,
    ) -> Result<Supply, NotFollowed> {
        let called = Arc::new(Notify::new());
        let waker = Arc::clone(&called);
        let follower =
            feed.follow(seen, selection.clone(), format, usize::MAX, Box::new(move || waker.notify_one()))?;
        Ok(Supply { follower: Arc::new(follower), called, next: None })
    }

    pub(crate) fn follower(&self) -> &Arc<Follower> {
        &self.follower
    }

    /// Returns the next changes, at least one. Cancel-safe: nothing is lost if the future is
    /// dropped.
    ///
    /// The status is idle only while nothing is taken: changes that have left the follower's queue
    /// and are not delivered yet must not count as delivered.
    pub(crate) async fn batch(&mut self, status: &Status) -> Result<Vec<Message>, End> {
        loop {
            status.work();
            let batch = self.take();
            if !batch.is_empty() {
                return Ok(batch);
            }
            if let Some(end) = self.follower.end() {
                return Err(end);
            }
            status.rest(&self.follower);
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_engine::command::find;
    use tidemark_engine::record::{encode_command, kind};
    use tidemark_log::{Durability, Log, MemoryStorage, Options};

    fn started() -> (Arc<Log>, Arc<Feed>) {
        let options = Options { durability: Durability::Always, ..Options::default() };
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log");
        let log = Arc::new(log);
        let feed = Arc::new(Feed::new(Arc::clone(&log)));
        feed.start().expect("a thread");
        let weak = Arc::downgrade(&feed);
        log.set_listener(Box::new(move |_| {
            if let Some(feed) = weak.upgrade() {
                feed.log_moved();
            }
        }));
        (log, feed)
    }

    fn set(log: &Log, value: &[u8]) {
        let id = find(b"SET").expect("a command").id;
        let write = |into: &mut Vec<u8>| encode_command(into, 0, id, &[b"k", value]);
        let lsn = log.append(1, kind::COMMAND, write).expect("the log takes it");
        log.wait_durable(lsn).expect("a sync");
    }

    #[tokio::test]
    async fn what_was_taken_is_not_behind_the_sink_before_it_was_passed_on() {
        let (log, feed) = started();
        let status = Status::new("nats://host/S".to_owned());
        let mut supply = Supply::follow(&feed, Lsn::ZERO, &Selection::default(), Format::Json)
            .expect("it can be followed");
        // Two of them do not fit into one batch.
        let value = vec![b'x'; BATCH_BYTES * 2 / 3];
        set(&log, &value);
        set(&log, &value);
        for lsn in [Lsn(1), Lsn(2)] {
            let batch = supply.batch(&status).await.expect("a batch");
            assert_eq!(batch.iter().map(|message| message.lsn).collect::<Vec<_>>(), [lsn]);
            assert_eq!(status.report().position, lsn.previous(), "it is on its way");
            status.pass(1, lsn);
            assert_eq!(status.report().position, lsn);
        }
    }
}
