//! Snapshot of a running pool.

use crate::draw::selector::Selector;
use crate::journal::SnapshotSink;
use crate::pool::Pool;
use crate::record::capture::Capture;
use crate::record::event::{Event, Events};
use crate::record::frame::Chain;

/// An extra block is written for this many bytes of frames. A block is larger, so a snapshot
/// completes before the log grows by the size of the snapshot, whatever the load.
const BYTES_PER_BLOCK: usize = 1024;

pub(super) struct Snapshot {
    capture: Capture,
    sink: Box<dyn SnapshotSink>,
    events: Vec<u8>,
}

/// Decodes events that the pool has recorded.
fn recorded(events: &[u8]) -> impl Iterator<Item = Event<'_>> {
    Events::new(events).map(|event| event.expect("what a pool has recorded can be read"))
}

impl Snapshot {
    /// Begins a snapshot of the pool. All staged steps must be in the journal.
    pub(super) fn begin<S: Selector>(pool: &Pool<S>, chain: Chain, mut sink: Box<dyn SnapshotSink>) -> Self {
        let mut head = Vec::new();
        pool.write_head(&mut head);
        sink.head(chain, &head);
        Self { capture: Capture::new(pool.urn().len()), sink, events: Vec::new() }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.sink.is_busy()
    }

    /// Changes the pool, and first gives the sink the items before the change.
    pub(super) fn see_before<S: Selector, R>(
        &mut self,
        pool: &mut Pool<S>,
        act: impl Fn(&mut Pool<S>) -> R,
    ) -> R {
        let savepoint = pool.savepoint();
        let result = act(pool);
        if !recorded(pool.staged_since(savepoint)).any(|event| self.capture.is_unseen(&event)) {
            return result;
        }
        self.events.clear();
        self.events.extend_from_slice(pool.staged_since(savepoint));
        pool.back_to(savepoint);
        let Self { capture, sink, events } = self;
        for event in recorded(events) {
            capture.see(pool, &event, |block, items| sink.block(block, items));
        }
        let result = act(pool);
        // The capture has copied what the first run changed. The message omits the bytes: they may
        // contain secrets.
        let (again, before) = (pool.staged_since(savepoint), &self.events);
        assert!(
            again == &before[..],
            "events of {} bytes become {} when done again",
            before.len(),
            again.len()
        );
        result
    }

    /// Gives the sink another block, which takes some tens of microseconds, and more blocks in
    /// proportion to the frames written since the last step. `None` once the snapshot is complete.
    pub(super) fn step<S: Selector>(mut self, pool: &Pool<S>, frame_bytes: usize) -> Option<Self> {
        let Self { capture, sink, .. } = &mut self;
        for _ in 0..=frame_bytes / BYTES_PER_BLOCK {
            if sink.is_busy() {
                return Some(self);
            }
            if !capture.step(pool, |block, items| sink.block(block, items)) {
                self.sink.finish();
                return None;
            }
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::selector::WideTree;
    use crate::record::capture::BLOCK_ITEMS;
    use crate::{Catalogue, Item, Secret};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Counts blocks, and is busy after a number of them.
    struct Counting(Arc<AtomicUsize>, usize);

    impl SnapshotSink for Counting {
        fn head(&mut self, _: Chain, _: &[u8]) {}

        fn block(&mut self, _: usize, _: &[u8]) {
            self.0.fetch_add(1, Relaxed);
        }

        fn is_busy(&self) -> bool {
            self.0.load(Relaxed) >= self.1
        }

        fn finish(self: Box<Self>) {
            self.0.store(usize::MAX, Relaxed);
        }
    }

    #[test]
    fn the_more_is_logged_the_faster_a_snapshot_comes_to_its_end() {
        let items = (0..20 * BLOCK_ITEMS).map(|item| Item::limited(item.to_string(), 1, 9)).collect();
        let catalogue = Catalogue::new(items).expect("a catalogue");
        let pool = Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
        let begin = |most| {
            let blocks = Arc::new(AtomicUsize::new(0));
            let sink = Box::new(Counting(Arc::clone(&blocks), most));
            (Snapshot::begin(&pool, Chain::from([0; 32]), sink), blocks)
        };
        let (snapshot, blocks) = begin(usize::MAX);
        let snapshot = snapshot.step(&pool, 0).expect("there are more");
        assert_eq!(blocks.load(Relaxed), 1);
        let snapshot = snapshot.step(&pool, 10 * BYTES_PER_BLOCK).expect("there are more");
        assert_eq!(blocks.load(Relaxed), 12);
        assert!(snapshot.step(&pool, usize::MAX).is_none());
        assert_eq!(blocks.load(Relaxed), usize::MAX, "the last chunk was announced as the last");

        let (snapshot, blocks) = begin(5);
        assert!(snapshot.step(&pool, usize::MAX).is_some(), "the writer's buffer is full");
        assert_eq!(blocks.load(Relaxed), 5);
    }
}
