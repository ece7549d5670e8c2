//! Points of sealed blocks leave memory when they take more of it than they may.

use crate::engine::Engine;
use crate::keyspace::Entry;
use crate::value::{Object, TimeSeries};

/// Entries that one lock covers.
const SLICE: usize = 64;

/// Passes over all series: each drops the same share of every one, and some have few blocks in files.
const PASSES_MAX: usize = 4;

impl Engine {
    /// Drops points that are in block files, the oldest of each series first, until the points of sealed
    /// blocks take no more memory than [`Engine::series_memory`]. Blocks get into files with snapshots,
    /// so this is due after each one. Calls `rest` without locks after every slice of entries. Returns the
    /// bytes that are left in memory.
    ///
    /// No snapshot may be running.
    pub fn drop_points(&self, mut rest: impl FnMut()) -> u64 {
        let limit = self.series_memory() as u64;
        if limit == usize::MAX as u64 {
            return 0;
        }
        let mut left = self.bytes_of_points(&mut rest);
        for _ in 0..PASSES_MAX {
            let Some(surplus) = left.checked_sub(limit).filter(|surplus| *surplus > 0) else { break };
            let share = surplus as f64 / left as f64;
            let mut freed = 0;
            self.for_each_series(SLICE, &mut rest, |series| {
                let wanted = (series.bytes_of_points() as f64 * share).ceil() as usize;
                freed += series.drop_points(wanted) as u64;
            });
            if freed == 0 {
                break;
            }
            left = left.saturating_sub(freed);
        }
        left
    }

    /// Returns the memory of the blocks whose points are in memory, in bytes. O(blocks), in slices.
    pub fn bytes_of_points(&self, mut rest: impl FnMut()) -> u64 {
        let mut bytes = 0;
        self.for_each_series(SLICE, &mut rest, |series| bytes += series.bytes_of_points() as u64);
        bytes
    }

    /// Visits all series, and changes no answer. Calls `rest` without locks after every `slice` entries.
    pub(super) fn for_each_series(
        &self,
        slice: usize,
        rest: &mut impl FnMut(),
        mut visit: impl FnMut(&mut TimeSeries),
    ) {
        let mut visit_entry = |entry: &mut Entry| {
            if let Some(Object::Series(series)) = entry.object_mut() {
                visit(series);
            }
        };
        for shard in 0..self.keyspace().shard_count() {
            let databases = self.keyspace().lock(shard).databases().len();
            for number in 0..databases {
                let mut position = 0;
                loop {
                    let mut shard = self.keyspace().lock(shard);
                    let Some(database) = shard.databases_mut().get_mut(number) else { break };
                    if database.is_empty() {
                        break;
                    }
                    position = database.scan_entries_mut(position, slice, &mut visit_entry);
                    drop(shard);
                    if position == 0 {
                        break;
                    }
                    rest();
                }
            }
        }
    }
}
