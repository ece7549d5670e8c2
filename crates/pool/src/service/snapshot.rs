//! A snapshot that is being taken of a pool that goes on.

use crate::capture::Capture;
use crate::event::Events;
use crate::frame::Chain;
use crate::journal::SnapshotSink;
use crate::pool::Pool;
use crate::selector::Selector;

/// A snapshot that is being taken.
pub(super) struct Snapshot {
    capture: Capture,
    sink: Box<dyn SnapshotSink>,
    events: Vec<u8>,
}

impl Snapshot {
    /// Begins to take the pool as it is now. Nothing is staged that is not in the journal.
    pub(super) fn begin<S: Selector>(pool: &Pool<S>, chain: Chain, mut sink: Box<dyn SnapshotSink>) -> Self {
        let mut head = Vec::new();
        pool.write_head(&mut head);
        sink.head(chain, &head);
        Self { capture: Capture::new(pool.urn().len()), sink, events: Vec::new() }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.sink.is_busy()
    }

    /// Does something to the pool, and gives the sink what it changes as it was before.
    pub(super) fn see_before<S: Selector, R>(
        &mut self,
        pool: &mut Pool<S>,
        act: impl Fn(&mut Pool<S>) -> R,
    ) -> R {
        let savepoint = pool.savepoint();
        let result = act(pool);
        let events = || Events::new(pool.staged_since(savepoint)).flatten();
        if !events().any(|event| self.capture.is_unseen(&event)) {
            return result;
        }
        self.events.clear();
        self.events.extend_from_slice(pool.staged_since(savepoint));
        pool.back_to(savepoint);
        let Self { capture, sink, events } = self;
        for event in Events::new(events).flatten() {
            capture.see(pool, &event, |block, items| sink.block(block, items));
        }
        act(pool)
    }

    /// Lets the sink have one more block, which takes some tens of microseconds; `None` once it has all.
    pub(super) fn step<S: Selector>(mut self, pool: &Pool<S>) -> Option<Self> {
        if self.sink.is_busy() {
            return Some(self);
        }
        let Self { capture, sink, .. } = &mut self;
        if capture.step(pool, |block, items| sink.block(block, items)) {
            return Some(self);
        }
        self.sink.finish();
        None
    }
}
