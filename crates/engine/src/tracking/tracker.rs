//! A client with tracking on, and its pending messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::Lsn;

/// Maximum bytes that wait for a client. Above it, they are replaced by one message that everything
/// may have changed.
pub(super) const PENDING_BYTES: usize = 1024 * 1024;

/// Overhead of an invalidation, and of each of its keys. Bytes.
pub(super) const OVERHEAD_BYTES: usize = 64;

/// What a client must no longer use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// A key that it has read.
    Key(Arc<[u8]>),
    /// Keys with a prefix that it has subscribed to, in byte order.
    Keys(Arc<[Arc<[u8]>]>),
    /// The whole cache.
    Everything,
}

/// One message to a client with tracking on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalidation {
    /// What has changed, or may have.
    pub stale: Stale,
    /// LSN of the change's record; [`Lsn::ZERO`] if nothing has changed.
    pub lsn: Lsn,
}

impl Invalidation {
    fn bytes(&self) -> usize {
        let keys = match &self.stale {
            Stale::Key(key) => key.len(),
            Stale::Keys(keys) => keys.iter().map(|key| key.len() + OVERHEAD_BYTES).sum(),
            Stale::Everything => 0,
        };
        keys + OVERHEAD_BYTES
    }

    /// Merges another invalidation into this one, which then waits for both records.
    fn add(&mut self, other: &Self) {
        self.lsn = self.lsn.max(other.lsn);
    }
}

/// Notifies the connection that takes the messages. Called with shards locked: must neither block
/// nor use the engine or the tracker.
pub type Notifier = Box<dyn Fn(&Arc<Tracker>) + Send + Sync>;

/// A client with tracking on. Shards refer to it by its id, which is never reused.
pub struct Tracker {
    id: u64,
    pending: Mutex<Pending>,
}

/// Pending messages of a client, in order.
struct Pending {
    queue: VecDeque<Invalidation>,
    bytes: usize,
    /// Connection that takes the messages, and the function that notifies it.
    taker: u64,
    notify: Notifier,
    /// Whether the connection was notified and has not taken everything since.
    is_notified: bool,
    has_ended: bool,
}

impl Tracker {
    pub(super) fn new(id: u64, taker: u64, notify: Notifier) -> Self {
        let queue = VecDeque::new();
        let pending = Pending { queue, bytes: 0, taker, notify, is_notified: false, has_ended: false };
        Self { id, pending: Mutex::new(pending) }
    }

    /// Id of the tracker.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Redirects pending and later messages to another connection.
    pub fn hand_over(self: &Arc<Self>, taker: u64, notify: Notifier) {
        let mut pending = self.lock();
        pending.taker = taker;
        pending.notify = notify;
        pending.is_notified = !pending.queue.is_empty();
        if pending.is_notified {
            (pending.notify)(self);
        }
    }

    /// Whether a message waits, if connection `taker` takes them.
    pub fn has_some(&self, taker: u64) -> bool {
        let mut pending = self.lock();
        if pending.taker != taker {
            return false;
        }
        pending.is_notified = !pending.queue.is_empty();
        pending.is_notified
    }

    /// Takes the next message, if connection `taker` takes them.
    pub fn take(&self, taker: u64) -> Option<Invalidation> {
        let mut pending = self.lock();
        if pending.taker != taker {
            return None;
        }
        let next = pending.queue.pop_front();
        let (all, bytes) = (pending.bytes, next.as_ref().map_or(0, Invalidation::bytes));
        pending.bytes =
            all.checked_sub(bytes).unwrap_or_else(|| panic!("{bytes} of {all} waiting bytes are taken"));
        pending.is_notified = !pending.queue.is_empty();
        next
    }

    /// Discards pending messages because their connection `taker` has closed. Returns `false` if
    /// another connection takes them by now.
    pub fn discard(&self, taker: u64) -> bool {
        let mut pending = self.lock();
        let is_taker = pending.taker == taker;
        if is_taker {
            pending.clear();
            pending.is_notified = false;
        }
        is_taker
    }

    pub(super) fn end(&self) {
        let mut pending = self.lock();
        pending.clear();
        pending.has_ended = true;
    }

