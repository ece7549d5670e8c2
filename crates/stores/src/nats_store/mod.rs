//! A stream of NATS `JetStream` as a store.
//!
//! Claims and batches are messages of one stream, whose order decides. All stores read the same
//! messages and apply them identically: a batch that is a duplicate, late, or from a fenced claim
//! stays in the stream and changes nothing. A commit costs one message with its acknowledgement,
//! plus reading what other stores have written since. Exactness does not depend on the server's
//! deduplication window. (A key-value bucket could not change many keys atomically.)
//!
//! Every store has the positions of all counters in memory. A copy of them replaces the messages of
//! the stream once these are as large as the copy, which bounds the reading at the first call. The
//! copy consists of messages of the stream too, and the rest is removed only when all of it is
//! stored. A store that reads at that moment starts over.

mod session;
mod view;

use crate::deadlines::Deadlines;
use crate::record::{batch_bytes, encode_batch, encode_claim};
use crate::runner::Runner;
use crate::state::{Outcome, State};
use crate::trouble::{described, refused, unavailable};
use async_nats::ServerAddr;
use session::{Extent, Fault, Session, Target};
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_counter::store::{Batch, Claim, Error, Receipt, Store, check_writer};
use view::View;

/// Attempts of an operation that conflicts with other stores.
const ATTEMPTS: usize = 10;
/// Messages per read request.
const READ_AT_ONCE: u64 = 500;
/// Size of a piece of a copy. Bytes.
const CHUNK_BYTES: usize = 128 << 10;
/// Allowance for a message's overhead. Bytes.
const FRAME_BYTES: usize = 512;

/// Location and options of a [`NatsStore`].
#[derive(Clone, PartialEq, Eq)]
pub struct NatsOptions {
    /// `nats://[user:password@]host[:port]` or `nats://token@host`; several servers of a cluster
    /// separated by commas. With `tls://` instead of `nats://`, TLS is required, and nothing is
    /// sent before the server has presented a certificate for the host's name.
    pub url: String,
    /// File of CA certificates to trust, PEM. `None`, the default: those that the system trusts.
    pub certificates: Option<PathBuf>,
    /// Name of the stream, created if it is missing. `TIDEMARK_COUNTERS` by default. The subject of
    /// its messages is this name with `.commits`.
    pub stream: String,
    /// Replicas of the stream in a cluster, if it is created. 1 by default.
    pub replicas: usize,
    /// Timeouts. Reading a long stream takes many requests.
    pub deadlines: Deadlines,
    /// Most changes in a batch; the server's `max_payload`, 1 MiB by default, limits it as well.
    /// 10,000 by default.
    pub max_deltas: usize,
    /// A copy replaces the messages when this much was written since the last one, or as much as
    /// the copy takes if that is more. 1 MiB by default.
    pub copy_after_bytes: usize,
}

impl NatsOptions {
    /// Returns the defaults for this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            certificates: None,
            stream: "TIDEMARK_COUNTERS".to_owned(),
            replicas: 1,
            deadlines: Deadlines::default(),
            max_deltas: 10_000,
            copy_after_bytes: 1 << 20,
        }
    }
}

/// Omits the address, which may contain a password.
impl fmt::Debug for NatsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsOptions")
            .field("certificates", &self.certificates)
            .field("stream", &self.stream)
            .field("replicas", &self.replicas)
            .field("deadlines", &self.deadlines)
            .field("max_deltas", &self.max_deltas)
            .field("copy_after_bytes", &self.copy_after_bytes)
            .finish_non_exhaustive()
    }
}

