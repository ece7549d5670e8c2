//! How late values arrive, each of which is the time at which it is due.

use super::tally::Take;
use crate::latency::Latencies;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What takes down how late values arrive. Clones take down for the same.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    begin: Instant,
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    latencies: Latencies,
    /// The sum of all that `latencies` has.
    nanos: f64,
    count: u64,
    /// Of what has arrived since it was asked for.
    new: u64,
}

/// How late the values of an iteration were.
pub(crate) struct Late {
    pub(crate) latencies: Latencies,
    /// The mean, in nanoseconds.
    pub(crate) nanos: f64,
    /// How many arrived in a second, from the beginning of the plan until all had; none if it was not planned how many should.
    pub(crate) per_second: Option<f64>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Lateness { begin: Instant::now(), found: Arc::default() }
    }

    /// Nanoseconds on the clock by which values are due.
    pub(crate) fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Fails unless so many have arrived since the last call.
    pub(crate) fn expect(&self, count: u64) -> anyhow::Result<()> {
        let new = mem::take(&mut self.lock().new);
        anyhow::ensure!(new == count, "{new} values arrived where {count} should have");
        Ok(())
    }

    /// All that has been found.
    pub(crate) fn all(&self) -> Late {
        let found = self.lock();
        Late { latencies: found.latencies.clone(), nanos: found.nanos / found.count as f64, per_second: None }
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a value for the time at which it was due.
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
