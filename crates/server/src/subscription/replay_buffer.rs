//! Bounded queue of replayed emissions, from a replay thread to one subscription.
//!
//! The replay thread blocks while the queue is full. A taken emission stays in the queue until the
//! subscription requests the ones after it, so a subscription may use less than it took.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidemark_engine::watch::Emission;
use tidemark_log::Lsn;

/// Capacity: this many bytes of answers, or one emission. As large as an outbox, because a client
/// that does not read fills both.
const WAITING_BYTES: usize = 256 << 10;
/// Approximate memory of an emission besides its answer. Bytes.
const OVERHEAD_BYTES: usize = 112;

/// Notifies the subscriber's transport. Called from any thread, and at most once until the
/// consumer looks into the queue.
pub(crate) type Notifier = Box<dyn Fn() + Send + Sync>;

/// Consumer end. Dropping it ends the replay.
#[derive(Debug)]
pub(crate) struct ReplayBuffer(Arc<Channel>);

/// Producer end, of the replay thread.
#[derive(Debug)]
pub(crate) struct ReplayWriter(Arc<Channel>);

struct Channel {
    state: Mutex<QueueState>,
    /// Signalled when an emission was taken or the consumer was dropped.
    taken: Condvar,
    notify: Notifier,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Number of the emission to resume after, once found in the log.
    resume_after: Option<u64>,
    /// Emissions that the subscription has not passed yet, in the order of their numbers.
    waiting: VecDeque<Emission>,
    /// Memory of the waiting emissions.
    bytes: usize,
    /// Set once the replay has ended.
    end: Option<End>,
    /// Whether the consumer was dropped.
    is_left: bool,
    /// Whether a notification is pending: sent, and the consumer has not looked since.
    is_notified: bool,
}

/// Why a replay has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The query retains the next emissions. If it has evicted them since, another replay begins.
    Done,
    /// Emissions at or before this LSN cannot be replayed: the subscription ends.
    Stale(Lsn),
    /// The server stops.
    Stopping,
}

/// Result of taking emissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Some emissions.
    Some,
    /// None yet: the subscription is notified.
    Later,
    /// No more.
    End(End),
}

/// Result of putting an emission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// The emission is in the queue.
    Done,
    /// The queue is full: see [`ReplayWriter::wait_for_room`].
    Full,
    /// The consumer was dropped.
    Left,
}

/// Creates the two ends of a queue.
pub(crate) fn channel(notify: Notifier) -> (ReplayWriter, ReplayBuffer) {
    let channel = Arc::new(Channel { state: Mutex::default(), taken: Condvar::new(), notify });
    (ReplayWriter(Arc::clone(&channel)), ReplayBuffer(channel))
}

impl ReplayBuffer {
    /// Returns the number of the last emission at or before the LSN to resume after, or why the
    /// subscription does not resume; `None` while unknown.
    pub(crate) fn place(&self) -> Option<Result<u64, End>> {
        let mut state = self.0.lock();
        state.is_notified = false;
        state.resume_after.map(Ok).or_else(|| state.end.map(Err))
    }

    /// Copies up to `most` emissions after number `after` to `into`, and evicts the earlier ones.
    pub(crate) fn take(&self, after: u64, most: usize, into: &mut Vec<Emission>) -> Taken {
        self.0.consume(|state| {
            state.evict_while(|emission, _| emission.number <= after);
            into.extend(state.waiting.iter().take(most).cloned());
            state.outcome()
        })
    }

    /// Copies the latest emission after number `after` once the replay has ended, and evicts the
    /// earlier ones.
    pub(crate) fn latest(&self, after: u64, into: &mut Vec<Emission>) -> Taken {
        self.0.consume(|state| {
            state.evict_while(|emission, waiting| waiting > 1 || emission.number <= after);
            if state.end.is_none() {
                // More emissions will follow, so none is the latest yet.
                return Taken::Later;
            }
            into.extend(state.waiting.front().cloned());
            state.outcome()
        })
    }
}

impl QueueState {
    /// Evicts emissions from the front while `is_useless` returns true for the first one and the
    /// number of waiting ones.
    fn evict_while(&mut self, is_useless: impl Fn(&Emission, usize) -> bool) {
        while let Some(first) = self.waiting.front()
            && is_useless(first, self.waiting.len())
        {
            self.bytes -= memory_of(first);
            self.waiting.pop_front();
        }
    }

    /// Returns the result of a call that took what is waiting.
    fn outcome(&self) -> Taken {
        match (self.waiting.is_empty(), self.end) {
            (false, _) => Taken::Some,
            (true, None) => Taken::Later,
            (true, Some(end)) => Taken::End(end),
        }
    }
}

impl Drop for ReplayBuffer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_left = true;
        state.waiting.clear();
        drop(state);
        self.0.taken.notify_one();
    }
}

impl ReplayWriter {
    /// Reports the number of the emission after which the subscription resumes.
    pub(crate) fn found(&self, number: u64) {
        self.0.produce(|state| state.resume_after = Some(number));
    }

    /// Puts an emission into the queue, unless it is full or the consumer was dropped.
    pub(crate) fn put(&self, emission: &Emission) -> Put {
        let mut put = Put::Done;
        self.0.produce(|state| {
            if state.is_left {
                put = Put::Left;
            } else if state.bytes >= WAITING_BYTES {
                put = Put::Full;
            } else {
                state.bytes += memory_of(emission);
                state.waiting.push_back(emission.clone());
            }
        });
        put
    }

