//! Messages to a worker from other threads.
//!
//! A worker that is awake checks its inbox before it sleeps. Only a sleeping worker must be woken,
//! which costs the sender a system call.

use crate::dice::Notice;
use crate::events::invalidation_source::Source;
use crate::events::publication::Publication;
use crate::net::connection_id::ConnectionId;
use crate::net::offload_queue::OffloadResult;
use crate::subscription::ownership::FencingToken;
use mio::Waker;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_engine::tracking::Broadcast;
use tidemark_engine::watch::SharedQuery;
use tidemark_engine::{Delivery, Waiter};
use tidemark_log::Lsn;

/// A message to a worker.
pub(crate) enum Message {
    /// A blocked client is served.
    Deliver(ConnectionId, Delivery),
    /// A message was published to a client's channel or pattern.
    Publish(ConnectionId, Arc<Publication>),
    /// A query has emitted since the worker last looked.
    Emitted(SharedQuery),
    /// A client's named subscription to a query, with this fencing token, was taken over or has
    /// ended.
    Taken(ConnectionId, Lsn, FencingToken),
    /// Replayed emissions, or the end of the replay, are available for a client's subscription to a
    /// query.
    Older(ConnectionId, Lsn),
    /// A client's offloaded command has run.
    Done(ConnectionId, Box<OffloadResult>),
    /// Changes are available for a client that follows the log.
    Changed(ConnectionId),
    /// Invalidations are available for the connection, from this source.
    Invalidated(ConnectionId, Source),
    /// The connection with this client id, which should receive the client's invalidations, is
    /// gone.
    RedirectBroken(ConnectionId, u64),
    /// Keys with a prefix that clients track in broadcast mode have changed; the worker forwards
    /// it.
    Broadcast(Arc<Broadcast>),
    /// Notice for a client of DiceDB's protocol from another of its connections.
    Dice(ConnectionId, Notice),
    /// Disconnect a client.
    Kill(ConnectionId),
    /// Disconnect a client that has missed a published message, because the inbox was full.
    CutOff(ConnectionId),
    /// Disconnect a client because all clients together use too much memory.
    Evict(ConnectionId),
    /// End a client's wait like a timeout, or with an error. A wait for keys has been stopped
    /// already and is identified, so that no later wait is ended.
    Unblock(ConnectionId, Unblock, Option<Arc<Waiter>>),
    /// `CLIENT PAUSE` has changed: recheck the clients that wait for its end.
    PauseChanged,
    /// Count that the worker was here.
    Beat(Arc<AtomicUsize>),
    /// Stop accepting, answer what was received, and end.
    Stop,
}

/// How `CLIENT UNBLOCK` ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unblock {
    Timeout,
    Error,
}

/// Most memory of published messages until the worker takes them. Beyond it subscribers are
/// disconnected, as when their output is full, so none misses a message unnoticed. Bytes.
const PUBLISHED_BYTES: usize = 256 * 1024 * 1024;

/// One worker's messages, and the means to wake it.
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    asleep: AtomicBool,
    /// Whether the worker has replies that wait for the log. Otherwise the log's progress does not
    /// wake it.
    waits_for_log: AtomicBool,
    /// Whether the worker has clients that wait for copies on other members.
    waits_for_copies: AtomicBool,
    waker: Waker,
}

/// Messages until the worker takes them. Blocked clients bound the deliveries, [`PUBLISHED_BYTES`]
/// the publications. For emissions, changes and invalidations there is at most one message until
/// the worker looks. The rest is at most what clients request in one turn of the worker.
#[derive(Default)]
struct Waiting {
    messages: Vec<Message>,
    /// Bytes of the publications among them.
    published_bytes: usize,
    /// Clients that have missed a publication: slot and client. They get no further ones.
    cut_off: BTreeSet<(usize, u64)>,
}

impl Waiting {
    fn publish(&mut self, connection_id: ConnectionId, publication: &Arc<Publication>, limit: usize) {
        let client = (connection_id.slot, connection_id.client);
        // Copies of one publication for several subscribers are consecutive and share it.
        let is_shared = matches!(self.messages.last(),
            Some(Message::Publish(_, last)) if Arc::ptr_eq(last, publication));
        let own = if is_shared { 0 } else { publication.len() };
        if self.published_bytes > limit || self.cut_off.contains(&client) {
            self.cut_off.insert(client);
            return;
        }
        self.published_bytes += own + size_of::<Message>();
        self.messages.push(Message::Publish(connection_id, Arc::clone(publication)));
    }
}

