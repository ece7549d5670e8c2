//! Latency of values that each carry their due time.

use super::tally::Take;
use crate::latency::Latencies;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Recorder of latencies. Clones share its state.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    begin: Instant,
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    latencies: Latencies,
    /// Sum of all values in `latencies`.
    nanos: f64,
    count: u64,
    /// Number of arrivals since the last query.
    new: u64,
}

/// Latencies of an iteration's values.
pub(crate) struct Late {
    pub(crate) latencies: Latencies,
    /// The mean, in nanoseconds.
    pub(crate) nanos: f64,
    /// Arrivals per second, from the start of the plan to the last arrival; `None` without a
    /// planned rate.
    pub(crate) per_second: Option<f64>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Lateness { begin: Instant::now(), found: Arc::default() }
    }

    /// Returns nanoseconds on the clock of the due times.
    pub(crate) fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Fails unless exactly `count` values have arrived since the last call.
    pub(crate) fn expect(&self, count: u64) -> anyhow::Result<()> {
        let new = mem::take(&mut self.lock().new);
        anyhow::ensure!(new == count, "{new} values arrived where {count} should have");
        Ok(())
    }

    /// Returns all results.
    pub(crate) fn all(&self) -> Late {
        let found = self.lock();
        Late { latencies: found.latencies.clone(), nanos: found.nanos / found.count as f64, per_second: None }
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records a value that is its own due time.
impl Take for Lateness {
    #[inline]
    fn take(&mut self, due: u64) {
        let late = self.now().saturating_sub(due);
        let mut found = self.lock();
        found.latencies.record_nanos(late);
        found.nanos += late as f64;
        found.count += 1;
        found.new += 1;
    }
}
