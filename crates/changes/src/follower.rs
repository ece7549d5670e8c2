//! Followers: bounded queues between the thread that reads the log and consumers of changes.

use crate::bell::Bell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::Lsn;

/// Queue size above which nothing more is read for a follower. The last read may exceed it, by up
/// to 1 MiB of the log or one record. Bytes.
pub(crate) const QUEUE_BYTES: usize = 1 << 20;

/// Change-stream form of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRecord {
    /// LSN of the record.
    pub lsn: Lsn,
    /// Time of the record, in microseconds since 1970.
    pub time_us: u64,
    /// Its changes in the follower's format.
    pub payload: Vec<u8>,
}

/// Why a follower gets nothing more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The next record has been dropped; the log starts at this LSN.
    #[error("the log has dropped what comes next; it begins at LSN {0}")]
    Stale(Lsn),
    /// The log cannot be read at the next record.
    #[error("{0}")]
    Unreadable(String),
    /// The next record needs more than the follower's limit.
    #[error("{0}")]
    TooLong(String),
}

/// Callback that notifies the consumer of a follower.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// State shared by the reading thread and the follower.
pub(crate) struct Queue {
    state: Mutex<FollowerState>,
    waker: Waker,
}

struct FollowerState {
    waiting: VecDeque<EncodedRecord>,
    bytes: usize,
    /// All records up to here have been read for the follower.
    position: Lsn,
    end: Option<End>,
    /// The waker was called, and the follower has not found the queue empty since.
    was_called: bool,
    /// The follower was dropped.
    is_abandoned: bool,
}

impl Queue {
    pub(crate) fn new(position: Lsn, waker: Waker) -> Queue {
        let state = FollowerState {
            waiting: VecDeque::new(),
            bytes: 0,
            position,
            end: None,
            was_called: false,
            is_abandoned: false,
        };
        Queue { state: Mutex::new(state), waker }
    }

    fn lock(&self) -> MutexGuard<'_, FollowerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.lock().bytes < QUEUE_BYTES
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned
    }

    /// Adds the changes of records up to `position`.
    pub(crate) fn add(&self, encoded: Vec<EncodedRecord>, position: Lsn) {
        let mut state = self.lock();
        let mut last = state.position;
        for EncodedRecord { lsn, .. } in &encoded {
            assert!(*lsn > last, "record {lsn} is queued after record {last}");
            last = *lsn;
        }
        assert!(position >= last, "records are queued up to {last}, and read up to {position}");
        state.position = position;
        state.bytes += encoded.iter().map(bytes_of).sum::<usize>();
        let has_news = !encoded.is_empty();
        state.waiting.extend(encoded);
        if has_news {
            self.call(state);
        }
    }

    /// Ends the stream after what is queued.
    pub(crate) fn finish(&self, end: End) {
        let mut state = self.lock();
        state.end = Some(end);
        self.call(state);
    }

    fn call(&self, mut state: MutexGuard<'_, FollowerState>) {
        if !std::mem::replace(&mut state.was_called, true) {
            drop(state);
            (self.waker)();
        }
    }
}

fn bytes_of(encoded: &EncodedRecord) -> usize {
    encoded.payload.len() + size_of::<EncodedRecord>()
}

/// Consumer's end of a change stream. Dropping it ends the stream.
pub struct Follower {
    queue: Arc<Queue>,
    /// Wakes the reading thread.
    bell: Arc<Bell>,
}

impl Follower {
    pub(crate) fn new(queue: Arc<Queue>, bell: Arc<Bell>) -> Follower {
        Follower { queue, bell }
    }

    /// Takes the next record's changes, if there are any. The waker is not called again until this
    /// has returned `None`.
    pub fn next(&self) -> Option<EncodedRecord> {
        let mut state = self.queue.lock();
        let encoded = state.waiting.pop_front();
        match &encoded {
            None => state.was_called = false,
            Some(taken) => {
                let was_full = state.bytes >= QUEUE_BYTES;
                let (all, bytes) = (state.bytes, bytes_of(taken));
                state.bytes = all
                    .checked_sub(bytes)
                    .unwrap_or_else(|| panic!("{bytes} of {all} waiting bytes are taken"));
                if was_full && state.bytes < QUEUE_BYTES {
                    drop(state);
                    self.bell.ring();
                }
            }
        }
        encoded
    }

    /// Returns whether anything is queued.
    pub fn has_next(&self) -> bool {
        !self.queue.lock().waiting.is_empty()
    }

    /// Returns the bytes queued.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Returns the LSN up to which everything has been taken; `None` while anything is queued.
    pub fn caught_up_to(&self) -> Option<Lsn> {
        let state = self.queue.lock();
        state.waiting.is_empty().then_some(state.position)
    }

    /// Returns why the stream has ended; `None` while anything is queued or may arrive.
    pub fn end(&self) -> Option<End> {
        let state = self.queue.lock();
        state.end.clone().filter(|_| state.waiting.is_empty())
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("caught_up_to", &self.caught_up_to()).finish_non_exhaustive()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_abandoned = true;
        state.waiting.clear();
        drop(state);
        self.bell.ring();
    }
}
