//! Periodic sampling of uncommitted units while workers run.

use super::meter::Meter;
use super::outcome::{Exposures, Intervals};
use super::stopwatch::nanos;
use super::subject::{Exposure, Subject};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Inverse of the largest share of time that samples may take.
const LOOK_SHARE: u32 = 20;

/// The samples so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    seen: Exposures,
    sum_units: u128,
    calls: u64,
    last_call: Option<Instant>,
    sum_intervals: u64,
}

impl Watch {
    /// Samples at this interval until the run is over; less often if a sample takes long.
    pub(super) fn until(
        is_over: &AtomicBool,
        subject: &impl Subject,
        meter: &Meter,
        every: Duration,
    ) -> anyhow::Result<Self> {
        let (mut watch, mut pause) = (Watch::default(), every);
        while !is_over.load(Relaxed) {
            std::thread::sleep(pause);
            let clock = Instant::now();
            watch.look(subject.exposure()?, meter.asked().calls);
            // A sample of very many keys takes long, and must be no load.
            pause = every.max(clock.elapsed() * LOOK_SHARE);
        }
        Ok(watch)
    }

    fn look(&mut self, exposure: Exposure, calls: u64) {
        let most = &mut self.seen.most;
        most.units = most.units.max(exposure.units);
        most.largest = most.largest.max(exposure.largest);
        most.oldest_ns = most.oldest_ns.max(exposure.oldest_ns);
        self.sum_units += u128::from(exposure.units);
        self.seen.looks += 1;
        if calls > self.calls {
            self.calls = calls;
            let now = Instant::now();
            if let Some(last) = self.last_call.replace(now) {
                let interval = nanos(now - last);
                let Intervals { count, min_ns, max_ns, .. } = &mut self.seen.commits;
                *min_ns = Some(min_ns.map_or(interval, |min| interval.min(min)));
                *max_ns = Some(max_ns.map_or(interval, |max| interval.max(max)));
                *count += 1;
                self.sum_intervals += interval;
            }
        }
    }

    /// Returns all samples, including those after the last operation and after the final flush.
    pub(super) fn end(mut self, at_end: Exposure, at_last: Exposure, promised_of_key: u64) -> Exposures {
        self.look(at_end, 0);
        let mean_ns = self.sum_intervals.checked_div(self.seen.commits.count);
        let commits = Intervals { mean_ns, ..self.seen.commits };
        Exposures {
            mean_units: self.sum_units as f64 / self.seen.looks as f64,
            at_end: at_end.units,
            at_last: at_last.units,
            promised_of_key,
            commits,
            ..self.seen
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposure, Watch};

    fn exposure(units: u64, largest: u64, oldest_ns: u64) -> Exposure {
        Exposure { units, largest, oldest_ns }
    }

    #[test]
    fn the_most_of_each_and_the_mean_are_kept() {
        let mut watch = Watch::default();
        watch.look(exposure(10, 4, 7), 0);
        watch.look(exposure(4, 3, 9), 1);
        let seen = watch.end(exposure(1, 1, 1), exposure(0, 0, 0), 5);
        assert_eq!(seen.most, exposure(10, 4, 9));
        assert!((seen.mean_units - 5.0).abs() < 1e-9);
        assert_eq!((seen.at_end, seen.at_last, seen.looks, seen.promised_of_key), (1, 0, 3, 5));
    }

    #[test]
    fn an_interval_is_between_looks_that_have_seen_new_calls() {
        let mut watch = Watch::default();
        for calls in [0, 1, 1, 2, 2, 5] {
            watch.look(exposure(0, 0, 0), calls);
        }
        let seen = watch.end(exposure(0, 0, 0), exposure(0, 0, 0), 1);
        assert_eq!(seen.commits.count, 2);
        assert!(seen.commits.min_ns.is_some());
        assert!(seen.commits.min_ns <= seen.commits.mean_ns && seen.commits.mean_ns <= seen.commits.max_ns);
    }
}
