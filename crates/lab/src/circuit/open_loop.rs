//! Values that are emitted at times which are fixed before, and how late they arrive.
//!
//! How late is counted from the time at which a value was to be emitted, also if its emission had to wait because others before
//! it took long: what a caller would have noticed is in the figures (no coordinated omission).

use super::benchmark::Work;
use super::tally::Take;
use crate::latency::Latencies;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a call emits.
const CALL: Duration = Duration::from_millis(10);

/// What takes down how late values arrive. Clones take down for the same.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    begin: Instant,
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    latencies: Latencies,
    /// Of what has arrived since it was asked for.
    count: u64,
    nanos: f64,
}

impl Lateness {
    pub(super) fn new() -> Self {
        Lateness { begin: Instant::now(), found: Arc::default() }
    }

    /// Nanoseconds on the clock by which values are due.
    pub(super) fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// How late what has arrived since the last call was in all, in nanoseconds. Fails unless it was so many.
    pub(super) fn expect(&self, count: u64) -> anyhow::Result<f64> {
        let mut found = self.lock();
        let (new, nanos) = (mem::take(&mut found.count), mem::take(&mut found.nanos));
        anyhow::ensure!(new == count, "{new} values arrived where {count} should have");
        Ok(nanos)
    }

    /// All that has been found, which is forgotten.
    fn take_all(&self) -> Latencies {
        mem::take(&mut self.lock().latencies)
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
        found.count += 1;
        found.nanos += late as f64;
    }
}

/// Work of emitting so many values a second, each of which is the time at which it is due. `flush` waits until they have arrived.
pub(super) fn emissions<S: 'static>(
    mut state: S,
    lateness: &Lateness,
    per_second: u64,
    mut emit: impl FnMut(&mut S, u64) -> anyhow::Result<()> + 'static,
    mut flush: impl FnMut(&mut S) -> anyhow::Result<()> + 'static,
) -> anyhow::Result<Work> {
    debug_assert!(per_second > 0);
    let interval = 1_000_000_000 / per_second;
    let count = (CALL.as_nanos() as u64 / interval).max(1);
    let own = lateness.clone();
    latencies(lateness, count, move || {
        let begin = own.now();
        for number in 1..=count {
            let due = begin + number * interval;
            while own.now() < due {
                std::hint::spin_loop();
            }
            emit(&mut state, due)?;
        }
        flush(&mut state)?;
        own.expect(count)
    })
}

/// Work whose calls return how late so many values were in all, of which each was taken down.
pub(super) fn latencies(
    lateness: &Lateness,
    count: u64,
    call: impl FnMut() -> anyhow::Result<f64> + 'static,
) -> anyhow::Result<Work> {
    let lateness = lateness.clone();
    Ok(Work::amounts(count, call)?.with_latencies(move || lateness.take_all()))
}

#[cfg(test)]
mod tests {
    use super::{Lateness, emissions};
    use crate::circuit::tally::Take;
    use std::time::Duration;

    #[test]
    fn a_value_that_others_have_held_up_counts_as_late() {
        let lateness = Lateness::new();
        let mut end = lateness.clone();
        let emit = move |first: &mut bool, due| {
            if std::mem::take(first) {
                std::thread::sleep(Duration::from_millis(20));
            }
            end.take(due);
            Ok(())
        };
        let mut work = emissions(true, &lateness, 1_000, emit, |_| Ok(())).unwrap();
        assert_eq!(work.operations, 10);
        // The first takes 20 ms; the others are due within 10 ms, and at least 11 to 19 ms late for it.
        let late = Duration::from_nanos((work.run)(1).unwrap() as u64);
        assert!(late >= Duration::from_millis(20 + (11..=19).sum::<u64>()), "{late:?}");
        let latencies = (work.latencies.unwrap())();
        assert_eq!(latencies.summary().count, 10);
        assert!(latencies.nanos_at(0.0) >= 10_900_000, "{}", latencies.nanos_at(0.0));
    }

    #[test]
    fn a_value_that_does_not_arrive_is_an_error() {
        let mut work = emissions((), &Lateness::new(), 1_000, |(), _| Ok(()), |()| Ok(())).unwrap();
        let error = (work.run)(1).unwrap_err().to_string();
        assert_eq!(error, "0 values arrived where 10 should have");
    }
}
