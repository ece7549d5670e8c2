//! Messages to a worker from other threads.
//!
//! A worker that is awake finds its messages by itself before it sleeps, so only a sleeping one is woken, which costs
//! its sender a system call.

use crate::pubsub::Publication;
use mio::Waker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_engine::{Delivery, Waiter};

/// A connection as other threads name it. The slot finds it, the client id tells whether it is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) slot: usize,
    pub(crate) client: u64,
}

/// What other threads tell a worker.
pub(crate) enum Message {
    /// A blocked client is served.
    Deliver(Target, Delivery),
    /// A message was published to a client's channel or pattern.
    Publish(Target, Arc<Publication>),
    /// Disconnect a client.
    Kill(Target),
    /// End a client's wait as if its time had passed, or with an error. A wait for keys has been stopped already and is
    /// named, so that no later one is meant.
    Unblock(Target, Unblock, Option<Arc<Waiter>>),
    /// `CLIENT PAUSE` has changed: clients that wait for its end look again.
    PauseChanged,
    /// Stop accepting, let clients read what is theirs, and end.
    Stop,
}

/// How `CLIENT UNBLOCK` ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unblock {
    Timeout,
    Error,
}

/// One worker's messages and the means to wake it.
pub(crate) struct Inbox {
    messages: Mutex<Vec<Message>>,
    asleep: AtomicBool,
    /// Whether the worker has replies that wait for the log: only then does the log's progress concern it.
    waits_for_log: AtomicBool,
    waker: Waker,
}

impl Inbox {
    pub(crate) fn new(waker: Waker) -> Inbox {
        Inbox {
            messages: Mutex::new(Vec::new()),
            asleep: AtomicBool::new(false),
            waits_for_log: AtomicBool::new(false),
            waker,
        }
    }

    /// Leaves a message. Messages of one sender arrive in order.
    pub(crate) fn send(&self, message: Message) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        self.wake();
    }

    /// Tells that the log has got further or has failed.
    pub(crate) fn log_moved(&self) {
        if self.waits_for_log.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Says whether the log's progress concerns the worker. It must look at the log once more after it has said yes.
    pub(crate) fn set_waits_for_log(&self, waits: bool) {
        self.waits_for_log.store(waits, Ordering::SeqCst);
    }

    /// Takes all messages into `into`, which is empty.
    pub(crate) fn take(&self, into: &mut Vec<Message>) {
        debug_assert!(into.is_empty());
        std::mem::swap(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner), into);
    }

    /// Announces that the worker is about to sleep. `false` if it must not, because there are messages.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let empty = self.messages.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if !empty {
            self.wake_up();
        }
        empty
    }

    /// Announces that the worker is awake.
    pub(crate) fn wake_up(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Lets the worker take a turn if it sleeps.
    pub(crate) fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // A waker fails only when its descriptor is closed, and then there is nobody left to wake.
            let _ = self.waker.wake();
        }
    }
}
