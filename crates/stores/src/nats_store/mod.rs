//! A stream of NATS `JetStream` as a store.
//!
//! Claims and batches are messages of one stream, whose order decides: every store reads the same messages and comes to the same
//! conclusion about each of them. A batch that was sent twice, came too late or belongs to a claim that is over is in the stream and changes
//! nothing. So a commit is one message and its acknowledgement, and only what others have written since is read besides; exactness does
//! not depend on the window in which the server itself knows a message again. (A bucket of keys and values could not change many keys at
//! once.)
//!
//! The positions of all counters are in the memory of every store. What is in the stream is replaced by a copy of them when as much was
//! written as the copy takes, so reading it at the first call is bounded. The copy is made of messages of the stream too, and only when
//! all of it is there is the rest removed: whoever reads at that moment begins anew.

mod session;
mod view;

use crate::deadlines::Deadlines;
use crate::record::{batch_bytes, encode_batch, encode_claim};
use crate::runner::Runner;
use crate::state::{Outcome, State};
use crate::trouble::{refused, told, unavailable};
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

/// How often something is tried that others have got in the way of.
const ATTEMPTS: usize = 10;
/// How many messages are asked for at once.
const READ_AT_ONCE: u64 = 500;
/// A piece of a copy. Bytes.
const CHUNK_BYTES: usize = 128 << 10;
/// Room for what a message has beside its payload. Bytes.
const FRAME_BYTES: usize = 512;

/// Where a [`NatsStore`] keeps its commits, and how.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsOptions {
    /// `nats://[user:password@]host[:port]` or `nats://token@host`; several servers of a cluster with commas between them. With `tls://` in
    /// the place of `nats://` nothing is said before the server has shown a certificate for the host's name, and nothing without TLS.
    pub url: String,
    /// A file with the certificates of those that may certify the server, PEM. `None`, the default: those that the system trusts.
    pub certificates: Option<PathBuf>,
    /// The name of the stream, made if it is missing. `TIDEMARK_COUNTERS` by default. Its messages' subject is this with `.commits`.
    pub stream: String,
    /// On how many servers of a cluster the stream is kept, if it is made. 1 by default.
    pub replicas: usize,
    /// For how long the server is waited for. Reading a long stream is many requests.
    pub deadlines: Deadlines,
    /// How many changes a batch may have; the server's `max_payload`, 1 MiB unless it is told otherwise, limits it as well. 10,000 by
    /// default.
    pub max_deltas: usize,
    /// A copy replaces the messages when so much was written behind the last one, or as much as the copy takes if that is more. 1 MiB by
    /// default.
    pub copy_after_bytes: usize,
}

impl NatsOptions {
    /// The defaults at this address.
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

/// Without the address, which may hold a password.
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

/// Commits in a stream of NATS `JetStream`, version 2.9 or newer. Every counter that ever had a commit takes some 60 bytes of memory here beside
/// its name.
///
/// A commit is as durable as the stream: a server by itself syncs its files every now and then (`sync_interval`, 2 minutes unless it is told
/// otherwise), so a power failure may take back what was acknowledged.
pub struct NatsStore {
    target: Target,
    place: String,
    max_deltas: usize,
    copy_after_bytes: usize,
    /// What has been read so far of the stream that was made at this time.
    view: Option<(String, View)>,
    session: Option<Arc<Session>>,
    /// Whether a copy is on its way.
    copying: Arc<AtomicBool>,
    copy_failure: Arc<Mutex<Option<String>>>,
    // Last, so that a connection ends before what runs it.
    runner: Runner,
}

impl NatsStore {
    /// A store at this address; it connects when it is first asked.
    ///
    /// # Errors
    /// [`Error::Refused`] if the address is none, or the stream's name is none; [`Error::Unavailable`] if no thread can be started.
    pub fn new(options: NatsOptions) -> Result<Self, Error> {
        let servers: Result<Vec<ServerAddr>, _> = options.url.split(',').map(str::parse).collect();
        // The address itself is not repeated: it may hold a password.
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
            .map_err(|error| unavailable("start a thread for", &place, told(&error)))?;
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

    /// Why the last copy was not made, as long as none was made since: the stream grows meanwhile.
    pub fn copy_failure(&self) -> Option<String> {
        self.copy_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection that is there, or a new one.
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
        // Whether it is still the stream that was read before.
        self.catch_up_over(&session, None)?;
        Ok(session)
    }

    /// Waits for an answer. The connection is kept only if it has come.
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

    /// Reads what there is up to message `up_to`, or at least up to what is the last one now.
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
                // What comes next is still there, and what was read is not ahead of what is.
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
                    // What was read is not read again, unless there is something wrong with it.
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

    /// Reads on up to a message. `false` if one of them is gone.
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

    /// What is stored, or an error if it is unknown: unknown must not be read as empty.
    fn known_state(&self) -> Result<&State, Error> {
        let state = self.state();
        state.ok_or_else(|| unavailable("read back", &self.place, "its messages have not been read yet"))
    }

    /// Appends a record and says what came of it; `None` if what is stored must be looked at anew to know.
    fn append(&mut self, doing: &'static str, record: Vec<u8>) -> Result<Option<Outcome>, Error> {
        let (session, payload) = (self.session()?, record.clone());
        let number = self.ask(doing, async move { session.publish(payload).await })?;
        let last = self.view.as_ref().map_or(0, |(_, view)| view.last());
        if number != last + 1 {
            // Others have written, or it is another stream.
            self.catch_up(Some(number.saturating_sub(1)))?;
        }
        match &mut self.view {
            Some((_, view)) if view.last() + 1 == number => {
                Ok(view.take(&record).expect("what this store has written is a record"))
            }
            _ => Ok(None),
        }
    }

    /// Has a copy made in the background if it is time, unless one is on its way.
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
            // Somebody else has got the epoch.
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
                // It has been read with others.
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
