//! The feed: one thread reads the log for all followers, each from its own position.
//!
//! Followers take turns, up to 1 MiB of the log at a time. A follower whose queue is full is
//! skipped until it has taken something, so it does not delay the others. The log is not retained
//! for a follower: if its next record is dropped, its stream ends with an error.

use crate::bell::Bell;
use crate::follower::{EncodedRecord, End, Follower, Queue, Waker};
use crate::{EncodeError, Format, Selection};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_log::{Durability, Log, Lsn, ReplayError, Tail};

/// Interval of the syncs that the feed requests in durability mode `off`, while there are
/// followers.
const SYNC_PAUSE: Duration = Duration::from_secs(1);
/// A follower that has read a larger batch frees its buffer afterwards. Bytes.
const KEPT_BATCH_BYTES: usize = 4 << 20;

/// Why the log cannot be followed from an LSN.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    /// The next record has been dropped; the log starts at this LSN.
    #[error("the log begins at LSN {0}")]
    Stale(Lsn),
    /// The LSN is beyond the end of the log, which is given here.
    #[error("the log ends at LSN {0}")]
    Invalid(Lsn),
    /// The log cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Reads the log for all followers on one thread.
pub struct Feed {
    inner: Arc<FeedShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct FeedShared {
    log: Arc<Log>,
    /// Number of followers, including those in `arrivals`.
    followers: AtomicUsize,
    /// Rings when a follower arrives, leaves or has space again, when the log advances, and at the
    /// end.
    bell: Arc<Bell>,
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    /// Followers that the thread has not picked up yet.
    arrivals: Vec<Reader>,
    is_stopping: bool,
}

/// The thread's side of one follower.
struct Reader {
    tail: Tail,
    queue: Arc<Queue>,
    selection: Selection,
    format: Format,
    /// Largest payload for one record. Bytes.
    limit: usize,
}

impl Feed {
    /// Creates a feed; [`Feed::start`] starts its thread.
    pub fn new(log: Arc<Log>) -> Feed {
        let inner = Arc::new(FeedShared {
            log,
            followers: AtomicUsize::new(0),
            bell: Arc::default(),
            state: Mutex::default(),
        });
        Feed { inner, thread: Mutex::default() }
    }

    /// Starts the thread, which sleeps while there are no followers.
    pub fn start(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.inner);
        let thread =
            std::thread::Builder::new().name("tidemark-changes".to_owned()).spawn(move || shared.run())?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Follows the log after `seen`. `waker` is called when there is something to take, and not
    /// again until the follower has found its queue empty; it must be quick. A record that needs
    /// more than `limit` bytes ends the stream.
    pub fn follow(
        &self,
        seen: Lsn,
        selection: Selection,
        format: Format,
        limit: usize,
        waker: Waker,
    ) -> Result<Follower, NotFollowed> {
        let tail = self.inner.log.tail(seen.next()).map_err(|error| match error {
            ReplayError::Released { floor, .. } => NotFollowed::Stale(floor),
            ReplayError::Beyond { end, .. } => NotFollowed::Invalid(end),
            other => NotFollowed::Unreadable(other.to_string()),
        })?;
        let queue = Arc::new(Queue::new(seen, waker));
        Ok(self.inner.enter(Reader { tail, queue, selection, format, limit }))
    }

    /// Returns the number of followers.
    pub fn followers(&self) -> usize {
        self.inner.followers.load(Ordering::Relaxed)
    }

    /// Notifies the feed that the log has advanced. One load if there are no followers.
    pub fn log_moved(&self) {
        if self.followers() > 0 {
            self.inner.bell.ring();
        }
    }

    /// Ends the thread. Followers can still take what is queued.
    pub fn stop(&self) {
        self.inner.lock().is_stopping = true;
        self.inner.bell.ring();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // If the thread panicked, its message is on standard error.
        let _ = thread.map(JoinHandle::join);
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("followers", &self.followers()).finish_non_exhaustive()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop();
    }
}

impl FeedShared {
    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, reader: Reader) -> Follower {
        let follower = Follower::new(Arc::clone(&reader.queue), Arc::clone(&self.bell));
        self.followers.fetch_add(1, Ordering::Relaxed);
        self.lock().arrivals.push(reader);
        self.bell.ring();
        follower
    }

    fn run(&self) {
        let mut readers: Vec<Reader> = Vec::new();
        loop {
            // Before the check for work.
            self.bell.silence();
            {
                let mut state = self.lock();
                if state.is_stopping {
                    return;
                }
                readers.append(&mut state.arrivals);
            }
            let mut has_read = false;
            readers.retain_mut(|reader| match reader.step(&self.log) {
                FeedStep::Ended => {
                    self.followers.fetch_sub(1, Ordering::Relaxed);
                    false
                }
                step => {
                    has_read |= step == FeedStep::Read;
                    true
                }
            });
            if !has_read {
                self.sleep(!readers.is_empty());
            }
        }
    }

