//! The measured subject, as its measurement sees it.

use std::time::Duration;

/// Named counters or limiters that any number of threads move concurrently.
pub(super) trait Subject: Sync {
    /// Performs one operation on a key: takes or counts a unit; a minus gives one back. Returns by
    /// how much the key moved: 0 if the operation was refused.
    fn apply(&self, worker: usize, key: usize, is_minus: bool) -> anyhow::Result<i64>;

    /// Returns what is not stored yet; empty if everything or nothing is stored immediately.
    fn exposure(&self) -> anyhow::Result<Exposure> {
        Ok(Exposure::default())
    }

    /// Stores the rest and ends all background threads.
    fn finish(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns the stored value of each key, if the store can be read.
    fn stored(&self) -> anyhow::Result<Option<Vec<i64>>> {
        Ok(None)
    }

    /// Returns the value of each key in memory; `None` for limiters, which do not keep it.
    fn positions(&self) -> anyhow::Result<Option<Vec<i64>>> {
        Ok(None)
    }

    /// Returns the units that a key may admit until this time after the first operation, net of
    /// returned units.
    fn limit(&self, _after: Duration) -> Option<i64> {
        None
    }
}

/// Units that would be lost or granted again if the process ended now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exposure {
    /// Units of all keys together.
    pub(super) units: u64,
    /// Largest number of units of a key.
    pub(super) largest: u64,
    /// Age of the oldest uncommitted change, in nanoseconds.
    pub(super) oldest_ns: u64,
}
