//! Queue in front of a pool: bounded; its owner takes all calls together.

use super::error::CallError;
use super::reply::Reply;
use super::request::Request;
use std::hint::spin_loop;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Number of times that a busy owner checks for waiting callers before it takes calls again: about
/// two microseconds, in which calls accumulate. Taking calls one by one costs both sides a cache
/// miss each, and sleeping after each costs a system call.
const GATHER_TURNS: usize = 64;

/// Contents of a call: usually a draw.
pub(super) enum Asked {
    Draw,
    Other(Box<Request>),
}

pub(super) struct Call {
    pub(super) asked: Asked,
    pub(super) reply: Reply,
}

impl From<Request> for Asked {
    fn from(request: Request) -> Self {
        match request {
            Request::Draw => Self::Draw,
            other => Self::Other(Box::new(other)),
        }
    }
}

/// The queue. At most `capacity` calls are unanswered, including those the owner has taken.
pub(super) struct Inbox {
    letters: Mutex<Letters>,
    /// Notifies the owner.
    news: Condvar,
    /// Notifies callers that wait for room.
    room: Condvar,
    capacity: usize,
    owner: OnceLock<ThreadId>,
    /// A thread is blocked waiting for an answer.
    is_urgent: AtomicBool,
}

#[derive(Default)]
struct Letters {
    calls: Vec<Call>,
    /// Number of calls that the owner has taken and not answered.
    taken: usize,
    /// The owner is asleep.
    owner_sleeps: bool,
    /// The journal has notified the owner.
    is_notified: bool,
    /// Error for calls after the queue is closed.
    closed: Option<CallError>,
    threads_without_room: usize,
    tasks_without_room: Vec<Waker>,
}

/// Reason why the owner was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Calls,
    /// The journal has notified it, or the time-out has passed.
    Other,
    /// There are no calls, and the queue is closed.
    End,
}

impl Inbox {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            letters: Mutex::default(),
            news: Condvar::new(),
            room: Condvar::new(),
            capacity: capacity.max(1),
            owner: OnceLock::new(),
            is_urgent: AtomicBool::new(false),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn own(&self) {
        let is_first = self.owner.set(thread::current().id()).is_ok();
        assert!(is_first, "a second thread would own the queue of {:?}", self.owner.get());
    }

    /// Returns whether this thread is the owner, which must not wait for itself.
    pub(super) fn is_owner(&self) -> bool {
        self.owner.get() == Some(&thread::current().id())
    }

    /// Signals that a thread is about to block for an answer.
    pub(super) fn hurry(&self) {
        if !self.is_urgent.load(Ordering::Relaxed) {
            self.is_urgent.store(true, Ordering::Relaxed);
        }
    }

    /// Lets calls accumulate unless a thread is blocked; for an owner that has just had calls. This
    /// affects only the timing.
    pub(super) fn gather(&self) {
        for _ in 0..GATHER_TURNS {
            if self.is_urgent.load(Ordering::Relaxed) {
                self.is_urgent.store(false, Ordering::Relaxed);
                return;
            }
            spin_loop();
        }
    }

    /// Queues a call; blocks until there is room.
    pub(super) fn push(&self, call: Call) -> Result<(), (Call, CallError)> {
        let mut letters = self.letters();
        loop {
            if let Some(error) = &letters.closed {
                return Err((call, error.clone()));
            }
            if letters.unanswered() < self.capacity {
                self.put(letters, call);
                return Ok(());
            }
            if self.is_owner() {
                return Err((call, CallError::Full));
            }
            letters.threads_without_room += 1;
            letters = self.room.wait(letters).unwrap_or_else(PoisonError::into_inner);
            letters.threads_without_room -= 1;
        }
    }

    /// Queues a call if there is room. Otherwise registers the task, if any, to be woken when there
    /// may be room.
    pub(super) fn try_push(
        &self,
        call: Call,
        context: Option<&Context<'_>>,
    ) -> Result<(), (Call, CallError)> {
        let mut letters = self.letters();
        if let Some(error) = &letters.closed {
            return Err((call, error.clone()));
        }
        if letters.unanswered() >= self.capacity {
            if let Some(context) = context {
                // A task that is polled for other reasons too is registered once.
                let tasks = &mut letters.tasks_without_room;
                if !tasks.iter().any(|waker| waker.will_wake(context.waker())) {
                    tasks.push(context.waker().clone());
                }
            }
            return Err((call, CallError::Full));
        }
        self.put(letters, call);
        Ok(())
    }

    fn put(&self, mut letters: MutexGuard<'_, Letters>, call: Call) {
        letters.calls.push(call);
        if mem::take(&mut letters.owner_sleeps) {
            drop(letters);
            self.news.notify_one();
        }
    }

    /// Notifies the owner of news from the journal.
    pub(super) fn notify(&self) {
        let mut letters = self.letters();
        letters.is_notified = true;
        if mem::take(&mut letters.owner_sleeps) {
            drop(letters);
            self.news.notify_one();
        }
    }

    /// Closes the queue; later calls get this error.
    pub(super) fn close(&self, error: CallError) {
        let mut letters = self.letters();
        letters.closed.get_or_insert(error);
        letters.owner_sleeps = false;
        let tasks = mem::take(&mut letters.tasks_without_room);
        drop(letters);
        self.news.notify_one();
        self.room.notify_all();
        tasks.into_iter().for_each(Waker::wake);
    }

    /// Closes the queue because the owner has panicked, and drops the queued calls.
    pub(super) fn abandon(&self) {
        let mut letters = self.letters();
        letters.closed = Some(CallError::Panicked);
        let calls = mem::take(&mut letters.calls);
        drop(letters);
        drop(calls);
        self.close(CallError::Panicked);
    }

    /// Frees the room of answered calls.
    pub(super) fn answered(&self, calls: usize) {
        let mut letters = self.letters();
        let taken = letters.taken;
        let left = taken.checked_sub(calls);
        letters.taken = left.unwrap_or_else(|| panic!("{calls} calls are answered, and {taken} were taken"));
        let waits = letters.threads_without_room > 0;
        let tasks = mem::take(&mut letters.tasks_without_room);
        drop(letters);
        if waits {
            self.room.notify_all();
        }
        tasks.into_iter().for_each(Waker::wake);
    }

    /// Moves all calls into `calls`, which must be empty. Blocks until there are calls or other
    /// news, but not longer than `at_most`.
    pub(super) fn take(&self, calls: &mut Vec<Call>, at_most: Option<Duration>) -> News {
        assert!(calls.is_empty(), "{} calls that were taken are not answered", calls.len());
        let mut letters = self.letters();
        loop {
            if !letters.calls.is_empty() {
                mem::swap(calls, &mut letters.calls);
                letters.taken += calls.len();
                return News::Calls;
            }
            if mem::take(&mut letters.is_notified) {
                return News::Other;
            }
            if letters.closed.is_some() && letters.taken == 0 {
                return News::End;
            }
            letters.owner_sleeps = true;
            match at_most {
                None => letters = self.news.wait(letters).unwrap_or_else(PoisonError::into_inner),
                Some(at_most) => {
                    let waited = self.news.wait_timeout(letters, at_most);
                    let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    letters = guard;
                    if timeout.timed_out() && letters.calls.is_empty() {
                        letters.owner_sleeps = false;
                        return News::Other;
                    }
                }
            }
            letters.owner_sleeps = false;
        }
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Letters {
    fn unanswered(&self) -> usize {
        self.calls.len() + self.taken
    }
}
