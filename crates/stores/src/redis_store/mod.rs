//! Redis as a store: one script a batch, in one round trip.
//!
//! All positions are fields of one hash, and each writer is a hash with its epoch and the number of
//! its last batch. Their names share a hash tag, so in a cluster they are in one slot and a batch
//! can be atomic.
//!
//! An acknowledged commit is as durable as Redis is configured to be: with `appendonly yes` and
//! `appendfsync always` it survives whatever the disk survives. With less, Redis may lose the last
//! second or all of what it had acknowledged. That is detected, because the next batch does not
//! follow ([`Error::Gap`] with an earlier number expected, or [`Error::Forgotten`]), but not
//! repaired.

use crate::deadlines::Deadlines;
use crate::trouble::{described, refused, unavailable};
use redis::{Client, Connection, ErrorKind, IntoConnectionInfo, RedisError, Script, ServerErrorKind, Value};
use std::fmt;
use tidemark_counter::store::{Batch, Claim, Error, Receipt, Rejected, Store, check_writer};

const COMMIT: &str = include_str!("commit.lua");
const CLAIM: &str = "\
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HSETNX', KEYS[1], 'sequence', '0')
return redis.call('HMGET', KEYS[1], 'epoch', 'sequence')";
/// Positions per load request.
const LOADED_AT_ONCE: usize = 10_000;

/// Location and options of a [`RedisStore`].
#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// `redis://[[user]:password@]host[:port][/database]`, or `redis+unix:///path`.
    pub url: String,
    /// Prefix of the names of all keys. `tidemark` by default. It becomes their hash tag, unless it
    /// contains one.
    pub prefix: String,
    /// Timeouts.
    pub deadlines: Deadlines,
    /// Most changes in a batch: Redis is blocked while it applies one, for about a microsecond a
    /// change. 10,000 by default.
    pub max_deltas: usize,
}

impl RedisOptions {
    /// Returns the defaults for this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "tidemark".to_owned(),
            deadlines: Deadlines::default(),
            max_deltas: 10_000,
        }
    }
}

/// Omits the address, which may contain a password.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("deadlines", &self.deadlines)
            .field("max_deltas", &self.max_deltas)
            .finish_non_exhaustive()
    }
}

/// Commits in Redis 5 or newer. For the durability of an acknowledgement, see the [crate's
/// documentation](crate).
pub struct RedisStore {
    client: Client,
    connection: Option<Connection>,
    place: String,
    positions: String,
    /// Prefix of the names of the writers' hashes.
    writers: String,
    commit: Script,
    claim: Script,
    deadlines: Deadlines,
    max_deltas: usize,
}

impl RedisStore {
    /// Creates a store at this address; it connects at the first call.
    ///
    /// # Errors
    /// [`Error::Refused`] if the address is invalid or requires TLS.
    pub fn new(options: RedisOptions) -> Result<Self, Error> {
        let info = options.url.as_str().into_connection_info();
        // The address itself is not repeated: it may contain a password.
        let info = info.map_err(|error| refused("use", "the address of Redis", described(&error)))?;
        let place = format!("redis://{}", info.addr());
        let client = Client::open(info).map_err(|error| refused("use", &place, described(&error)))?;
        if !client.get_connection_info().addr().is_supported() {
            return Err(refused("use", &place, "TLS is not supported here: let a proxy at this side do it"));
        }
        let tag =
            if options.prefix.contains('{') { options.prefix } else { format!("{{{}}}", options.prefix) };
        Ok(Self {
            client,
            connection: None,
            place,
            positions: format!("{tag}:positions"),
            writers: format!("{tag}:writer:"),
            commit: Script::new(COMMIT),
            claim: Script::new(CLAIM),
            deadlines: options.deadlines,
            max_deltas: options.max_deltas,
        })
    }

