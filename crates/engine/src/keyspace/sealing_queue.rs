//! Series with points to be compressed by a thread of its own, so that the commands that added them need
//! not: first those that have filled blocks, then those whose heads have grown.
//!
//! Small blocks cost more to make than whole ones, and most points of a series that gets many are never in
//! one, because the thread rests between two rounds of grown heads: meanwhile those series fill blocks.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most blocks that wait: 64 MiB of points. Beyond it, the commands that fill blocks compress them.
const BLOCKS_MAX: usize = 4096;

/// Most heads that wait. Beyond it, the commands that grow them compress them.
const HEADS_MAX: usize = 65_536;

/// Shortest rest between two rounds of grown heads.
const REST_MIN: Duration = Duration::from_millis(100);

/// Length of a rest, as a multiple of the round before it: the heads take at most a quarter of a processor.
const REST_FACTOR: u32 = 3;

/// A series with points to be compressed. By now, the key may hold another value.
#[derive(Debug)]
pub(crate) struct FilledSeries {
    pub(crate) db: u8,
    pub(crate) key: Box<[u8]>,
    /// Number of blocks that it has filled; 0 if only its head has grown.
    pub(crate) blocks: usize,
}

/// Queue of series with points to be compressed, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct SealingQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    series: VecDeque<FilledSeries>,
    /// Number of their blocks, with those that are being compressed.
    blocks: usize,
    /// Series whose heads are compressed in this round, and in the next one.
    round: VecDeque<FilledSeries>,
    next_round: VecDeque<FilledSeries>,
    /// When the round has begun, and when the next one may begin.
    began: Option<Instant>,
    rests_until: Option<Instant>,
    /// Whether a thread takes from the queue.
    is_served: bool,
    is_stopped: bool,
}

