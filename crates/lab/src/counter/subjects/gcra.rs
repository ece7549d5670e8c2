//! The generic cell rate algorithm: a limiter whose state is one word, without a store.

use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::stopwatch::nanos;
use crate::counter::subject::Subject;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// For each key when it would be empty again, in nanoseconds since the origin.
pub(in crate::counter) struct Gcra {
    arrivals: Named<AtomicU64>,
    rate: u64,
    burst: u64,
    /// What a unit takes, in nanoseconds, rounded up, so that no more than the rate is admitted.
    interval: u64,
    origin: Instant,
}

impl Gcra {
    pub(in crate::counter) fn new(
        settings: &Settings,
        names: &Arc<[String]>,
        _: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        Ok(Gcra {
            arrivals: Named::new(names, |_| AtomicU64::new(0)),
            rate: settings.rate,
            burst: settings.burst,
            interval: 1_000_000_000_u64.div_ceil(settings.rate),
            origin: Instant::now(),
        })
    }

    /// The word behind an operation that is admitted.
    fn moved(&self, arrival: u64, now: u64, is_minus: bool) -> Option<u64> {
        let arrival = arrival.max(now);
        if is_minus {
            return arrival.checked_sub(self.interval).filter(|arrival| *arrival >= now);
        }
        let arrival = arrival.checked_add(self.interval)?;
        (arrival - now <= self.burst.saturating_mul(self.interval)).then_some(arrival)
    }
}

impl Subject for Gcra {
    fn apply(&self, _: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        let now = nanos(self.origin.elapsed());
        let moved = self
            .arrivals
            .get(key)
            .fetch_update(Relaxed, Relaxed, |arrival| self.moved(arrival, now, is_minus));
        Ok(match (moved, is_minus) {
            (Err(_), _) => 0,
            (Ok(_), false) => 1,
            (Ok(_), true) => -1,
        })
    }

    fn limit(&self, after: Duration) -> Option<i64> {
        let brought = u128::from(self.rate) * after.as_nanos() / 1_000_000_000;
        Some(i64::try_from(brought + u128::from(self.burst)).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{Gcra, Instant, Named};
    use std::sync::Arc;

    #[test]
    fn the_burst_is_admitted_and_then_the_rate() {
        let gcra = Gcra {
            arrivals: Named::new(&Arc::from([]), |_| unreachable!()),
            rate: 10_000_000,
            burst: 3,
            interval: 100,
            origin: Instant::now(),
        };
        let mut arrival = 0;
        let moves = [
            (0, false),
            (0, false),
            (0, false),
            (0, false),
            (99, false),
            (100, false),
            (100, true),
            (100, false),
            (10_000, true),
            (10_000, false),
        ]
        .map(|(now, is_minus)| {
            let moved = gcra.moved(arrival, now, is_minus);
            arrival = moved.unwrap_or(arrival);
            moved.is_some()
        });
        assert_eq!(moves, [true, true, true, false, false, true, true, true, false, true]);
    }
}
