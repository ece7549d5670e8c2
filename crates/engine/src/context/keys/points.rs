//! Points to log in columns, in place of the commands that added them.

use super::{Keys, shard_mut_in};
use crate::error::CommandError;
use crate::keyspace::hash;
use crate::persist::points::PointsEncoder;
use crate::value::{Definition, TimeSeries, TypedValue};
use std::cell::Cell;
use tidemark_series::DuplicatePolicy;

/// An encoder with more memory than this is not kept. Bytes.
const KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// The encoder of the thread's last record, for its memory.
    static SPARE: Cell<Option<Box<PointsEncoder>>> = const { Cell::new(None) };
}

/// Keeps the memory of an encoder for the thread's next record of points.
pub(crate) fn keep_encoder(encoder: Box<PointsEncoder>) {
    if encoder.capacity() <= KEPT_BYTES {
        SPARE.set(Some(encoder));
    }
}

impl Keys<'_> {
    /// Makes the commands under these locks collect the points that they add, for one record.
    pub(crate) fn collect_points(&mut self) {
        let mut encoder = SPARE.take().unwrap_or_default();
        encoder.begin(self.db(), self.now_us());
        self.points = Some(encoder);
    }

    /// Returns the collected points, if they were collected.
    pub(crate) fn take_points(&mut self) -> Option<Box<PointsEncoder>> {
        self.points.take()
    }

    /// Collects a point that was added.
    #[inline]
    pub(crate) fn note_point(&mut self, key: &[u8], policy: Option<DuplicatePolicy>, time: i64, value: f64) {
        if let Some(points) = &mut self.points {
            points.push(key, policy, time, value);
        }
    }

    /// Collects points that were added to one series.
    pub(crate) fn note_points(
        &mut self,
        key: &[u8],
        policy: Option<DuplicatePolicy>,
        times: &[i64],
        values: &[f64],
    ) {
        if let Some(points) = &mut self.points {
            points.extend(key, policy, times, values);
        }
    }

    /// Notes that the next point creates its series.
    pub(crate) fn note_created(&mut self, key: &[u8], definition: &Definition) {
        if let Some(points) = &mut self.points {
            points.create(key, definition);
        }
    }

    /// Adds points to a series by `add`, and leaves the blocks that it fills, and a head that grows, to the
    /// thread that compresses them. Compresses the blocks if there is none. `None` if the key does not exist.
    #[inline]
    pub(crate) fn fill_series<R>(
        &mut self,
        key: &[u8],
        add: impl FnOnce(&mut TimeSeries) -> R,
    ) -> Result<Option<R>, CommandError> {
        let Some(series) = self.series_mut(key)? else { return Ok(None) };
        let (before, growth) = (series.to_seal(), series.head_growth());
        let result = add(series);
        let filled = series.to_seal().saturating_sub(before);
        if filled > 0 {
            self.seal_filled(key, filled);
        } else if series.head_growth() > growth {
            self.seal_head(key);
        }
        Ok(Some(result))
    }

    #[cold]
    fn seal_head(&mut self, key: &[u8]) {
        if !self.keyspace.sealing().push_head(self.db(), key)
            && let Ok(Some(series)) = self.series_mut(key)
        {
            series.seal_head();
        }
    }

    #[cold]
    fn seal_filled(&mut self, key: &[u8], blocks: usize) {
        if !self.keyspace.sealing().push(self.db(), key, blocks)
            && let Ok(Some(series)) = self.series_mut(key)
        {
            series.seal();
        }
    }

    /// Returns the series of a key; `None` if it holds none.
    pub(crate) fn series(&self, key: &[u8]) -> Option<&TimeSeries> {
        self.read(key).ok().flatten()
    }

    /// Returns a series to add points to, with one lookup; `None` if the key does not exist. The
    /// caller reports changes by [`Keys::changed`].
    #[inline]
    pub(crate) fn series_mut(&mut self, key: &[u8]) -> Result<Option<&mut TimeSeries>, CommandError> {
        let (clock, expired_until_ms) = (self.clock(), self.expired_until_ms);
        let db = self.db;
        // The fields apart: the series borrows the shard.
        let Self { has_met_expired, locked, keyspace, named, .. } = self;
        let shard = shard_mut_in(locked, keyspace, *named, key);
        let Some(entry) = shard.database_mut(db).get_mut(hash(key), key) else { return Ok(None) };
        if entry.deadline().is_some_and(|at| at <= expired_until_ms) {
            has_met_expired.set(true);
            return Ok(None);
        }
        entry.touch(clock);
        entry.object_mut().and_then(TimeSeries::from_object_mut).map(Some).ok_or(CommandError::WrongType)
    }
}
