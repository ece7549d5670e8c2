//! The task of a watch: connects, subscribes or resumes, forwards events, and starts again when the
//! connection ends.

use crate::backoff::{Backoff, Retry};
use crate::error::Error;
use crate::event::{Emission, Reason, Snapshot};
use crate::link::Link;
use crate::position::{EmissionOrder, Position};
use crate::subscription::{self, Push};
use redis::{PushInfo, RedisError};
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;
use tokio::sync::mpsc;

/// A message from a follower to its watch.
#[derive(Debug)]
pub(crate) enum Message {
    /// A snapshot, and its position in the subscription.
    Snapshot(Box<Position>, Snapshot),
    Emission(Emission),
    /// The last message.
    Failed(Error),
}

pub(crate) struct Follower {
    server: redis::Client,
    retry: Retry,
    read: Vec<Vec<u8>>,
    /// Position of the last message, unless emissions may be missing after it.
    position: Option<Position>,
    /// Reason of the next snapshot, if one is sent.
    reason: Reason,
    messages: mpsc::Sender<Message>,
}

/// Why a follower stops using a connection.
enum Ended {
    /// The connection was lost; another one is needed.
    Cut(RedisError),
    /// The server refuses; another connection would not help.
    Refused(RedisError),
    /// The watch was dropped.
    Unheard,
}

impl From<RedisError> for Ended {
    fn from(error: RedisError) -> Ended {
        if Error::is_final(&error) { Ended::Refused(error) } else { Ended::Cut(error) }
    }
}

impl Follower {
    pub(crate) fn new(
        server: redis::Client,
        retry: Retry,
        read: Vec<Vec<u8>>,
        position: Option<Position>,
        messages: mpsc::Sender<Message>,
    ) -> Follower {
        Follower { server, retry, read, position, reason: Reason::Begun, messages }
    }

    /// Follows until the watch is dropped, or until a retry cannot help.
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::new(self.retry);
        let failed = loop {
            let (connecting, seq) = (Instant::now(), self.seq());
            let error = match self.follow().await {
                Ended::Cut(error) => error,
                Ended::Refused(error) => break Error::Refused(error),
                Ended::Unheard => return,
            };
            // A connection counts as useful if it brought emissions, or if it lasted longer than
            // the longest wait. An accepted connection is not enough: a client that is disconnected
            // each time must wait longer each time.
            if self.seq() != seq || connecting.elapsed() >= self.retry.delay_max {
                backoff.reset();
            }
            match backoff.fail(random()) {
                Ok(delay) => tokio::time::sleep(delay).await,
                Err(attempts) => break Error::Unreachable { attempts, last: error },
            }
        };
        // If the watch was dropped, the error is not needed.
        let _ = self.messages.send(Message::Failed(failed)).await;
    }

    fn seq(&self) -> Option<u64> {
        self.position.as_ref().map(|position| position.seq)
    }

    /// Follows until one connection ends.
    async fn follow(&mut self) -> Ended {
        match self.subscribe().await {
            Err(ended) => ended,
            Ok(mut link) => loop {
                let Some(push) = link.next_push().await else { return cut() };
                if let Err(ended) = self.take(push).await {
                    return ended;
                }
            },
        }
    }

    /// Resumes after the position, or begins and sends a snapshot.
    async fn subscribe(&mut self) -> Result<Link, Ended> {
        let mut link = Link::open(&self.server).await?;
        if let Some(position) = &self.position {
            match subscription::resume(&mut link, position).await? {
                None => return Ok(link),
                Some(reason) => self.give_up_position(reason),
            }
            // The connection may have a subscription to the wrong read.
            link = Link::open(&self.server).await?;
        }
        let (position, value) = subscription::begin(&mut link, &self.read).await?;
        let snapshot = Snapshot { lsn: position.lsn, value, reason: self.reason };
        self.position = Some(position.clone());
        self.send(Message::Snapshot(Box::new(position), snapshot)).await?;
        Ok(link)
    }

    async fn take(&mut self, push: PushInfo) -> Result<(), Ended> {
        let Some(position) = &mut self.position else { return Err(cut()) };
        let emission = match subscription::decode_push(push, &position.subscription) {
            None => return Ok(()),
            Some(Push::Stale { floor }) => {
                self.give_up_position(Reason::Stale { floor });
                return Err(cut());
            }
            Some(Push::Emission(emission)) => emission,
        };
        match position.place(emission.lsn, emission.seq) {
            EmissionOrder::Known => Ok(()),
            EmissionOrder::Next => {
                (position.lsn, position.seq) = (emission.lsn, emission.seq);
                self.send(Message::Emission(emission)).await
            }
            EmissionOrder::Gap => {
                let expected = position.seq_next();
                self.give_up_position(Reason::Gap { expected, found: emission.seq });
                Err(cut())
            }
        }
    }

    /// Drops the position, so that a snapshot is sent next.
    fn give_up_position(&mut self, reason: Reason) {
        self.position = None;
        self.reason = reason;
    }

    async fn send(&self, message: Message) -> Result<(), Ended> {
        self.messages.send(message).await.map_err(|_| Ended::Unheard)
    }
}

fn cut() -> Ended {
    Ended::Cut(std::io::Error::new(std::io::ErrorKind::ConnectionReset, "the connection has ended").into())
}

/// Returns a random number. The keys of a hash map are the only randomness of the standard library,
/// and good enough to spread clients.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}
