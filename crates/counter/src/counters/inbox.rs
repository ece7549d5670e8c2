//! Requests of callers to the commit thread.

use super::key::{Found, KeyRef};
use super::metrics::Exposure;
use crate::committer::{Errand, Error, Extent, Ticket};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Receives the position that is loaded.
pub(crate) type Loaded = Arc<Ticket<Result<i64, Error>>>;

/// A request, with the place for its answer.
pub(crate) enum Request {
    /// Commit this extent of a counter.
    Commit { key: KeyRef, extent: Extent, waiter: Option<Arc<Ticket<Result<(), Error>>>> },
    /// Move a counter, by a commit if necessary.
    Move { key: KeyRef, errand: Arc<Errand> },
    /// Load the position that is stored under a name.
    Load { name: Box<[u8]>, loaded: Loaded },
    /// Commit all that is dirty.
    Flush(Arc<Ticket<Result<(), Error>>>),
    /// Evict counters to make room: at least one place, and `places` if that many have not been
    /// used lately.
    MakeRoom { places: usize, made: Arc<Ticket<Result<(), Error>>> },
    /// Evict all idle counters, and answer how many.
    Evict(Arc<Ticket<usize>>),
    /// Answer how much is uncommitted.
    Survey(Arc<Ticket<Exposure>>),
    /// Commit all that is dirty, for the last time.
    Close(Arc<Ticket<Result<(), Error>>>),
}

/// The queue of messages to the commit thread.
#[derive(Default)]
pub(crate) struct Inbox {
    letters: Mutex<Letters>,
    news: Condvar,
}

#[derive(Default)]
struct Letters {
    /// Counters that have become dirty.
    dirty: Vec<KeyRef>,
    requests: Vec<Request>,
    /// The commit thread sleeps, and is to be woken when a counter becomes dirty.
    wakes_for_dirty: bool,
    /// The commit thread has ended.
    is_closed: bool,
}

impl Inbox {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a counter dirty and queues it, unless it was dirty.
    ///
    /// Both happen in one critical section. A caller that sees the counter dirty and then sends a
    /// request is therefore ordered after it.
    pub(crate) fn note(&self, key: Found<'_>) {
        let mut letters = self.letters();
        if !letters.is_closed && key.set_dirty() {
            letters.dirty.push(key.hold());
            if letters.wakes_for_dirty {
                self.news.notify_one();
            }
        }
    }

    /// Queues a request, unless the inbox is closed.
    pub(crate) fn request(&self, request: Request) -> Result<(), Error> {
        self.request_all([request])
    }

    /// Queues several requests, which are received together. If the inbox is closed, each is
    /// answered with an error too: other callers may wait for the same answer.
    pub(crate) fn request_all(&self, requests: impl IntoIterator<Item = Request>) -> Result<(), Error> {
        let mut letters = self.letters();
        if letters.is_closed {
            drop(letters);
            requests.into_iter().for_each(|request| request.refuse(&Error::Closed));
            return Err(Error::Closed);
        }
        letters.requests.extend(requests);
        self.news.notify_one();
        Ok(())
    }

    /// Waits for messages or until `until`, and takes all there are. With `wakes_for_dirty`, a
    /// counter that becomes dirty also ends the wait. `dirty` and `requests` must be empty.
    pub(crate) fn take(
        &self,
        until: Option<Instant>,
        wakes_for_dirty: bool,
        dirty: &mut Vec<KeyRef>,
        requests: &mut Vec<Request>,
    ) {
        let (keys, asked) = (dirty.len(), requests.len());
        assert!(keys == 0 && asked == 0, "{keys} dirty counters and {asked} requests are not dealt with");
        let mut letters = self.letters();
        loop {
            let is_time = until.is_some_and(|until| until <= Instant::now());
            let has_news = !letters.requests.is_empty() || wakes_for_dirty && !letters.dirty.is_empty();
            if is_time || has_news {
                break;
            }
            letters.wakes_for_dirty = wakes_for_dirty;
            letters = match until {
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    self.news.wait_timeout(letters, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.news.wait(letters).unwrap_or_else(PoisonError::into_inner),
            };
            letters.wakes_for_dirty = false;
        }
        std::mem::swap(&mut letters.dirty, dirty);
        std::mem::swap(&mut letters.requests, requests);
    }

    /// Closes the inbox and returns the requests that were not received.
    pub(crate) fn close(&self) -> Vec<Request> {
        let mut letters = self.letters();
        letters.is_closed = true;
        letters.dirty.clear();
        std::mem::take(&mut letters.requests)
    }
}

impl Request {
    /// Answers a request that will not be fulfilled.
    pub(crate) fn refuse(self, error: &Error) {
        match self {
            Self::Commit { waiter: Some(waiter), .. }
            | Self::Flush(waiter)
            | Self::MakeRoom { made: waiter, .. }
            | Self::Close(waiter) => waiter.answer(Err(error.clone())),
            Self::Commit { waiter: None, .. } => {}
            Self::Move { errand, .. } => errand.fail(error.clone()),
            Self::Load { loaded, .. } => loaded.answer(Err(error.clone())),
            Self::Evict(evicted) => evicted.answer(0),
            Self::Survey(survey) => survey.answer(Exposure::default()),
        }
    }
}