    fn sleep(&self, is_followed: bool) {
        if !is_followed {
            return self.bell.wait();
        }
        while !self.bell.wait_for(SYNC_PAUSE) {
            // The mode may have changed since the last look.
            if self.log.durability() == Durability::Off {
                // Otherwise these records might never become durable, and never be delivered.
                self.log.request_sync(self.log.appended());
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FeedStep {
    /// Something was read; there may be more.
    Read,
    /// There is nothing to read, or the queue is full.
    Idle,
    /// The follower is gone, or the log cannot be read further.
    Ended,
}

impl Reader {
    /// Reads some of the log for the follower, unless its queue is full.
    fn step(&mut self, log: &Log) -> FeedStep {
        if self.queue.is_abandoned() {
            return FeedStep::Ended;
        }
        if !self.queue.has_room() {
            return FeedStep::Idle;
        }
        match self.read(log) {
            Ok(true) => FeedStep::Read,
            Ok(false) => FeedStep::Idle,
            Err(end) => {
                self.queue.finish(end);
                FeedStep::Ended
            }
        }
    }

    fn read(&mut self, log: &Log) -> Result<bool, End> {
        let Some(batch) = self.tail.next_committed_batch().map_err(ended)? else { return Ok(false) };
        let (mut encoded, mut bytes, position) = (Vec::new(), 0, batch.last_lsn());
        for record in batch {
            let payload = match self.format.encode(&record, &self.selection, self.limit) {
                Ok(payload) => payload,
                Err(error) => {
                    // Deliver the records before it first.
                    self.queue.add(encoded, record.lsn.previous());
                    return Err(match error {
                        EncodeError::Unreadable(..) => End::Unreadable(error.to_string()),
                        EncodeError::TooLong { .. } => End::TooLong(error.to_string()),
                    });
                }
            };
            encoded.extend(payload.map(|payload| EncodedRecord {
                lsn: record.lsn,
                time_us: record.time_us,
                payload,
            }));
            bytes += record.payload.len();
        }
        self.queue.add(encoded, position);
        if bytes > KEPT_BATCH_BYTES {
            self.tail = log.tail(position.next()).map_err(ended)?;
        }
        Ok(true)
    }
}

fn ended(error: ReplayError) -> End {
    match error {
        ReplayError::Released { floor, .. } => End::Stale(floor),
        other => End::Unreadable(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follower::QUEUE_BYTES;
    use std::sync::mpsc::{Receiver, channel};
    use tidemark_engine::command::find;
    use tidemark_engine::record::{encode_command, kind};
    use tidemark_log::{MemoryStorage, Options, Retention};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn log(options: Options) -> Arc<Log> {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log");
        Arc::new(log)
    }

    fn options(durability: Durability) -> Options {
        Options { durability, segment_bytes: 64 << 10, ..Options::default() }
    }

    fn started(log: &Arc<Log>) -> Arc<Feed> {
        let feed = Arc::new(Feed::new(Arc::clone(log)));
        feed.start().expect("a thread");
        let weak = Arc::downgrade(&feed);
        log.set_listener(Box::new(move |_| {
            if let Some(feed) = weak.upgrade() {
                feed.log_moved();
            }
        }));
        feed
    }

    fn set(log: &Log, key: &str, value: &[u8]) -> Lsn {
        let id = find(b"SET").expect("a command").id;
        let write = |into: &mut Vec<u8>| encode_command(into, 0, id, &[key.as_bytes(), value]);
        log.append(1, kind::COMMAND, write).expect("the log takes it")
    }

    /// A follower, and the calls of its waker.
    fn follow(feed: &Feed, seen: u64) -> (Follower, Receiver<()>) {
        let (calls, called) = channel();
        let waker = Box::new(move || calls.send(()).unwrap_or_default());
        let follower = feed.follow(Lsn(seen), Selection::default(), Format::Json, usize::MAX, waker);
        (follower.expect("it can be followed"), called)
    }

    /// Takes `count` changes and returns their LSNs.
    fn take(follower: &Follower, called: &Receiver<()>, count: usize) -> Vec<u64> {
        let mut lsns = Vec::new();
        while lsns.len() < count {
            match follower.next() {
                Some(encoded) => lsns.push(encoded.lsn.0),
                None => called.recv_timeout(PATIENCE).expect("a call"),
            }
        }
        lsns
    }

    #[test]
    fn a_follower_gets_only_durable_records() {
        let log = log(options(Durability::Always));
        let feed = started(&log);
        let (follower, called) = follow(&feed, 0);
        set(&log, "a", b"1");
        let last = set(&log, "b", b"2");
        assert!(!follower.has_next(), "no caller has requested a sync");
        log.wait_durable(last).expect("a sync");
        assert_eq!(take(&follower, &called, 2), [1, 2]);
        let (later, called) = follow(&feed, 1);
        assert_eq!(take(&later, &called, 1), [2]);
        assert_eq!(later.caught_up_to(), Some(Lsn(2)));
    }

    #[test]
    fn a_log_that_never_syncs_by_itself_is_asked_to() {
        let log = log(options(Durability::Off));
        let feed = started(&log);
        let (follower, called) = follow(&feed, 0);
        set(&log, "a", b"1");
        assert_eq!(take(&follower, &called, 1), [1]);
    }

    #[test]
    fn a_log_that_stops_to_sync_while_it_is_followed_is_asked_to() {
        let log = log(options(Durability::Always));
        let feed = started(&log);
        let (follower, called) = follow(&feed, 0);
        log.wait_durable(set(&log, "a", b"1")).expect("a sync");
        assert_eq!(take(&follower, &called, 1), [1]);
        log.set_durability(Durability::Off);
        set(&log, "b", b"2");
        assert_eq!(take(&follower, &called, 1), [2]);
    }

    #[test]
    fn a_slow_follower_fills_its_bounded_queue_and_delays_no_other_follower() {
        let log = log(options(Durability::Always));
        let feed = started(&log);
        let (slow, slow_called) = follow(&feed, 0);
        let (quick, quick_called) = follow(&feed, 0);
        let mut last = Lsn::ZERO;
        for _ in 0..100 {
            last = set(&log, "k", &vec![b'x'; 100_000]);
        }
        log.wait_durable(last).expect("a sync");
        assert_eq!(take(&quick, &quick_called, 100).len(), 100);
        assert!(slow.waiting_bytes() < 4 * QUEUE_BYTES, "{}", slow.waiting_bytes());
        assert_eq!(take(&slow, &slow_called, 100), (1..=100).collect::<Vec<u64>>());
    }

    #[test]
    fn places_outside_of_the_log_are_refused_and_so_is_what_was_dropped_meanwhile() {
        let retention = Retention { bytes: None, age: None, keep_snapshots: 1 };
        let log = log(Options { retention, ..options(Durability::Always) });
        let feed = started(&log);
        let (slow, called) = follow(&feed, 0);
        let mut last = Lsn::ZERO;
        for _ in 0..200 {
            last = set(&log, "k", &vec![b'x'; 30_000]);
        }
        log.wait_durable(last).expect("a sync");
        called.recv_timeout(PATIENCE).expect("it has something to take");
        log.release(last);
        let began = std::time::Instant::now();
        // Two records fill a segment: the floor cannot move past the last segment.
        while log.floor() < last.previous() {
            assert!(began.elapsed() < PATIENCE, "segments are dropped, the log begins at {}", log.floor());
            std::thread::sleep(Duration::from_millis(5));
        }
        let ignore = || Box::new(|| ());
        let refused = |seen| {
            let followed = feed.follow(Lsn(seen), Selection::default(), Format::Json, usize::MAX, ignore());
            followed.map(|_| ()).expect_err("refused")
        };
        let floor = log.floor();
        assert_eq!(refused(0), NotFollowed::Stale(floor));
        assert_eq!(refused(floor.0 - 2), NotFollowed::Stale(floor));
        assert_eq!(refused(last.0 + 1), NotFollowed::Invalid(last));
        drop(follow(&feed, floor.0 - 1));
        drop(follow(&feed, last.0));
        let mut seen = 0;
        let end = loop {
            match slow.next() {
                Some(encoded) => {
                    assert_eq!(encoded.lsn, Lsn(seen + 1));
                    seen = encoded.lsn.0;
                }
                None => match slow.end() {
                    Some(end) => break end,
                    None => called.recv_timeout(PATIENCE).expect("a call"),
                },
            }
        };
        assert!(seen < floor.0 - 1, "{seen}");
        assert_eq!(end, End::Stale(floor));
    }

    #[test]
    fn a_record_above_the_limit_ends_the_stream_after_the_records_before_it() {
        let log = log(options(Durability::Always));
        let feed = started(&log);
        set(&log, "a", b"short");
        set(&log, "b", &vec![1; 20_000]);
        log.wait_durable(set(&log, "c", b"short")).expect("a sync");
        let (calls, called) = channel();
        let waker = Box::new(move || calls.send(()).unwrap_or_default());
        let limited = feed.follow(Lsn::ZERO, Selection::default(), Format::Json, 50_000, waker);
        let limited = limited.expect("it can be followed");
        assert_eq!(take(&limited, &called, 1), [1]);
        let end = loop {
            match (limited.next(), limited.end()) {
                (None, Some(end)) => break end,
                (encoded, _) => {
                    assert_eq!(encoded, None);
                    called.recv_timeout(PATIENCE).expect("a call");
                }
            }
        };
        assert!(matches!(end, End::TooLong(_)), "{end}");
        let (whole, called) = follow(&feed, 0);
        assert_eq!(take(&whole, &called, 3), [1, 2, 3]);
    }

    #[test]
    fn a_dropped_follower_is_removed() {
        let log = log(options(Durability::Always));
        let feed = started(&log);
        let (follower, _called) = follow(&feed, 0);
        assert_eq!(feed.followers(), 1);
        drop(follower);
        let began = std::time::Instant::now();
        while feed.followers() > 0 {
            assert!(began.elapsed() < PATIENCE, "it is forgotten");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