/// Commits in a stream of NATS `JetStream`, version 2.9 or newer. Every counter that ever had a
/// commit takes some 60 bytes of memory here plus its name.
///
/// A commit is as durable as the stream: a single server syncs its files periodically
/// (`sync_interval`, 2 minutes by default), so a power failure may take back what was acknowledged.
pub struct NatsStore {
    target: Target,
    place: String,
    max_deltas: usize,
    copy_after_bytes: usize,
    /// What has been read of the stream, with the stream's creation time.
    view: Option<(String, View)>,
    session: Option<Arc<Session>>,
    /// Whether a copy is being written.
    copying: Arc<AtomicBool>,
    copy_failure: Arc<Mutex<Option<String>>>,
    // Last field, so that a connection is dropped before its runtime.
    runner: Runner,
}

impl NatsStore {
    /// Creates a store at this address; it connects at the first call.
    ///
    /// # Errors
    /// [`Error::Refused`] if the address or the stream's name is invalid; [`Error::Unavailable`] if
    /// no thread can be started.
    pub fn new(options: NatsOptions) -> Result<Self, Error> {
        let servers: Result<Vec<ServerAddr>, _> = options.url.split(',').map(str::parse).collect();
        // The address itself is not repeated: it may contain a password.
        let servers =
            servers.map_err(|error| refused("use", "the address of NATS", error.kind().to_string()))?;
        let shown: Vec<_> = servers
            .iter()
            .map(|server| format!("{}://{}:{}", server.scheme(), server.host(), server.port()))
            .collect();
        let place = format!("{}/{}", shown.join(","), options.stream);
        let is_tls = servers.iter().any(|server| server.scheme() == "tls");
        if !servers.iter().all(|server| server.scheme() == if is_tls { "tls" } else { "nats" }) {
            return Err(refused(
                "use",
                &place,
                "the addresses must all begin with nats://, or all with tls://",
            ));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=200).contains(&options.stream.len()) || !options.stream.bytes().all(is_plain) {
            let reason = "a stream's name must be 1 to 200 letters, digits, underscores and hyphens";
            return Err(refused("use", &place, reason));
        }
        let runner = Runner::start("tidemark-nats")
            .map_err(|error| unavailable("start a thread for", &place, described(&error)))?;
        Ok(Self {
            target: Target {
                servers,
                is_tls,
                certificates: options.certificates,
                stream: options.stream,
                replicas: options.replicas,
                connect: options.deadlines.connect,
                request: options.deadlines.request,
            },
            place,
            max_deltas: options.max_deltas,
            copy_after_bytes: options.copy_after_bytes,
            view: None,
            session: None,
            copying: Arc::default(),
            copy_failure: Arc::default(),
            runner,
        })
    }

    /// Returns why the last copy failed, until one succeeds: the stream grows meanwhile.
    pub fn copy_failure(&self) -> Option<String> {
        self.copy_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the present connection, or a new one.
    fn session(&mut self) -> Result<Arc<Session>, Error> {
        if let Some(session) = self.session.as_ref().filter(|session| !session.is_cut()) {
            return Ok(Arc::clone(session));
        }
        self.session = None;
        let session = match self.runner.run(self.target.connect, Session::open(self.target.clone())) {
            Ok(Ok(session)) => Arc::new(session),
            Ok(Err(fault)) => return Err(self.failed("reach", fault)),
            Err(late) => return Err(unavailable("reach", &self.place, late.to_string())),
        };
        self.session = Some(Arc::clone(&session));
        // Checks whether it is still the stream that was read before.
        self.catch_up_over(&session, None)?;
        Ok(session)
    }

    /// Waits for an answer. Without one, the connection is dropped.
    fn ask<T: Send + 'static>(
        &mut self,
        doing: &'static str,
        answer: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Error> {
        let error = match self.runner.run(self.target.request, answer) {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(fault)) => self.failed(doing, fault),
            Err(late) => unavailable(doing, &self.place, late.to_string()),
        };
        self.session = None;
        Err(error)
    }

    fn failed(&self, doing: &'static str, fault: Fault) -> Error {
        match fault {
            Fault::Unavailable(reason) => unavailable(doing, &self.place, reason),
            Fault::Refused(reason) => refused(doing, &self.place, reason),
        }
    }

