//! The address of a server, from which watches are made.

use crate::backoff::Retry;
use crate::error::Error;
use crate::follower::Follower;
use crate::link::Link;
use crate::position::Position;
use crate::watch::Watch;
use redis::{IntoConnectionInfo, ProtocolVersion};

/// A client of one server. Each [`Watch`] has a connection of its own.
///
/// Watches run as tasks and must be created within a Tokio runtime.
#[derive(Debug, Clone)]
pub struct Client {
    server: redis::Client,
    retry: Retry,
}

impl Client {
    /// Returns a client of the server at an address such as
    /// `redis://user:password@127.0.0.1:7379/0`. Connects once, to check that a server answers and
    /// accepts the password.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] if the address is invalid, [`Error::Unreachable`] if no server answers,
    /// [`Error::Refused`] if the server refuses the client.
    pub async fn connect(address: impl IntoConnectionInfo) -> Result<Client, Error> {
        let info = address.into_connection_info().map_err(Error::Address)?;
        // Only RESP3 distinguishes emissions from replies.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let server = redis::Client::open(info.set_redis_settings(settings)).map_err(Error::Address)?;
        match Link::open(&server).await {
            Ok(_) => Ok(Client { server, retry: Retry::default() }),
            Err(error) if Error::is_final(&error) => Err(Error::Refused(error)),
            Err(error) => Err(Error::Unreachable { attempts: 1, last: error }),
        }
    }

    /// Returns the same client with other waits before its watches reconnect.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Client {
        Client { retry, ..self }
    }

    /// Watches a read, given by its name and arguments like an ordinary command. After a `"|"`
    /// operators may follow, which pass only some answers: `["GET", "temperature", "|", "HIGH"]`.
    ///
    /// The first event is a [`Snapshot`](crate::Snapshot). If the server refuses the read,
    /// [`Error::Refused`] is the only event.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn watch<Word: AsRef<[u8]>>(&self, read: impl IntoIterator<Item = Word>) -> Watch {
        let read = read.into_iter().map(|word| word.as_ref().to_vec()).collect();
        Watch::start(|events| Follower::new(self.server.clone(), self.retry, read, None, events), None)
    }

    /// Resumes a watch after a position of it. No snapshot comes first, unless emissions may be
    /// missing.
    ///
    /// The position says what is watched, but not on which server: the client must be one of the
    /// same server and database.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn resume(&self, position: Position) -> Watch {
        let (read, resumed) = (position.read.clone(), position.clone());
        Watch::start(
            |events| Follower::new(self.server.clone(), self.retry, read, Some(resumed), events),
            Some(position),
        )
    }
}