    /// Calls `ask` with a connection, which is dropped if its state is uncertain afterwards.
    fn ask<T>(
        &mut self,
        doing: &'static str,
        ask: impl FnOnce(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, Error> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        match ask(&mut connection) {
            Ok(answer) => {
                self.connection = Some(connection);
                Ok(answer)
            }
            Err(error) if is_final(&error) => {
                self.connection = Some(connection);
                Err(refused(doing, &self.place, described(&error)))
            }
            Err(error) => Err(unavailable(doing, &self.place, described(&error))),
        }
    }

    fn connect(&self) -> Result<Connection, Error> {
        let connected =
            self.client.get_connection_with_timeout(self.deadlines.connect).and_then(|connection| {
                connection.set_read_timeout(Some(self.deadlines.request))?;
                connection.set_write_timeout(Some(self.deadlines.request))?;
                Ok(connection)
            });
        connected.map_err(|error| {
            let say = if is_final(&error) { refused } else { unavailable };
            say("reach", &self.place, described(&error))
        })
    }
}

impl Store for RedisStore {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        check_writer(writer)?;
        let key = format!("{}{writer}", self.writers);
        let script = self.claim.clone();
        let answer: Vec<String> =
            self.ask("claim a name at", |connection| script.key(key).invoke(connection))?;
        let [epoch, last_sequence] = answer.as_slice() else {
            return Err(self.not_understood(writer));
        };
        match (epoch.parse(), last_sequence.parse()) {
            (Ok(epoch), Ok(last_sequence)) => Ok(Claim { epoch, last_sequence }),
            _ => Err(self.not_understood(writer)),
        }
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        check_writer(&batch.writer)?;
        if batch.deltas.len() > self.max_deltas {
            return Err(Error::TooLarge { deltas: batch.deltas.len(), limit: self.max_deltas });
        }
        let script = self.commit.clone();
        let mut call = script.prepare_invoke();
        call.key(format!("{}{}", self.writers, batch.writer)).key(&self.positions);
        call.arg(batch.epoch).arg(batch.sequence);
        // An empty argument equals no stored number, so a batch without a predecessor is never
        // applied.
        call.arg(batch.sequence.checked_sub(1).map(|before| before.to_string()).unwrap_or_default());
        for delta in &batch.deltas {
            call.arg(&*delta.key).arg(delta.amount);
        }
        let answer: Vec<String> = self.ask("commit to", |connection| call.invoke(connection))?;
        let number = |index: usize| answer.get(index).and_then(|text| text.parse::<u64>().ok());
        match (answer.first().map(String::as_str), number(1)) {
            (Some("applied"), _) => Ok(Receipt::Applied),
            (Some("epoch"), Some(epoch)) => self.judged(Claim { epoch, last_sequence: 0 }, batch),
            (Some("sequence"), Some(last_sequence)) => {
                self.judged(Claim { epoch: batch.epoch, last_sequence }, batch)
            }
            (Some("rejected"), _) => Err(Error::Rejected(rejected(answer.get(1..).unwrap_or_default()))),
            (Some("failed"), _) => {
                let reason = answer.get(1).cloned().unwrap_or_default();
                Err(refused("commit to", &self.place, reason))
            }
            _ => Err(self.not_understood(&batch.writer)),
        }
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        let mut positions = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(LOADED_AT_ONCE) {
            let mut command = redis::cmd("HMGET");
            command.arg(&self.positions).arg(chunk);
            let values: Vec<Value> = self.ask("load from", |connection| command.query(connection))?;
            for (key, value) in chunk.iter().zip(values) {
                let position = redis::from_redis_value::<Option<i64>>(value);
                positions.push(position.map_err(|_| {
                    let key = String::from_utf8_lossy(key);
                    refused(
                        "load from",
                        &self.place,
                        format!("{:?} has no number at {key:?}", self.positions),
                    )
                })?);
            }
        }
        if positions.len() == keys.len() { Ok(positions) } else { Err(self.not_understood("HMGET")) }
    }

    fn max_deltas(&self) -> usize {
        self.max_deltas
    }
}

impl RedisStore {
    /// Returns the answer to a batch that the script has not applied; an error if the claim would
    /// allow it.
    fn judged(&self, known: Claim, batch: &Batch) -> Result<Receipt, Error> {
        known.judge(batch)?.ok_or_else(|| self.not_understood(&batch.writer))
    }

    fn not_understood(&self, about: &str) -> Error {
        let reason = format!("what is stored of {about:?} is none of ours: choose another prefix");
        refused("understand", &self.place, reason)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("place", &self.place)
            .field("positions", &self.positions)
            .field("is_connected", &self.connection.is_some())
            .finish_non_exhaustive()
    }
}

/// Converts pairs of an index and Redis's error for that change.
fn rejected(pairs: &[String]) -> Vec<Rejected> {
    let pairs = pairs.chunks_exact(2).filter_map(|pair| {
        let index = pair.first()?.parse().ok()?;
        let is_overflow = pair.get(1)?.contains("overflow");
        let other = || Rejected { index, reason: "what is stored under its name is no number".to_owned() };
        Some(if is_overflow { Rejected::overflow(index) } else { other() })
    });
    pairs.collect()
}

/// Whether Redis has refused for good: a retry fails until the cause is removed.
fn is_final(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::UnexpectedReturnType => true,
        // A master that fails over, loads or is cut off from its replicas may succeed later.
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::ResponseError
                | ServerErrorKind::NoPerm
                | ServerErrorKind::CrossSlot
                | ServerErrorKind::Moved
        ),
        ErrorKind::Extension => matches!(error.code(), Some("WRONGTYPE" | "NOAUTH" | "WRONGPASS" | "OOM")),
        _ => false,
    }
}
