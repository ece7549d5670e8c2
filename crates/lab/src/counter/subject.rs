//! What is measured, as those see it who measure.

use serde::Serialize;
use std::time::Duration;

/// Counters or limiters under names, which any number of threads move at once.
pub(super) trait Subject: Sync {
    /// Does one operation on a key: a unit taken or counted, or, if it is a minus, one given back. Returns by how much the key has
    /// moved: 0 if it was refused.
    fn apply(&self, worker: usize, key: usize, is_minus: bool) -> anyhow::Result<i64>;

    /// What the store does not have yet; nothing where everything is stored at once or not at all.
    fn exposure(&self) -> anyhow::Result<Exposure> {
        Ok(Exposure::default())
    }

    /// Stores what is not stored, and ends all threads that work for it.
    fn finish(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// What the store has of each key, if it can be asked.
    fn stored(&self) -> anyhow::Result<Option<Vec<i64>>> {
        Ok(None)
    }

    /// What is counted of each key, in memory; `None` for limiters, which forget.
    fn positions(&self) -> anyhow::Result<Option<Vec<i64>>> {
        Ok(None)
    }

    /// How many units a key may admit, net of what was given back, until so long after the first operation.
    fn limit(&self, _after: Duration) -> Option<i64> {
        None
    }
}

/// What would be lost, or granted again, if the process ended now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exposure {
    /// Units of all keys together.
    pub(super) units: u64,
    /// Units of the key that has most.
    pub(super) largest: u64,
    /// Since when the oldest of it has been uncommitted, in nanoseconds.
    pub(super) oldest_ns: u64,
}