    /// Reads up to message `up_to`, or at least up to the present last message.
    fn catch_up(&mut self, up_to: Option<u64>) -> Result<(), Error> {
        match self.session.clone().filter(|session| !session.is_cut()) {
            Some(session) => self.catch_up_over(&session, up_to),
            None => self.session().map(drop),
        }
    }

    fn catch_up_over(&mut self, session: &Arc<Session>, up_to: Option<u64>) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let asked = Arc::clone(session);
            let Extent { created, first, last } = self.ask("ask", async move { asked.extent().await })?;
            let (mut view, up_to) = match self.view.take() {
                // The next message is still there, and what was read is not ahead of the stream.
                Some((known, view))
                    if known == created && first <= view.last() + 1 && view.last() <= last =>
                {
                    (view, up_to.unwrap_or(last))
                }
                _ => (View::new(first), last),
            };
            match self.read(session, &mut view, up_to) {
                Ok(true) => {}
                // A copy has replaced it in the meantime.
                Ok(false) => continue,
                Err(error) => {
                    // Keeps what was read, unless it is invalid.
                    self.view = matches!(error, Error::Unavailable(_)).then_some((created, view));
                    return Err(error);
                }
            }
            if view.state().is_none() {
                let reason = format!("the messages before {first} are gone, and no copy of them is there");
                return Err(refused("read back", &self.place, reason));
            }
            self.view = Some((created, view));
            return Ok(());
        }
        Err(unavailable("read back", &self.place, "messages are missing, or go faster than they can be read"))
    }

    /// Reads up to message `up_to`. Returns `false` if one of the messages is gone.
    fn read(&mut self, session: &Arc<Session>, view: &mut View, up_to: u64) -> Result<bool, Error> {
        while view.last() < up_to {
            let (asked, first) = (Arc::clone(session), view.last() + 1);
            let count = (up_to - view.last()).min(READ_AT_ONCE);
            let messages = self.ask("read", async move { asked.fetch(first, count).await })?;
            let Some(messages) = messages else { return Ok(false) };
            for message in messages {
                view.take(&message).map_err(|_| {
                    let reason = format!("message {} is none of ours: choose another stream", view.last());
                    refused("read back", &self.place, reason)
                })?;
            }
        }
        Ok(true)
    }

    fn state(&self) -> Option<&State> {
        self.view.as_ref().and_then(|(_, view)| view.state())
    }

    /// Returns the state, or an error if it is unknown: unknown must not be read as empty.
    fn known_state(&self) -> Result<&State, Error> {
        let state = self.state();
        state.ok_or_else(|| unavailable("read back", &self.place, "its messages have not been read yet"))
    }

    /// Appends a record and returns its outcome; `None` if the caller must read the stream again to
    /// find out.
    fn append(&mut self, doing: &'static str, record: Vec<u8>) -> Result<Option<Outcome>, Error> {
        let (session, payload) = (self.session()?, record.clone());
        let number = self.ask(doing, async move { session.publish(payload).await })?;
        let last = self.view.as_ref().map_or(0, |(_, view)| view.last());
        if number != last + 1 {
            // Other stores have written, or it is another stream.
            self.catch_up(Some(number.saturating_sub(1)))?;
        }
        match &mut self.view {
            Some((_, view)) if view.last() + 1 == number => {
                Ok(view.take(&record).expect("what this store has written is a record"))
            }
            _ => Ok(None),
        }
    }

    /// Starts a copy in the background if one is due and none is running.
    fn copy_if_due(&mut self) {
        let (Some((_, view)), Some(session)) = (&self.view, &self.session) else { return };
        if !view.is_copy_due(self.copy_after_bytes) || self.copying.swap(true, Ordering::AcqRel) {
            return;
        }
        let chunk_bytes = CHUNK_BYTES.min(session.max_payload() / 2);
        let copy = RandomState::new().hash_one(view.last());
        let (up_to, pieces, session) = (view.last(), view.copy(copy, chunk_bytes), Arc::clone(session));
        let (copying, failure) = (Arc::clone(&self.copying), Arc::clone(&self.copy_failure));
        self.runner.spawn(async move {
            let made = session.replace(up_to, pieces).await;
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = made.err().map(|fault| match fault {
                Fault::Unavailable(reason) | Fault::Refused(reason) => reason,
            });
            copying.store(false, Ordering::Release);
        });
    }

    fn busy(&self) -> Error {
        unavailable("write to", &self.place, "others write faster than their messages can be read")
    }
}

