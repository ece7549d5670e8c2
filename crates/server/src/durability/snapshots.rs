//! Snapshots while serving, as the workers know of them: asked for by a client or because the log has grown, and taken one at a
//! time by a thread (`snapshot_taking.rs`).

use crate::net::connection_id::ConnectionId;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tidemark_engine::Incomplete;
use tidemark_log::{Log, Lsn, SnapshotError};

/// The section of a snapshot that holds the keyspace, in frames as [`tidemark_engine::Loader`] takes them.
pub const KEYSPACE: u32 = 0;

/// The section that holds watched reads.
pub(crate) const WATCHED: u32 = 1;

/// The section that holds named subscriptions.
pub(crate) const NAMED: u32 = 2;

/// A snapshot is due after so many stops that were not clean: each leaves a short segment, which is a file that is held
/// open, and a server that is killed again and again would never log enough for one.
const GAPS_MAX: usize = 32;

/// What the thread is asked for.
pub(crate) enum Request {
    /// Take a snapshot; tell the client, if one waits.
    Take(Option<(usize, ConnectionId)>),
    /// End; first take a last snapshot if one was asked for.
    Stop,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// It could not be written.
    #[error(transparent)]
    Failed(#[from] SnapshotError),
    /// It does not say what it should, so the log must not be released.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// The server stops, and nobody asked it to take one first.
    #[error("it was given up because the server stops; the log has every change")]
    GivenUp,
}

/// What the workers know of snapshots, and how they ask for one.
pub(crate) struct Snapshots {
    requests: Mutex<Sender<Request>>,
    /// A snapshot is being taken, or asked for.
    busy: AtomicBool,
    /// Seconds since 1970 of the latest success; of the start before the first.
    last_success: AtomicU64,
    /// The last record that the latest snapshot covers.
    last_lsn: AtomicU64,
    /// Bytes of the log behind the latest snapshot or attempt, less those that this process had written then.
    bytes_before: AtomicI64,
    /// The size of the latest snapshot.
    last_bytes: AtomicU64,
    /// The end of the log at the latest attempt that failed.
    tried_lsn: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// The server stops: a snapshot that is being taken is given up.
    given_up: AtomicBool,
    /// The server takes a snapshot before it stops.
    last_wanted: AtomicBool,
}

/// The requests that the snapshot thread works off.
pub(crate) struct Requests(Receiver<Request>);

impl Requests {
    /// Waits for the next one.
    pub(crate) fn next(&self) -> Request {
        // Without a sender there is no server any more.
        self.0.recv().unwrap_or(Request::Stop)
    }
}

impl Snapshots {
    /// `last` is the newest snapshot that there is.
    pub(crate) fn new(last: Lsn) -> (Snapshots, Requests) {
        let (sender, receiver) = channel();
        let snapshots = Snapshots {
            requests: Mutex::new(sender),
            busy: AtomicBool::new(false),
            last_success: AtomicU64::new(now_seconds()),
            last_lsn: AtomicU64::new(last.0),
            bytes_before: AtomicI64::new(0),
            last_bytes: AtomicU64::new(0),
            tried_lsn: AtomicU64::new(0),
            last_error: Mutex::default(),
            given_up: AtomicBool::new(false),
            last_wanted: AtomicBool::new(false),
        };
        (snapshots, Requests(receiver))
    }

    /// Notes the newest snapshot that was found at the start.
    pub(crate) fn note_loaded(&self, last: Lsn) {
        self.last_lsn.store(last.0, Ordering::Relaxed);
    }

    /// Asks for a snapshot; `false` if one is being taken already. The client, if one is named by its worker and itself,
    /// gets `OK` or an error when it is complete.
    pub(crate) fn request(&self, client: Option<(usize, ConnectionId)>) -> bool {
        if self.busy.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.send(Request::Take(client));
        true
    }

