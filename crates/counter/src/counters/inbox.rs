//! What callers leave for the thread that commits.

use super::key::{Found, KeyRef};
use super::metrics::Exposure;
use crate::committer::{Errand, Error, Extent, Ticket};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where the position goes that is loaded.
pub(crate) type Loaded = Arc<Ticket<Result<i64, Error>>>;

/// What somebody wants, and where the answer goes.
pub(crate) enum Request {
    /// Commit so much of a counter.
    Commit { key: KeyRef, extent: Extent, waiter: Option<Arc<Ticket<Result<(), Error>>>> },
    /// Move a counter, by a commit if that takes one.
    Move { key: KeyRef, errand: Arc<Errand> },
    /// What is stored under a name.
    Load { name: Box<[u8]>, loaded: Loaded },
    /// Commit all that is dirty.
    Flush(Arc<Ticket<Result<(), Error>>>),
    /// Put counters away, because there are too many: for at least one, and for so many if there are as many that nobody has used lately.
    MakeRoom { places: usize, made: Arc<Ticket<Result<(), Error>>> },
    /// Put counters away that nobody uses, and say how many.
    Evict(Arc<Ticket<usize>>),
    /// How much is uncommitted.
    Survey(Arc<Ticket<Exposure>>),
    /// Commit all that is dirty, for the last time.
    Close(Arc<Ticket<Result<(), Error>>>),
}

/// The letters, and who waits for them.
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
    /// The reader sleeps, and wants to be woken if a counter becomes dirty.
    wakes_for_dirty: bool,
    /// There is no reader any more.
    is_closed: bool,
}

impl Inbox {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A counter may have become dirty.
    ///
    /// It is said to be dirty and put here in one step. So whoever sees that it is dirty, and then asks for something, is behind it.
    pub(crate) fn note(&self, key: Found<'_>) {
        let mut letters = self.letters();
        if !letters.is_closed && key.set_dirty() {
            letters.dirty.push(key.hold());
            if letters.wakes_for_dirty {
                self.news.notify_one();
            }
        }
    }

    /// Leaves a request, unless nobody reads it any more.
    pub(crate) fn request(&self, request: Request) -> Result<(), Error> {
        self.request_all([request])
    }

    /// Leaves several requests, which are read together. If nobody reads them any more, each is answered so too: others may wait for
    /// the same answer.
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

    /// Takes what there is, when there is something or it is time. Without `until`, and when that is far, a counter that becomes dirty ends the
    /// waiting too. What is in `dirty` and `requests` must have been dealt with.
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

    /// Nothing is read any more: the requests that were not.
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