    /// Queues a message and notifies the connection.
    pub(super) fn add(self: &Arc<Self>, invalidation: Invalidation) {
        let mut pending = self.lock();
        if pending.has_ended {
            return;
        }
        pending.add(invalidation);
        if !std::mem::replace(&mut pending.is_notified, true) {
            (pending.notify)(self);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn clear(&mut self) {
        self.queue.clear();
        self.bytes = 0;
    }

    fn add(&mut self, mut invalidation: Invalidation) {
        if invalidation.stale == Stale::Everything
            && let Some(last) = self.queue.back_mut().filter(|last| last.stale == Stale::Everything)
        {
            return last.add(&invalidation);
        }
        if self.bytes + invalidation.bytes() > PENDING_BYTES {
            self.queue.iter().for_each(|other| invalidation.add(other));
            invalidation.stale = Stale::Everything;
            self.clear();
        }
        self.bytes += invalidation.bytes();
        self.queue.push_back(invalidation);
    }
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn tracker(notified: &Arc<AtomicUsize>) -> Arc<Tracker> {
        let notified = Arc::clone(notified);
        Arc::new(Tracker::new(
            1,
            7,
            Box::new(move |_| {
                notified.fetch_add(1, Ordering::Relaxed);
            }),
        ))
    }

    fn key(name: &[u8], lsn: u64) -> Invalidation {
        Invalidation { stale: Stale::Key(name.into()), lsn: Lsn(lsn) }
    }

    #[test]
    fn the_taker_is_notified_once_until_it_has_taken_everything() {
        let notified = Arc::default();
        let tracker = tracker(&notified);
        tracker.add(key(b"a", 1));
        tracker.add(key(b"b", 2));
        assert_eq!(notified.load(Ordering::Relaxed), 1);
        assert_eq!(tracker.take(8), None, "another connection takes nothing");
        assert_eq!(tracker.take(7), Some(key(b"a", 1)));
        tracker.add(key(b"c", 3));
        assert_eq!(notified.load(Ordering::Relaxed), 1, "there was something left");
        assert_eq!(tracker.take(7), Some(key(b"b", 2)));
        assert_eq!(tracker.take(7), Some(key(b"c", 3)));
        assert_eq!(tracker.take(7), None);
        tracker.add(key(b"d", 4));
        assert_eq!(notified.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_queue_is_bounded_and_a_slow_tracker_gets_one_invalidation_of_everything() {
        let tracker = tracker(&Arc::default());
        let long = vec![b'k'; PENDING_BYTES / 3];
        for lsn in 1..=3 {
            tracker.add(key(&long, lsn));
        }
        let everything = Invalidation { stale: Stale::Everything, lsn: Lsn(3) };
        assert_eq!(tracker.take(7), Some(everything), "with the last record of what it stands for");
        assert_eq!(tracker.take(7), None);
        tracker.add(key(b"a", 4));
        assert_eq!(tracker.take(7), Some(key(b"a", 4)));
    }

    #[test]
    fn consecutive_invalidations_of_everything_coalesce() {
        let tracker = tracker(&Arc::default());
        let everything = |lsn| Invalidation { stale: Stale::Everything, lsn: Lsn(lsn) };
        tracker.add(key(b"a", 1));
        tracker.add(everything(2));
        tracker.add(everything(3));
        assert_eq!(tracker.take(7), Some(key(b"a", 1)));
        assert_eq!(tracker.take(7), Some(everything(3)));
        assert_eq!(tracker.take(7), None);
    }

    #[test]
    fn a_new_taker_gets_pending_invalidations_and_an_ended_tracker_gets_none() {
        let (notified, notified_other) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
        let tracker = tracker(&notified);
        tracker.add(key(b"a", 1));
        let count = Arc::clone(&notified_other);
        tracker.hand_over(
            8,
            Box::new(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            }),
        );
        assert_eq!(notified_other.load(Ordering::Relaxed), 1);
        assert_eq!((tracker.take(7), tracker.take(8)), (None, Some(key(b"a", 1))));
        tracker.add(key(b"b", 2));
        assert!(!tracker.discard(7), "a former taker has nothing to discard");
        assert_eq!(tracker.take(8), Some(key(b"b", 2)));
        tracker.add(key(b"b", 3));
        assert!(tracker.discard(8));
        tracker.add(key(b"b", 4));
        assert_eq!(notified_other.load(Ordering::Relaxed), 4, "notified again each time the queue was empty");
        tracker.end();
        tracker.add(key(b"c", 3));
        assert_eq!(tracker.take(8), None);
    }
}