    /// Says how large the newest snapshot is, and how much of the log was behind it at the start.
    pub(crate) fn begin(&self, bytes: u64, replayed_bytes: u64) {
        self.last_bytes.store(bytes, Ordering::Relaxed);
        self.bytes_before.store(i64::try_from(replayed_bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Asks for a snapshot if `after` records have been logged since the latest, or `after_bytes` bytes and as many as it has;
    /// 0 means never. One is due as well if the server was not stopped properly many times since, each of which has left the
    /// log a segment more; and if the log wants one, because the disk gets full.
    pub(crate) fn request_if_due(&self, log: &Log, wants_relief: bool, after: u64, after_bytes: u64) {
        let since = Lsn(self.last_lsn().0.max(self.tried_lsn.load(Ordering::Relaxed)));
        let is_due =
            || log.records_between(since, log.written()) >= after || log.gaps_behind(since).len() >= GAPS_MAX;
        let bytes_behind =
            self.bytes_before.load(Ordering::Relaxed).saturating_add_unsigned(log.written_bytes());
        let bytes_due = after_bytes.max(self.last_bytes.load(Ordering::Relaxed));
        let is_large = after_bytes > 0 && u64::try_from(bytes_behind).is_ok_and(|bytes| bytes >= bytes_due);
        if wants_relief || is_large || (after > 0 && is_due()) {
            self.request(None);
        }
    }

    /// Whether a snapshot is being taken.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// When the latest snapshot was completed, in seconds since 1970; the time of the start before the first.
    pub(crate) fn last_success(&self) -> u64 {
        self.last_success.load(Ordering::Relaxed)
    }

    /// The last record that the latest snapshot covers; 0 without one.
    pub(crate) fn last_lsn(&self) -> Lsn {
        Lsn(self.last_lsn.load(Ordering::Relaxed))
    }

    /// Why the latest attempt failed, if it did.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets the server take a snapshot before it stops, and complete one that it may be taking.
    pub(crate) fn want_last(&self) {
        self.last_wanted.store(true, Ordering::Release);
    }

    /// Whether the server takes a snapshot before it stops.
    pub(crate) fn is_last_wanted(&self) -> bool {
        self.last_wanted.load(Ordering::Acquire)
    }

    /// Gives up what is being taken, unless the server is to stop with a snapshot: nothing is lost without it.
    pub(crate) fn give_up(&self) {
        if !self.is_last_wanted() {
            self.given_up.store(true, Ordering::Release);
        }
    }

    /// Lets the thread end.
    pub(crate) fn stop(&self) {
        self.send(Request::Stop);
    }

    /// Whether what is being taken is to be given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    fn send(&self, request: Request) {
        // Without a receiver the server is stopping, and nobody waits for a snapshot any more.
        let _ = self.requests.lock().unwrap_or_else(PoisonError::into_inner).send(request);
    }

    /// Notes what has come of an attempt, when the log ended at `tried` and had written `written_bytes`: a snapshot and its size.
    pub(crate) fn note(&self, taken: &Result<(Lsn, u64), TakeError>, tried: Lsn, written_bytes: u64) {
        let before = i64::try_from(written_bytes).map_or(i64::MIN, |bytes| -bytes);
        self.bytes_before.store(before, Ordering::Relaxed);
        match taken {
            Ok((lsn, bytes)) => {
                self.last_bytes.store(*bytes, Ordering::Relaxed);
                self.last_success.store(now_seconds(), Ordering::Relaxed);
                self.last_lsn.store(lsn.0, Ordering::Relaxed);
            }
            // The next attempt is due when the log has grown as much again, not at once.
            Err(_) => {
                self.tried_lsn.fetch_max(tried.0, Ordering::Relaxed);
            }
        }
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) =
            taken.as_ref().err().map(ToString::to_string);
        self.busy.store(false, Ordering::Release);
    }
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidemark_log::{MemoryStorage, Options};

    /// A log of one record for each of so many processes, all of which were killed but the last.
    fn log_after_kills(kills: usize) -> Log {
        let mut storage = MemoryStorage::new();
        loop {
            let options = Options { segment_bytes: Options::SEGMENT_BYTES_MIN, ..Options::default() };
            let (log, recovery) = Log::open(Arc::new(storage.clone()), options).expect("opens");
            let lsn = log.append(0, 1, |buffer| buffer.push(1)).expect("is accepted");
            log.wait_durable(lsn).expect("memory does not fail");
            if recovery.records == kills as u64 {
                return log;
            }
            storage = storage.fork();
        }
    }

    fn is_due(log: &Log, latest: Lsn, after: u64) -> bool {
        let (snapshots, _requests) = Snapshots::new(latest);
        snapshots.request_if_due(log, false, after, 0);
        snapshots.is_busy()
    }

    #[test]
    fn a_snapshot_is_due_after_so_many_records_whatever_their_numbers_are() {
        let log = log_after_kills(3);
        assert!(log.written().0 >> 32 == 3);
        assert!(is_due(&log, Lsn::ZERO, 4) && !is_due(&log, Lsn::ZERO, 5));
        assert!(is_due(&log, Lsn::FIRST, 3) && !is_due(&log, Lsn::FIRST, 4));
        assert!(!is_due(&log, Lsn::ZERO, 0), "only when it is asked for");
    }

    #[test]
    fn a_snapshot_is_due_after_many_kills_however_few_records_there_are() {
        let log = log_after_kills(GAPS_MAX);
        assert!(is_due(&log, Lsn::ZERO, 1_000_000));
        assert!(!is_due(&log, log.written(), 1_000_000), "it has been taken");
        assert!(!is_due(&log_after_kills(GAPS_MAX - 1), Lsn::ZERO, 1_000_000));
    }

    #[test]
    fn a_snapshot_is_due_by_bytes_and_not_before_the_log_is_as_large_as_the_latest() {
        let log = log_after_kills(0);
        log.append(0, 1, |buffer| buffer.resize(buffer.len() + 1000, 1)).expect("is accepted");
        log.wait_durable(log.appended()).expect("memory does not fail");
        let is_due = |snapshot_bytes, replayed_bytes, after_bytes| {
            let (snapshots, _requests) = Snapshots::new(Lsn::ZERO);
            snapshots.begin(snapshot_bytes, replayed_bytes);
            snapshots.request_if_due(&log, false, 0, after_bytes);
            snapshots.is_busy()
        };
        let written = log.written_bytes();
        assert!(written > 1000);
        assert!(is_due(0, 0, written) && !is_due(0, 0, written + 1));
        assert!(is_due(0, 1, written + 1), "what was replayed counts");
        assert!(!is_due(written + 1, 0, 1), "less than the latest snapshot");
        assert!(!is_due(0, 1 << 40, 0), "not for that reason");
        let (snapshots, _requests) = Snapshots::new(Lsn::ZERO);
        snapshots.request_if_due(&log, true, 0, 0);
        assert!(snapshots.is_busy(), "the disk gets full");
        snapshots.note(&Ok((log.appended(), 10)), log.appended(), written);
        snapshots.request_if_due(&log, false, 0, 1);
        assert!(!snapshots.is_busy(), "nothing was logged since");
    }
}
