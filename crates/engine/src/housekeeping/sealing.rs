//! Compresses full blocks of series, and heads that have grown, away from the commands that have added
//! their points.

use crate::engine::Engine;
use crate::keyspace::{Entry, FilledSeries, Shard, hash};
use crate::value::{TimeSeries, TypedValue};

/// Entries that one lock covers while heads are compressed, some ten microseconds each.
const HEADS_SLICE: usize = 4;

impl Engine {
    /// Compresses full blocks of series, and heads that have grown, until [`Engine::stop_sealing`]. Call it
    /// on a thread of its own. Without such a thread, the commands that fill blocks compress them, and heads
    /// stay as they are.
    ///
    /// The shard of a series is locked only to take points and to put them back, and others may run between
    /// two blocks.
    pub fn seal_series(&self) {
        let queue = self.keyspace().sealing();
        queue.serve();
        self.seal_heads(std::thread::yield_now);
        while let Some(series) = queue.next() {
            self.seal_next(&series);
            queue.done(series);
        }
    }

    /// Ends [`Engine::seal_series`]. What waits stays uncompressed.
    pub fn stop_sealing(&self) {
        self.keyspace().sealing().stop();
    }

    /// Compresses the heads of all series that have grown, those that a start has found for example. Calls
    /// `rest` without locks after every few entries, of which none changes its answers.
    pub fn seal_heads(&self, mut rest: impl FnMut()) {
        self.for_each_series(HEADS_SLICE, &mut rest, TimeSeries::seal_head);
    }

    fn seal_next(&self, next: &FilledSeries) {
        let index = self.keyspace().shard_of(&next.key);
        let mut sealed = None;
        loop {
            let mut shard = self.keyspace().lock(index);
            let Some(series) = series_of(&mut shard, next) else { return };
            if let Some(sealed) = sealed.take() {
                // If the points have changed since, they wait again.
                series.put_sealed(sealed);
            }
            let Some(unsealed) = series.unsealed() else { break };
            drop(shard);
            sealed = Some(unsealed.seal());
            std::thread::yield_now();
        }
        if next.blocks > 0 {
            return;
        }
        let mut shard = self.keyspace().lock(index);
        let Some(unsealed) = series_of(&mut shard, next).and_then(TimeSeries::unsealed_head) else { return };
        drop(shard);
        let sealed = unsealed.seal();
        let mut shard = self.keyspace().lock(index);
        if let Some(series) = series_of(&mut shard, next) {
            // A head that has changed since is compressed when it has grown more.
            series.put_sealed(sealed);
        }
    }
}

/// Returns the series, if its key still holds one.
fn series_of<'s>(shard: &'s mut Shard, filled: &FilledSeries) -> Option<&'s mut TimeSeries> {
    let database = shard.database_mut(usize::from(filled.db));
    let entry = database.get_mut(hash(&filled.key), &filled.key)?;
    Entry::object_mut(entry).and_then(TimeSeries::from_object_mut)
}
