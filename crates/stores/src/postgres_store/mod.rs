//! `PostgreSQL` as a store: one statement a batch, which is a transaction of its own.
//!
//! The statement advances the writer's row from the previous batch, and adds the changes only if
//! that row was as expected. Rows are locked in the order of the keys. An acknowledged commit is as
//! durable as `synchronous_commit` makes it.

mod session;

use crate::deadlines::Deadlines;
use crate::runner::Runner;
use crate::trouble::{described, refused, unavailable};
use session::{Session, Tables};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tidemark_counter::store::{Batch, Claim, Error, Receipt, Rejected, Store, check_writer};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Row};

/// The longest key, limited by the index. Bytes.
const KEY_BYTES_MAX: usize = 2_600;
/// Attempts of a batch that conflicts with other transactions.
const ATTEMPTS: usize = 5;
/// Positions per load request.
const LOADED_AT_ONCE: usize = 10_000;

/// Location and options of a [`PostgresStore`].
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `postgres://user[:password]@host[:port]/database`, or keywords as in `host=… user=…`.
    pub url: String,
    /// Schema of the tables, created if it is missing. `None`, the default, uses the search path. 1
    /// to 40 lowercase letters, digits and underscores, not beginning with a digit.
    pub schema: Option<String>,
    /// Prefix of the names of both tables, `counters` and `writers`. `tidemark_` by default. Same
    /// characters as a schema.
    pub prefix: String,
    /// Timeouts.
    pub deadlines: Deadlines,
    /// Most changes in a batch. 10,000 by default.
    pub max_deltas: usize,
}

impl PostgresOptions {
    /// Returns the defaults for this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: None,
            prefix: "tidemark_".to_owned(),
            deadlines: Deadlines::default(),
            max_deltas: 10_000,
        }
    }
}

/// Omits the address, which may contain a password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("prefix", &self.prefix)
            .field("deadlines", &self.deadlines)
            .field("max_deltas", &self.max_deltas)
            .finish_non_exhaustive()
    }
}

/// Commits in two tables of `PostgreSQL` 10 or newer, which are created if they are missing:
/// `tidemark_counters (key, position)` and `tidemark_writers (writer, epoch, last_sequence)`.
pub struct PostgresStore {
    config: Config,
    tables: Tables,
    place: String,
    deadlines: Deadlines,
    max_deltas: usize,
    session: Option<Arc<Session>>,
    // Last field, so that a connection is dropped before its runtime.
    runner: Runner,
}

impl PostgresStore {
    /// Creates a store at this address; it connects at the first call.
    ///
    /// # Errors
    /// [`Error::Refused`] if the address is invalid or requires TLS, or a name is not allowed;
    /// [`Error::Unavailable`] if no thread can be started.
    pub fn new(options: PostgresOptions) -> Result<Self, Error> {
        let mut config: Config = options
            .url
            .parse()
            // The address itself is not repeated: it may contain a password.
            .map_err(|error: tokio_postgres::Error| {
                refused("use", "the address of PostgreSQL", described(&error))
            })?;
        let place = place(&config);
        if config.get_ssl_mode() == SslMode::Require {
            return Err(refused("use", &place, "TLS is not supported here: let a proxy at this side do it"));
        }
        for name in options.schema.iter().chain([&options.prefix]) {
            if !is_plain(name) {
                let reason = format!(
                    "{name:?} names no schema or table here: use 1 to 40 small letters, digits and underscores, no digit first"
                );
                return Err(refused("use", &place, reason));
            }
        }
        config.connect_timeout(options.deadlines.connect).application_name("tidemark");
        let runner = Runner::start("tidemark-postgres")
            .map_err(|error| unavailable("start a thread for", &place, error.to_string()))?;
        Ok(Self {
            config,
            tables: Tables::new(options.schema.as_deref(), &options.prefix),
            place,
            deadlines: options.deadlines,
            max_deltas: options.max_deltas,
            session: None,
            runner,
        })
    }

    /// Returns the present connection, or a new one.
    fn session(&mut self) -> Result<Arc<Session>, Error> {
        if let Some(session) = self.session.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        let timeout_ms = self.deadlines.request.as_millis().max(1);
        let opened = Session::open(self.config.clone(), self.tables.clone(), timeout_ms);
        match self.runner.run(self.deadlines.connect, opened) {
            Ok(Ok(session)) => Ok(Arc::clone(self.session.insert(Arc::new(session)))),
            Ok(Err(error)) => Err(self.failed("reach", &error)),
            Err(late) => Err(unavailable("reach", &self.place, late.to_string())),
        }
    }

