//! Somebody who is told of changes: a bounded queue between the thread that reads the log and whoever passes them on.

use crate::bell::Bell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::Lsn;

/// While more than this waits for a follower, nothing more is read for it. What was read together with what filled the
/// queue comes on top: a mebibyte of the log, or one record. Bytes.
pub(crate) const QUEUE_BYTES: usize = 1 << 20;

/// What is told of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The record.
    pub lsn: Lsn,
    /// When it was made, in microseconds since 1970.
    pub time_us: u64,
    /// Its changes in the follower's format.
    pub payload: Vec<u8>,
}

/// Why a follower is told of nothing more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The log has dropped what comes next; it begins here.
    #[error("the log has dropped what comes next; it begins at LSN {0}")]
    Stale(Lsn),
    /// The log cannot be read there.
    #[error("{0}")]
    Unreadable(String),
    /// What comes next is longer than whoever follows takes.
    #[error("{0}")]
    TooLong(String),
}

/// Calls whoever passes changes on.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// What the reading thread and the follower share.
pub(crate) struct Queue {
    state: Mutex<State>,
    waker: Waker,
}

struct State {
    waiting: VecDeque<Told>,
    bytes: usize,
    /// All records up to here have been read for the follower.
    position: Lsn,
    end: Option<End>,
    /// The follower has been called and has not looked since.
    was_called: bool,
    /// Nobody follows any more.
    is_abandoned: bool,
}

impl Queue {
    pub(crate) fn new(position: Lsn, waker: Waker) -> Queue {
        let state = State {
            waiting: VecDeque::new(),
            bytes: 0,
            position,
            end: None,
            was_called: false,
            is_abandoned: false,
        };
        Queue { state: Mutex::new(state), waker }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether more may be read for the follower.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().bytes < QUEUE_BYTES
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned
    }

    /// Adds what is told of records up to `position`.
    pub(crate) fn add(&self, told: Vec<Told>, position: Lsn) {
        let mut state = self.lock();
        let mut last = state.position;
        for Told { lsn, .. } in &told {
            assert!(*lsn > last, "record {lsn} is told of behind record {last}");
            last = *lsn;
        }
        assert!(position >= last, "records are told of up to {last}, and read up to {position}");
        state.position = position;
        state.bytes += told.iter().map(bytes_of).sum::<usize>();
        let has_news = !told.is_empty();
        state.waiting.extend(told);
        if has_news {
            self.call(state);
        }
    }

    /// Says that nothing comes behind what waits.
    pub(crate) fn finish(&self, end: End) {
        let mut state = self.lock();
        state.end = Some(end);
        self.call(state);
    }

    fn call(&self, mut state: MutexGuard<'_, State>) {
        if !std::mem::replace(&mut state.was_called, true) {
            drop(state);
            (self.waker)();
        }
    }
}

fn bytes_of(told: &Told) -> usize {
    told.payload.len() + size_of::<Told>()
}

/// See the module's documentation. Whoever drops it follows no more.
pub struct Follower {
    queue: Arc<Queue>,
    /// The reading thread's.
    bell: Arc<Bell>,
}

impl Follower {
    pub(crate) fn new(queue: Arc<Queue>, bell: Arc<Bell>) -> Follower {
        Follower { queue, bell }
    }

    /// What comes next, if there is anything. Until this or [`Follower::end`] has answered that there is nothing, the
    /// waker is not called again.
    pub fn next(&self) -> Option<Told> {
        let mut state = self.queue.lock();
        let told = state.waiting.pop_front();
        match &told {
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
        told
    }

    /// Whether something waits.
    pub fn has_next(&self) -> bool {
        !self.queue.lock().waiting.is_empty()
    }

    /// What waits, in bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Up to where there is nothing that has not been taken; `None` while something waits.
    pub fn caught_up_to(&self) -> Option<Lsn> {
        let state = self.queue.lock();
        state.waiting.is_empty().then_some(state.position)
    }

    /// Why nothing more comes; `None` while something waits or may come.
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
