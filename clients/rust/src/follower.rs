//! The task behind a watch: connects, subscribes or goes on, tells what comes, and begins anew when the connection ends.

use crate::backoff::{Backoff, Retry};
use crate::error::Error;
use crate::event::{Emission, Reason, Snapshot};
use crate::link::Link;
use crate::position::{Place, Position};
use crate::subscription::{self, Told};
use redis::{PushInfo, RedisError};
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;
use tokio::sync::mpsc;

/// What a follower tells its watch.
#[derive(Debug)]
pub(crate) enum Message {
    /// Where the snapshot is in its subscription.
    Snapshot(Box<Position>, Snapshot),
    Emission(Emission),
    /// The last message.
    Failed(Error),
}

pub(crate) struct Follower {
    server: redis::Client,
    retry: Retry,
    read: Vec<Vec<u8>>,
    /// The last message's, unless emissions may be missing behind it.
    position: Option<Position>,
    /// Why a snapshot would come next.
    reason: Reason,
    messages: mpsc::Sender<Message>,
}

/// Why a follower is done with a connection.
enum Ended {
    /// Another one is needed.
    Cut(RedisError),
    /// No other one would do better.
    Refused(RedisError),
    /// Nobody listens any more.
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

    /// Follows until nobody listens, or until there is no point in going on.
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::new(self.retry);
        let failed = loop {
            let (connecting, seq) = (Instant::now(), self.seq());
            let error = match self.follow().await {
                Ended::Cut(error) => error,
                Ended::Refused(error) => break Error::Refused(error),
                Ended::Unheard => return,
            };
            // A connection was of use if emissions came by it, or if it would have outlasted the longest wait. That it could
            // be made is not enough: who is sent away each time is to wait longer each time.
            if self.seq() != seq || connecting.elapsed() >= self.retry.delay_max {
                backoff.reset();
            }
            match backoff.fail(random()) {
                Ok(delay) => tokio::time::sleep(delay).await,
                Err(attempts) => break Error::Unreachable { attempts, last: error },
            }
        };
        // If nobody hears it, nobody needs it.
        let _ = self.messages.send(Message::Failed(failed)).await;
    }

    fn seq(&self) -> Option<u64> {
        self.position.as_ref().map(|position| position.seq)
    }

    /// Follows for as long as one connection lasts.
    async fn follow(&mut self) -> Ended {
        match self.subscribe().await {
            Err(ended) => ended,
            Ok(mut link) => loop {
                let Some(push) = link.told().await else { return cut() };
                if let Err(ended) = self.take(push).await {
                    return ended;
                }
            },
        }
    }

    /// Goes on behind the position, or begins and tells the answer.
    async fn subscribe(&mut self) -> Result<Link, Ended> {
        let mut link = Link::open(&self.server).await?;
        if let Some(position) = &self.position {
            match subscription::resume(&mut link, position).await? {
                None => return Ok(link),
                Some(reason) => self.give_up_position(reason),
            }
            // The connection may have got a subscription that is not the one.
            link = Link::open(&self.server).await?;
        }
        let (position, value) = subscription::begin(&mut link, &self.read).await?;
        let snapshot = Snapshot { lsn: position.lsn, value, reason: self.reason };
        self.position = Some(position.clone());
        self.tell(Message::Snapshot(Box::new(position), snapshot)).await?;
        Ok(link)
    }

    async fn take(&mut self, push: PushInfo) -> Result<(), Ended> {
        let Some(position) = &mut self.position else { return Err(cut()) };
        let emission = match subscription::told(push, &position.subscription) {
            None => return Ok(()),
            Some(Told::Stale { floor }) => {
                self.give_up_position(Reason::Stale { floor });
                return Err(cut());
            }
            Some(Told::Emission(emission)) => emission,
        };
        match position.place(emission.lsn, emission.seq) {
            Place::Known => Ok(()),
            Place::Next => {
                (position.lsn, position.seq) = (emission.lsn, emission.seq);
                self.tell(Message::Emission(emission)).await
            }
            Place::Gap => {
                let expected = position.seq_next();
                self.give_up_position(Reason::Gap { expected, found: emission.seq });
                Err(cut())
            }
        }
    }

    /// Has a snapshot come next.
    fn give_up_position(&mut self, reason: Reason) {
        self.position = None;
        self.reason = reason;
    }

    async fn tell(&self, message: Message) -> Result<(), Ended> {
        self.messages.send(message).await.map_err(|_| Ended::Unheard)
    }
}

fn cut() -> Ended {
    Ended::Cut(std::io::Error::new(std::io::ErrorKind::ConnectionReset, "the connection has ended").into())
}

/// The keys of a hash map are the only random numbers of the standard library, and good enough to spread clients.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}