    /// Waits for an answer. Without one, or after most errors, the connection is dropped.
    fn ask<T: Send + 'static>(
        &mut self,
        doing: &'static str,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    ) -> Result<T, Trial> {
        match self.runner.run(self.deadlines.request, answer) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => match error.code() {
                Some(code) if *code == SqlState::NUMERIC_VALUE_OUT_OF_RANGE => Err(Trial::Overflow),
                Some(code)
                    if *code == SqlState::T_R_DEADLOCK_DETECTED
                        || *code == SqlState::T_R_SERIALIZATION_FAILURE =>
                {
                    Err(Trial::InTheWay(self.failed(doing, &error)))
                }
                _ => {
                    self.session = None;
                    Err(Trial::Failed(self.failed(doing, &error)))
                }
            },
            Err(late) => {
                self.session = None;
                Err(Trial::Failed(unavailable(doing, &self.place, late.to_string())))
            }
        }
    }

    fn failed(&self, doing: &'static str, error: &tokio_postgres::Error) -> Error {
        let say = match error.code() {
            // Error classes: connections, conflicts, exhausted resources, operator intervention,
            // system. All others are final, including a wrong password.
            Some(code)
                if ["08", "40", "53", "55", "57", "58"]
                    .iter()
                    .any(|class| code.code().starts_with(class)) =>
            {
                unavailable
            }
            // The server has become a standby; the address may lead to another one later.
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => unavailable,
            Some(_) => refused,
            None => unavailable,
        };
        say(doing, &self.place, described(error))
    }

    /// Returns what is stored of a writer.
    fn known(&mut self, writer: &str) -> Result<Claim, Error> {
        let (session, writer) = (self.session()?, writer.to_owned());
        let rows = self
            .ask("ask", async move { session.client.query(&session.known, &[&writer]).await })
            .map_err(Trial::into_error)?;
        rows.first().map_or(Ok(Claim::default()), |row| self.claim_in(row))
    }

    fn claim_in(&self, row: &Row) -> Result<Claim, Error> {
        let number = |column| {
            let number = row.try_get::<_, i64>(column).map_err(|error| described(&error));
            number.and_then(|number| u64::try_from(number).map_err(|error| described(&error)))
        };
        let claim = number(0).and_then(|epoch| Ok(Claim { epoch, last_sequence: number(1)? }));
        claim.map_err(|error| refused("understand", &self.place, error))
    }

    /// Returns the changes that would overflow, given the present positions.
    fn overflowing(&mut self, keys: Vec<Vec<u8>>, amounts: Vec<i64>) -> Result<Vec<Rejected>, Error> {
        let session = self.session()?;
        let rows = self
            .ask("ask", async move { session.client.query(&session.overflowing, &[&keys, &amounts]).await })
            .map_err(Trial::into_error)?;
        rows.iter().map(|row| Ok(Rejected::overflow(self.place_in(row)?))).collect()
    }

    /// Returns the index of the request that a row is about: from 0; the server counts from 1.
    fn place_in(&self, row: &Row) -> Result<usize, Error> {
        let place = row.try_get::<_, i64>(0).map_err(|error| self.not_understood(described(&error)))?;
        let from_zero = place.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        from_zero.ok_or_else(|| self.not_understood(format!("a row has the place {place}")))
    }

    fn not_understood(&self, reason: String) -> Error {
        refused("understand", &self.place, reason)
    }
}

/// Why a statement was not carried out.
enum Trial {
    /// A number exceeds 64 bits.
    Overflow,
    /// A conflict with another transaction: an immediate retry may succeed.
    InTheWay(Error),
    /// Any other reason.
    Failed(Error),
}

impl Trial {
    /// Converts the error of a statement that adds nothing up.
    fn into_error(self) -> Error {
        match self {
            Self::Overflow => Error::Refused("a number that is stored leaves 64 bits".into()),
            Self::InTheWay(error) | Self::Failed(error) => error,
        }
    }
}