impl Store for NatsStore {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        check_writer(writer)?;
        for _ in 0..ATTEMPTS {
            self.catch_up(None)?;
            let known = self.known_state()?.claim_of(writer);
            let Some(epoch) = known.epoch.checked_add(1) else {
                return Err(refused("claim a name at", &self.place, "its epochs are used up"));
            };
            let mut record = Vec::new();
            encode_claim(&mut record, writer, epoch);
            if let Some(Outcome::Applied) = self.append("claim a name at", record)? {
                let claim = self.known_state()?.claim_of(writer);
                assert_eq!(claim.epoch, epoch, "the claim was applied just now");
                return Ok(claim);
            }
            // Another store has claimed the epoch first.
        }
        Err(self.busy())
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        check_writer(&batch.writer)?;
        let deltas = batch.deltas.len();
        if deltas > self.max_deltas {
            return Err(Error::TooLarge { deltas, limit: self.max_deltas });
        }
        let (bytes, room) = (batch_bytes(batch), self.session()?.max_payload().saturating_sub(FRAME_BYTES));
        if bytes > room {
            return Err(Error::TooLarge { deltas, limit: deltas.saturating_mul(room) / bytes });
        }
        let mut is_fresh = false;
        for _ in 0..ATTEMPTS {
            match self.state().map(|state| state.judge(batch)) {
                Some(Ok(None)) => {}
                Some(judged) if is_fresh => return judged?.ok_or_else(|| self.busy()),
                // What was read so far may be out of date.
                _ => {
                    self.catch_up(None)?;
                    is_fresh = true;
                    continue;
                }
            }
            let mut record = Vec::new();
            encode_batch(&mut record, batch);
            let outcome = self.append("commit to", record)?;
            self.copy_if_due();
            match outcome {
                Some(Outcome::Applied) => return Ok(Receipt::Applied),
                Some(Outcome::Duplicate) => return Ok(Receipt::Duplicate),
                Some(Outcome::Ignored(error)) => return Err(error),
                // The record was read together with others.
                None => is_fresh = true,
            }
        }
        Err(self.busy())
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        self.catch_up(None)?;
        let state = self.known_state()?;
        Ok(keys.iter().map(|key| state.position(key)).collect())
    }

    fn max_deltas(&self) -> usize {
        self.max_deltas
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore")
            .field("place", &self.place)
            .field("is_connected", &self.session.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for url in ["nats://joe:s3cret@host:1", "nats://s3cret@host:1"] {
            let store = NatsStore::new(NatsOptions::new(url)).expect("an address");
            assert_eq!(store.place, "nats://host:1/TIDEMARK_COUNTERS");
            assert!(!format!("{store:?} {:?}", NatsOptions::new(url)).contains("s3cret"));
        }
        for url in [
            "nats://joe:s3cret@host:x",
            "nats://joe:s3cret@",
            "tls://joe:s3cret@host,nats://s3cret@host",
            "s3cret://host",
        ] {
            let error = NatsStore::new(NatsOptions::new(url)).expect_err("no address");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn only_plain_names_become_part_of_a_subject() {
        for stream in ["", "a.b", "a*", ">", "a b", "\u{e4}", "a\r\n"] {
            let options = NatsOptions { stream: stream.to_owned(), ..NatsOptions::new("nats://host") };
            assert!(NatsStore::new(options).is_err(), "{stream:?}");
        }
    }
}
