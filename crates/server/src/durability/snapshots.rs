//! Snapshots while serving: requested by clients or because the log has grown, and taken one at a
//! time by a thread (`snapshot_thread.rs`).

use crate::net::connection_id::ConnectionId;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use tidemark_engine::{TakeError, TakenSnapshot};
use tidemark_log::{Clock, Log, Lsn};

/// Unclean stops after which a snapshot is due. Each leaves a short segment, which is an open file,
/// and a server that is killed repeatedly would never log enough for a snapshot.
const GAPS_MAX: usize = 32;

/// A request to the snapshot thread.
pub(crate) enum Request {
    /// Drop points of series that take too much memory.
    DropPoints,
    /// Take a snapshot, and notify the client if one waits.
    Take(Option<(usize, ConnectionId)>),
    /// End, after a last snapshot if one was requested.
    Stop,
}

/// State of snapshots, shared by workers and the snapshot thread.
pub(crate) struct Snapshots {
    clock: Clock,
    requests: Mutex<Sender<Request>>,
    /// A snapshot is requested or being taken.
    busy: AtomicBool,
    /// Time of the latest success, in seconds since 1970; initially the time of the start.
    last_success: AtomicU64,
    /// Last record that the latest snapshot covers.
    last_lsn: AtomicU64,
    /// Bytes of the log after the latest snapshot or attempt, minus the bytes that this process had
    /// written then.
    bytes_before: AtomicI64,
    /// Size of the latest snapshot. Bytes.
    last_bytes: AtomicU64,
    /// End of the log at the latest failed attempt.
    tried_lsn: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// The server stops: abandon the running snapshot.
    given_up: AtomicBool,
    /// The server takes a snapshot before it stops.
    last_wanted: AtomicBool,
}

/// Receiver of the snapshot thread.
pub(crate) struct Requests(Receiver<Request>);

impl Requests {
    /// Waits for the next request.
    pub(crate) fn next(&self) -> Request {
        // Without a sender the server is gone.
        self.0.recv().unwrap_or(Request::Stop)
    }
}

impl Snapshots {
    /// Creates the state, and the receiver for the snapshot thread. `last` is the newest snapshot.
    pub(crate) fn new(last: Lsn, clock: &Clock) -> (Snapshots, Requests) {
        let (sender, receiver) = channel();
        let snapshots = Snapshots {
            clock: clock.clone(),
            requests: Mutex::new(sender),
            busy: AtomicBool::new(false),
            last_success: AtomicU64::new(clock.now_us() / 1_000_000),
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

    /// Records the newest snapshot that was found at the start.
    pub(crate) fn note_loaded(&self, last: Lsn) {
        self.last_lsn.store(last.0, Ordering::Relaxed);
    }

    /// Requests a snapshot. Returns `false` if one is requested or being taken. The client, if
    /// given with its worker, is answered `OK` or an error when the snapshot is complete.
    pub(crate) fn request(&self, client: Option<(usize, ConnectionId)>) -> bool {
        if self.busy.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.send(Request::Take(client));
        true
    }

    /// Sets the size of the newest snapshot, and the bytes of the log after it, as found at the
    /// start.
    pub(crate) fn begin(&self, bytes: u64, replayed_bytes: u64) {
        self.last_bytes.store(bytes, Ordering::Relaxed);
        self.bytes_before.store(i64::try_from(replayed_bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Requests a snapshot if `after` records were logged since the latest, or `after_bytes` bytes
    /// and at least its size; 0 disables a limit. With `after`, many unclean stops since the latest
    /// make one due too. `wants_relief`, because the disk gets full, requests one in any case.
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

    /// Whether a snapshot is requested or being taken.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// When the latest snapshot was completed, in seconds since 1970; initially the time of the
    /// start.
    pub(crate) fn last_success(&self) -> u64 {
        self.last_success.load(Ordering::Relaxed)
    }

    /// Last record that the latest snapshot covers; 0 without one.
    pub(crate) fn last_lsn(&self) -> Lsn {
        Lsn(self.last_lsn.load(Ordering::Relaxed))
    }

    /// Why the latest attempt failed, if it did.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the server take a snapshot before it stops, and complete a running one.
    pub(crate) fn want_last(&self) {
        self.last_wanted.store(true, Ordering::Release);
    }

    /// Whether the server takes a snapshot before it stops.
    pub(crate) fn is_last_wanted(&self) -> bool {
        self.last_wanted.load(Ordering::Acquire)
    }

    /// Abandons the running snapshot, unless the server is to stop with one. The log has every
    /// change.
    pub(crate) fn give_up(&self) {
        if !self.is_last_wanted() {
            self.given_up.store(true, Ordering::Release);
        }
    }

    /// Requests that points of series leave memory if they take too much of it.
    pub(crate) fn request_dropping(&self) {
        self.send(Request::DropPoints);
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.send(Request::Stop);
    }

    /// Whether the running snapshot is to be abandoned.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    fn send(&self, request: Request) {
        // Without a receiver the server is stopping, and no client waits for a snapshot.
        let _ = self.requests.lock().unwrap_or_else(PoisonError::into_inner).send(request);
    }

    /// Records the result of an attempt: the snapshot and its size, or an error. `tried` is the end
    /// of the log at its start, `written_bytes` the bytes written by then.
    pub(crate) fn note(&self, taken: &Result<TakenSnapshot, TakeError>, tried: Lsn, written_bytes: u64) {
        let before = i64::try_from(written_bytes).map_or(i64::MIN, |bytes| -bytes);
        self.bytes_before.store(before, Ordering::Relaxed);
        match taken {
            Ok(TakenSnapshot { lsn, bytes, block_bytes }) => {
                self.last_bytes.store(bytes + block_bytes, Ordering::Relaxed);
                self.last_success.store(self.clock.now_us() / 1_000_000, Ordering::Relaxed);
                self.last_lsn.store(lsn.0, Ordering::Relaxed);
            }
            // Retried only when the log has grown as much again.
            Err(_) => {
                self.tried_lsn.fetch_max(tried.0, Ordering::Relaxed);
            }
        }
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) =
            taken.as_ref().err().map(ToString::to_string);
        self.busy.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidemark_log::{MemoryStorage, Options};

    /// Creates a log with one record of each of `kills` + 1 processes, all but the last of which
    /// were killed.
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
        let (snapshots, _requests) = Snapshots::new(latest, &Clock::System);
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
            let (snapshots, _requests) = Snapshots::new(Lsn::ZERO, &Clock::System);
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
        let (snapshots, _requests) = Snapshots::new(Lsn::ZERO, &Clock::System);
        snapshots.request_if_due(&log, true, 0, 0);
        assert!(snapshots.is_busy(), "the disk gets full");
        let taken = TakenSnapshot { lsn: log.appended(), bytes: 4, block_bytes: 6 };
        snapshots.note(&Ok(taken), log.appended(), written);
        snapshots.request_if_due(&log, false, 0, 1);
        assert!(!snapshots.is_busy(), "nothing was logged since");
    }
}