impl Store for PostgresStore {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        check_writer(writer)?;
        let (session, writer) = (self.session()?, writer.to_owned());
        let row = self
            .ask("claim a name at", async move { session.client.query_one(&session.claim, &[&writer]).await })
            .map_err(Trial::into_error)?;
        self.claim_in(&row)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        check_writer(&batch.writer)?;
        if batch.deltas.len() > self.max_deltas {
            return Err(Error::TooLarge { deltas: batch.deltas.len(), limit: self.max_deltas });
        }
        let too_long = |(index, length): (usize, usize)| {
            let reason =
                format!("its key has {length} bytes, and an index of PostgreSQL takes {KEY_BYTES_MAX}");
            (length > KEY_BYTES_MAX).then_some(Rejected { index, reason })
        };
        let lengths = batch.deltas.iter().map(|delta| delta.key.len()).enumerate();
        let rejected: Vec<_> = lengths.filter_map(too_long).collect();
        // Numbers that the tables cannot hold were never claimed or applied.
        let signed = |number: u64| i64::try_from(number).unwrap_or(-1);
        let (epoch, sequence) = (signed(batch.epoch), signed(batch.sequence));
        let before = batch.sequence.checked_sub(1).map_or(-1, signed);
        if !rejected.is_empty() || epoch < 0 || sequence < 0 {
            return match self.known(&batch.writer)?.judge(batch)? {
                Some(receipt) => Ok(receipt),
                None => Err(Error::Rejected(rejected)),
            };
        }
        let keys: Vec<_> = batch.deltas.iter().map(|delta| delta.key.to_vec()).collect();
        let amounts: Vec<_> = batch.deltas.iter().map(|delta| delta.amount).collect();
        let mut in_the_way = None;
        for _ in 0..ATTEMPTS {
            let (session, writer) = (self.session()?, batch.writer.clone());
            let (keys_sent, amounts_sent) = (keys.clone(), amounts.clone());
            let applied = self.ask("commit to", async move {
                let Session { client, commit, .. } = &*session;
                let row = client
                    .query_one(commit, &[&writer, &epoch, &sequence, &before, &keys_sent, &amounts_sent])
                    .await?;
                row.try_get::<_, i64>(0)
            });
            match applied {
                Ok(1) => return Ok(Receipt::Applied),
                Ok(_) => {
                    if let Some(receipt) = self.known(&batch.writer)?.judge(batch)? {
                        return Ok(receipt);
                    }
                }
                Err(Trial::Overflow) => {
                    let rejected = self.overflowing(keys.clone(), amounts.clone())?;
                    if !rejected.is_empty() {
                        return Err(Error::Rejected(rejected));
                    }
                }
                Err(Trial::InTheWay(error)) => in_the_way = Some(error),
                Err(Trial::Failed(error)) => return Err(error),
            }
        }
        Err(in_the_way.unwrap_or_else(|| {
            unavailable("commit to", &self.place, "what is stored changes faster than it can be looked at")
        }))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        let mut positions = vec![None; keys.len()];
        for (keys, positions) in keys.chunks(LOADED_AT_ONCE).zip(positions.chunks_mut(LOADED_AT_ONCE)) {
            let session = self.session()?;
            let keys: Vec<_> = keys.iter().map(|key| key.to_vec()).collect();
            let rows = self
                .ask("load from", async move { session.client.query(&session.load, &[&keys]).await })
                .map_err(Trial::into_error)?;
            for row in rows {
                let place = self.place_in(&row)?;
                let position =
                    row.try_get::<_, i64>(1).map_err(|error| self.not_understood(described(&error)))?;
                let count = positions.len();
                let slot = positions.get_mut(place).ok_or_else(|| {
                    self.not_understood(format!("position {place} is none of the {count} asked for"))
                })?;
                *slot = Some(position);
            }
        }
        Ok(positions)
    }

    fn max_deltas(&self) -> usize {
        self.max_deltas
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("place", &self.place)
            .field("tables", &self.tables)
            .field("is_connected", &self.session.is_some())
            .finish_non_exhaustive()
    }
}

/// Returns the address without secrets.
fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<_> = hosts.collect();
    format!("postgres://{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

fn is_plain(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (1..=40).contains(&name.len())
        && name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for url in ["postgres://joe:s3cret@host:1/db", "host=host port=1 user=joe password=s3cret dbname=db"]
        {
            let store = PostgresStore::new(PostgresOptions::new(url)).expect("an address");
            assert_eq!(store.place, "postgres://host:1/db");
            assert!(!format!("{store:?} {:?}", PostgresOptions::new(url)).contains("s3cret"));
        }
        for url in [
            "postgres://joe:s3cret@host:x/db",
            "host=a password='s3cret",
            "postgres://joe:s3cret@host/?x=s3cret",
        ] {
            let error = PostgresStore::new(PostgresOptions::new(url)).expect_err("no address");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn only_plain_names_become_part_of_a_statement() {
        for name in ["a", "_b1", "public", "user"] {
            assert!(is_plain(name), "{name}");
        }
        let long = "a".repeat(41);
        for name in ["", "1a", "A", "a-b", "a\"b", "a;b", "ä", "a b", &long] {
            assert!(!is_plain(name), "{name}");
            let options =
                PostgresOptions { prefix: name.to_owned(), ..PostgresOptions::new("postgres://host/db") };
            assert!(PostgresStore::new(options).is_err(), "{name}");
        }
    }
}