impl SealingQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a series that has filled blocks. Returns `false` if no thread takes it, or too many blocks
    /// wait: the caller compresses them.
    pub(crate) fn push(&self, db: u8, key: &[u8], blocks: usize) -> bool {
        let mut state = self.lock();
        if !state.is_served || state.blocks + blocks > BLOCKS_MAX {
            return false;
        }
        state.blocks += blocks;
        state.series.push_back(FilledSeries { db, key: key.into(), blocks });
        let was_empty = state.series.len() == 1;
        drop(state);
        if was_empty {
            self.changed.notify_one();
        }
        true
    }

    /// Adds a series whose head has grown, to be compressed after a while. Returns `false` if too many wait:
    /// the caller compresses it. Without a thread, heads stay as they are.
    pub(crate) fn push_head(&self, db: u8, key: &[u8]) -> bool {
        let mut state = self.lock();
        if !state.is_served {
            return true;
        }
        if state.next_round.back().is_some_and(|newest| newest.db == db && *newest.key == *key) {
            return true;
        }
        if state.round.len() + state.next_round.len() >= HEADS_MAX {
            return false;
        }
        state.next_round.push_back(FilledSeries { db, key: key.into(), blocks: 0 });
        let was_empty = state.next_round.len() == 1;
        drop(state);
        if was_empty {
            self.changed.notify_one();
        }
        true
    }

    /// Declares that a thread will take from the queue.
    pub(crate) fn serve(&self) {
        let mut state = self.lock();
        state.is_served = !state.is_stopped;
    }

    /// Waits for the next series; `None` once the queue is stopped. The caller reports it
    /// [done](Self::done).
    pub(crate) fn next(&self) -> Option<FilledSeries> {
        self.serve();
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(series) = state.take() {
                return Some(series);
            }
            let rest = state.rest();
            state = match rest {
                Some(rest) if rest.is_zero() => {
                    state.begin_round();
                    state
                }
                Some(rest) => {
                    self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Makes room for as many blocks as a series from [`SealingQueue::next`] had filled. Its head is
    /// compressed after a while.
    pub(crate) fn done(&self, series: FilledSeries) {
        let mut state = self.lock();
        state.blocks -= series.blocks;
        let is_newest = |newest: &FilledSeries| newest.db == series.db && newest.key == series.key;
        // One that finds no place is added when its head grows next.
        if series.blocks > 0
            && state.round.len() + state.next_round.len() < HEADS_MAX
            && !state.next_round.back().is_some_and(is_newest)
        {
            state.next_round.push_back(FilledSeries { blocks: 0, ..series });
        }
    }

    /// Ends the thread that takes from the queue. What waits stays as it is: it is complete.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        (state.is_stopped, state.is_served) = (true, false);
        drop(state);
        self.changed.notify_all();
    }
}

impl QueueState {
    /// Takes a series with filled blocks, or the next of the round.
    fn take(&mut self) -> Option<FilledSeries> {
        self.series.pop_front().or_else(|| self.round.pop_front())
    }

    /// Returns how long the thread waits for the next round, at the end of one; `None` if no head has grown.
    fn rest(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if let Some(began) = self.began.take() {
            self.rests_until = Some(now + REST_MIN.max((now - began) * REST_FACTOR));
        }
        if self.next_round.is_empty() {
            return None;
        }
        let until = *self.rests_until.get_or_insert(now + REST_MIN);
        Some(until.saturating_duration_since(now))
    }

    fn begin_round(&mut self) {
        self.round = std::mem::take(&mut self.next_round);
        (self.began, self.rests_until) = (Some(Instant::now()), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a thread take from the queue as long as `work` runs, and returns the keys that it took.
    fn served(queue: &SealingQueue, work: impl FnOnce()) -> Vec<Box<[u8]>> {
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut keys = Vec::new();
                while let Some(series) = queue.next() {
                    keys.push(series.key.clone());
                    queue.done(series);
                }
                keys
            });
            work();
            queue.stop();
            server.join().expect("the thread ends when the queue is stopped")
        })
    }

    #[test]
    fn series_are_taken_in_their_order() {
        let queue = SealingQueue::default();
        let keys = served(&queue, || {
            for key in [b"a", b"b", b"c"] {
                while !queue.push(0, key, BLOCKS_MAX / 2) {
                    std::thread::yield_now();
                }
            }
            while queue.lock().blocks > 0 {
                std::thread::yield_now();
            }
        });
        assert_eq!(keys, [b"a", b"b", b"c"].map(|key| Box::<[u8]>::from(&key[..])));
    }

    #[test]
    fn what_no_thread_takes_is_refused() {
        let queue = SealingQueue::default();
        assert!(!queue.push(0, b"k", 1), "no thread has come yet");
        assert_eq!(served(&queue, || ()), [] as [Box<[u8]>; 0]);
        assert!(!queue.push(0, b"k", 1), "the thread has ended");
    }

    #[test]
    fn heads_wait_for_the_next_round_and_blocks_for_none() {
        let queue = SealingQueue::default();
        assert!(queue.push_head(0, b"k"), "without a thread, nothing is to be done");
        assert!(queue.lock().next_round.is_empty());
        queue.serve();
        for key in [b"a", b"a", b"b", b"a"] {
            assert!(queue.push_head(0, key));
        }
        assert_eq!(queue.lock().next_round.len(), 3, "the newest is not added again");
        assert!(queue.push(0, b"full", 2));
        let next = || queue.next().map(|series| (series.key.clone(), series.blocks));
        assert_eq!(next(), Some((b"full"[..].into(), 2)));
        for key in [b"a", b"b", b"a"] {
            assert_eq!(next(), Some((key[..].into(), 0)));
            assert!(queue.push_head(0, b"later"));
        }
        assert!(queue.push(0, b"late", 1));
        assert_eq!(next(), Some((b"late"[..].into(), 1)));
        assert_eq!(next(), Some((b"later"[..].into(), 0)));
    }

    #[test]
    fn the_head_of_a_series_is_looked_at_after_its_blocks() {
        let queue = SealingQueue::default();
        queue.serve();
        assert!(queue.push(3, b"k", 1));
        let series = queue.next().expect("it waits");
        queue.done(series);
        let head = queue.next().expect("its head waits");
        assert_eq!((head.db, &*head.key, head.blocks), (3, &b"k"[..], 0));
        queue.done(head);
        assert!(queue.lock().next_round.is_empty());
    }

    #[test]
    fn more_heads_than_may_wait_are_refused() {
        let queue = SealingQueue::default();
        queue.serve();
        for number in 0..HEADS_MAX {
            assert!(queue.push_head(0, &number.to_le_bytes()));
        }
        assert!(!queue.push_head(0, b"one more"));
    }

    #[test]
    fn more_blocks_than_may_wait_are_refused() {
        let queue = SealingQueue::default();
        queue.lock().is_served = true;
        assert!(queue.push(0, b"a", BLOCKS_MAX - 1));
        assert!(!queue.push(0, b"b", 2));
        assert!(queue.push(0, b"b", 1));
        assert!(!queue.push(0, b"c", 1));
        let first = queue.next().expect("a series waits");
        assert!(!queue.push(0, b"c", 1), "blocks count while they are compressed");
        queue.done(first);
        assert!(queue.push(0, b"c", 1));
    }
}
