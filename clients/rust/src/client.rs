//! Where a server is, and how to reach it: what watches are made from.

use crate::backoff::Retry;
use crate::error::Error;
use crate::follower::Follower;
use crate::link::Link;
use crate::position::Position;
use crate::watch::Watch;
use redis::{IntoConnectionInfo, ProtocolVersion};

/// A server's address, with what belongs to it. Each [`Watch`] has a connection of its own.
///
/// Watches run as tasks, so they are made within a Tokio runtime.
#[derive(Debug, Clone)]
pub struct Client {
    server: redis::Client,
    retry: Retry,
}

impl Client {
    /// A client of the server at an address such as `redis://user:password@127.0.0.1:7379/0`. Connects once, to see whether
    /// somebody answers and accepts the password.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] if it is not an address, [`Error::Unreachable`] if nobody answers, [`Error::Refused`] if the server
    /// does not want the client.
    pub async fn connect(address: impl IntoConnectionInfo) -> Result<Client, Error> {
        let info = address.into_connection_info().map_err(Error::Address)?;
        // Emissions are told apart from answers in RESP3 only.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let server = redis::Client::open(info.set_redis_settings(settings)).map_err(Error::Address)?;
        match Link::open(&server).await {
            Ok(_) => Ok(Client { server, retry: Retry::default() }),
            Err(error) if Error::is_final(&error) => Err(Error::Refused(error)),
            Err(error) => Err(Error::Unreachable { attempts: 1, last: error }),
        }
    }

    /// The same client, whose watches wait otherwise before they connect again.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Client {
        Client { retry, ..self }
    }

    /// Watches a read: its name and arguments, as they would be sent to have it answered once. Behind a `"|"` operators may
    /// follow, which let only some answers pass: `["GET", "temperature", "|", "HIGH"]`.
    ///
    /// The first event is a [`Snapshot`](crate::Snapshot). If the server refuses the read, [`Error::Refused`] is the only one.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn watch<Word: AsRef<[u8]>>(&self, read: impl IntoIterator<Item = Word>) -> Watch {
        let read = read.into_iter().map(|word| word.as_ref().to_vec()).collect();
        Watch::start(|events| Follower::new(self.server.clone(), self.retry, read, None, events), None)
    }

    /// Goes on with a watch behind a position of it. No snapshot comes first, unless emissions may be missing.
    ///
    /// The position says what is watched, but not where: the client must be one of the same server and database.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn resume(&self, position: Position) -> Watch {
        let (read, resumed) = (position.read.clone(), position.clone());
        Watch::start(
            |events| Follower::new(self.server.clone(), self.retry, read, Some(resumed), events),
            Some(position),
        )
    }
}
