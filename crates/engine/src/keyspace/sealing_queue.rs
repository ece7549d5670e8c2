//! Series with blocks that are full and wait to be compressed by a thread of its own, so that the
//! commands that filled them need not.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Most blocks that wait: 64 MiB of points. Beyond it, the commands that fill blocks compress them.
const BLOCKS_MAX: usize = 4096;

/// A series with full blocks. By now, the key may hold another value.
#[derive(Debug)]
pub(crate) struct FilledSeries {
    pub(crate) db: u8,
    pub(crate) key: Box<[u8]>,
    /// Number of blocks that it has filled.
    pub(crate) blocks: usize,
}

/// Queue of series with full blocks, the oldest first.
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

    /// Waits for the next series; `None` once the queue is stopped. The caller reports it
    /// [done](Self::done).
    pub(crate) fn next(&self) -> Option<FilledSeries> {
        let mut state = self.lock();
        state.is_served = !state.is_stopped;
        let is_idle = |state: &mut QueueState| state.series.is_empty() && !state.is_stopped;
        let mut state = self.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped { None } else { state.series.pop_front() }
    }

    /// Makes room for as many blocks as a series from [`SealingQueue::next`] had filled.
    pub(crate) fn done(&self, series: &FilledSeries) {
        self.lock().blocks -= series.blocks;
    }

    /// Ends the thread that takes from the queue. What waits stays as it is: it is complete.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        (state.is_stopped, state.is_served) = (true, false);
        drop(state);
        self.changed.notify_all();
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
                    queue.done(&series);
                    keys.push(series.key);
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
    fn more_blocks_than_may_wait_are_refused() {
        let queue = SealingQueue::default();
        queue.lock().is_served = true;
        assert!(queue.push(0, b"a", BLOCKS_MAX - 1));
        assert!(!queue.push(0, b"b", 2));
        assert!(queue.push(0, b"b", 1));
        assert!(!queue.push(0, b"c", 1));
        let first = queue.next().expect("a series waits");
        assert!(!queue.push(0, b"c", 1), "blocks count while they are compressed");
        queue.done(&first);
        assert!(queue.push(0, b"c", 1));
    }
}