    /// Waits until the queue has room or the consumer was dropped, at most for `timeout`.
    pub(crate) fn wait_for_room(&self, timeout: Duration) {
        let is_full = |state: &mut QueueState| state.bytes >= WAITING_BYTES && !state.is_left;
        let waited = self.0.taken.wait_timeout_while(self.0.lock(), timeout, is_full);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether the consumer was dropped.
    pub(crate) fn is_left(&self) -> bool {
        self.0.lock().is_left
    }

    /// Ends the replay.
    pub(crate) fn end(self, end: End) {
        self.0.produce(|state| state.end = Some(end));
    }
}

impl Drop for ReplayWriter {
    fn drop(&mut self) {
        // Covers a panic of the producer: the consumer must not wait for ever.
        self.0.produce(|state| {
            state.end.get_or_insert(End::Stopping);
        });
    }
}

impl Channel {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Consumer's access: runs `take` on the state, re-arms the notification and wakes the
    /// producer.
    fn consume(&self, take: impl FnOnce(&mut QueueState) -> Taken) -> Taken {
        let mut state = self.lock();
        state.is_notified = false;
        let taken = take(&mut state);
        drop(state);
        self.taken.notify_one();
        taken
    }

    /// Producer's access: runs `change` on the state and notifies the subscription, unless a
    /// notification is pending or the consumer was dropped.
    fn produce(&self, change: impl FnOnce(&mut QueueState)) {
        let mut state = self.lock();
        change(&mut state);
        let was_notified = std::mem::replace(&mut state.is_notified, true);
        let is_left = state.is_left;
        drop(state);
        if !was_notified && !is_left {
            (self.notify)();
        }
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Returns the approximate memory of an emission, in bytes.
fn memory_of(emission: &Emission) -> usize {
    emission.answer.len() + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tidemark_engine::SharedBytes;

    fn emission(number: u64, length: usize) -> Emission {
        let answer = SharedBytes::from(&vec![b'x'; length][..]);
        let (before, is_change) = (Some(answer.clone()), false);
        Emission { number, lsn: Lsn(number), time_us: 0, durable: true, before, is_change, answer }
    }

    fn channel_with_counter() -> (Arc<AtomicUsize>, ReplayWriter, ReplayBuffer) {
        let notifications = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&notifications);
        let (writer, buffer) = channel(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        (notifications, writer, buffer)
    }

    fn numbers(buffer: &ReplayBuffer, after: u64, most: usize) -> (Taken, Vec<u64>) {
        let mut into = Vec::new();
        let taken = buffer.take(after, most, &mut into);
        (taken, into.iter().map(|emission| emission.number).collect())
    }

    #[test]
    fn a_taken_emission_stays_until_the_next_is_requested() {
        let (notifications, writer, buffer) = channel_with_counter();
        assert_eq!(buffer.place(), None);
        writer.found(4);
        assert_eq!(buffer.place(), Some(Ok(4)));
        for number in 5..8 {
            assert_eq!(writer.put(&emission(number, 1)), Put::Done);
        }
        assert_eq!(notifications.load(Ordering::Relaxed), 2, "one notification until the consumer looks");
        assert_eq!(numbers(&buffer, 4, 2), (Taken::Some, vec![5, 6]));
        assert_eq!(numbers(&buffer, 5, 9), (Taken::Some, vec![6, 7]));
        assert_eq!(numbers(&buffer, 7, 9), (Taken::Later, vec![]));
        writer.end(End::Done);
        assert_eq!(notifications.load(Ordering::Relaxed), 3);
        assert_eq!(numbers(&buffer, 7, 9), (Taken::End(End::Done), vec![]));
    }

    #[test]
    fn the_queue_is_bounded_but_holds_one_emission_of_any_size() {
        let (_, writer, buffer) = channel_with_counter();
        assert_eq!(writer.put(&emission(1, 2 * WAITING_BYTES)), Put::Done);
        assert_eq!(writer.put(&emission(2, 1)), Put::Full);
        assert_eq!(numbers(&buffer, 0, 9), (Taken::Some, vec![1]));
        assert_eq!(writer.put(&emission(2, 1)), Put::Full, "taken, but not yet passed");
        assert_eq!(numbers(&buffer, 1, 9), (Taken::Later, vec![]));
        assert_eq!(writer.put(&emission(2, 1)), Put::Done);
    }

    #[test]
    fn the_latest_emission_is_known_once_the_replay_has_ended() {
        let (_, writer, buffer) = channel_with_counter();
        let latest = |after| {
            let mut into = Vec::new();
            let taken = buffer.latest(after, &mut into);
            (taken, into.first().map(|emission| emission.number))
        };
        for number in 1..4 {
            assert_eq!(writer.put(&emission(number, WAITING_BYTES)), Put::Done, "{number}");
            assert_eq!(latest(0), (Taken::Later, None));
            // The superseded emission was evicted.
            assert_eq!(writer.put(&emission(number, 1)), Put::Full);
            buffer.take(number, 0, &mut Vec::new());
        }
        assert_eq!(writer.put(&emission(4, 1)), Put::Done);
        assert_eq!(writer.put(&emission(5, 1)), Put::Done);
        writer.end(End::Done);
        assert_eq!(latest(3), (Taken::Some, Some(5)));
        assert_eq!(latest(5), (Taken::End(End::Done), None));
    }

    #[test]
    fn each_end_notices_that_the_other_was_dropped() {
        let (notifications, writer, buffer) = channel_with_counter();
        drop(buffer);
        assert!(writer.is_left());
        assert_eq!((writer.put(&emission(1, 1)), notifications.load(Ordering::Relaxed)), (Put::Left, 0));
        let (notifications, writer, buffer) = channel_with_counter();
        drop(writer);
        assert_eq!((buffer.place(), notifications.load(Ordering::Relaxed)), (Some(Err(End::Stopping)), 1));
    }
}
