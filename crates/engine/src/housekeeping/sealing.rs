//! Compresses full blocks of series, away from the commands that have filled them.

use crate::engine::Engine;
use crate::keyspace::{Entry, FilledSeries, Shard, hash};
use crate::value::{TimeSeries, TypedValue};

impl Engine {
    /// Compresses full blocks of series, until [`Engine::stop_sealing`]. Call it on a thread of its
    /// own. Without such a thread, the commands that fill blocks compress them.
    ///
    /// The shard of a series is locked only to take the points of a block and to put them back, and
    /// others may run between two blocks.
    pub fn seal_series(&self) {
        let queue = self.keyspace().sealing();
        while let Some(filled) = queue.next() {
            self.seal_filled(&filled);
            queue.done(&filled);
        }
    }

    /// Ends [`Engine::seal_series`]. What waits stays uncompressed.
    pub fn stop_sealing(&self) {
        self.keyspace().sealing().stop();
    }

    fn seal_filled(&self, filled: &FilledSeries) {
        let index = self.keyspace().shard_of(&filled.key);
        let mut sealed = None;
        loop {
            let mut shard = self.keyspace().lock(index);
            let Some(series) = series_of(&mut shard, filled) else { return };
            if let Some(sealed) = sealed.take() {
                // If the points have changed since, they wait again.
                series.put_sealed(sealed);
            }
            let Some(unsealed) = series.unsealed() else { return };
            drop(shard);
            sealed = Some(unsealed.seal());
            std::thread::yield_now();
        }
    }
}

/// Returns the series, if its key still holds one.
fn series_of<'s>(shard: &'s mut Shard, filled: &FilledSeries) -> Option<&'s mut TimeSeries> {
    let database = shard.database_mut(usize::from(filled.db));
    let entry = database.get_mut(hash(&filled.key), &filled.key)?;
    Entry::object_mut(entry).and_then(TimeSeries::from_object_mut)
}