impl Inbox {
    pub(crate) fn new(waker: Waker) -> Inbox {
        Inbox {
            waiting: Mutex::default(),
            asleep: AtomicBool::new(false),
            waits_for_log: AtomicBool::new(false),
            waits_for_copies: AtomicBool::new(false),
            waker,
        }
    }

    /// Sends a message. Messages of one sender arrive in order.
    pub(crate) fn send(&self, message: Message) {
        self.lock().messages.push(message);
        self.wake();
    }

    /// Sends a publication to a client, or notes that the client must be disconnected.
    pub(crate) fn publish(&self, connection_id: ConnectionId, publication: &Arc<Publication>) {
        self.lock().publish(connection_id, publication, PUBLISHED_BYTES);
        self.wake();
    }

    /// Notes that the log has advanced or failed.
    pub(crate) fn log_moved(&self) {
        if self.waits_for_log.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Notes that other members may have acknowledged more.
    pub(crate) fn copies_moved(&self) {
        if self.waits_for_copies.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Sets whether what other members acknowledge wakes the worker, which must check it once more then.
    pub(crate) fn set_waits_for_copies(&self, waits: bool) {
        self.waits_for_copies.store(waits, Ordering::SeqCst);
    }

    /// Sets whether the log's progress wakes the worker. After setting it, the worker must check
    /// the log once more.
    pub(crate) fn set_waits_for_log(&self, waits: bool) {
        self.waits_for_log.store(waits, Ordering::SeqCst);
    }

    /// Takes all messages into `into`, which must be empty.
    pub(crate) fn take(&self, into: &mut Vec<Message>) {
        assert!(into.is_empty(), "{} messages would be lost", into.len());
        let mut waiting = self.lock();
        std::mem::swap(&mut waiting.messages, into);
        waiting.published_bytes = 0;
        let cut_off = std::mem::take(&mut waiting.cut_off);
        into.extend(cut_off.into_iter().map(|(slot, client)| Message::CutOff(ConnectionId { slot, client })));
    }

    /// Announces that the worker is about to sleep. Returns `false` if it must not, because there
    /// are messages.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let waiting = self.lock();
        let empty = waiting.messages.is_empty() && waiting.cut_off.is_empty();
        drop(waiting);
        if !empty {
            self.wake_up();
        }
        empty
    }

    /// Announces that the worker is awake.
    pub(crate) fn wake_up(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the worker if it sleeps.
    pub(crate) fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // A waker fails only if its descriptor is closed, and then the worker has ended.
            let _ = self.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::publication::Kind;
    use crate::net::connection_id::ConnectionId;

    fn publication(bytes: usize) -> Arc<Publication> {
        let name: Arc<[u8]> = b"a".as_slice().into();
        let channel = Arc::clone(&name);
        Arc::new(Publication {
            kind: Kind::Channel,
            name,
            channel,
            payload: vec![b'x'; bytes].into(),
            after: None,
            turn: None,
        })
    }

    #[test]
    fn publications_take_bounded_memory_and_a_subscriber_that_misses_one_is_disconnected() {
        let mut waiting = Waiting::default();
        let (one, other) = (ConnectionId { slot: 1, client: 1 }, ConnectionId { slot: 2, client: 2 });
        for _ in 0..1000 {
            waiting.publish(one, &publication(1000), 100_000);
        }
        assert!((90..=101).contains(&waiting.messages.len()), "{}", waiting.messages.len());
        assert_eq!(waiting.cut_off.len(), 1, "however much it has missed");
        waiting.published_bytes = 0;
        waiting.publish(one, &publication(1000), 100_000);
        waiting.publish(other, &publication(1000), 100_000);
        assert!(
            matches!(waiting.messages.last(), Some(Message::Publish(connection_id, _)) if *connection_id == other)
        );
        assert_eq!(waiting.cut_off.len(), 1, "the other one has missed nothing");
    }

    #[test]
    fn a_message_to_many_counts_once() {
        let (mut waiting, large) = (Waiting::default(), publication(50_000));
        for slot in 0..500 {
            waiting.publish(ConnectionId { slot, client: 1 }, &large, 100_000);
        }
        assert_eq!((waiting.messages.len(), waiting.cut_off.len()), (500, 0));
    }
}
