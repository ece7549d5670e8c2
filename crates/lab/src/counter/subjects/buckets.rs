//! Limiters whose state is read from a store and written to it for every operation.

use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::stopwatch::nanos;
use crate::counter::subject::Subject;
use crate::counter::variant::Variant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bucket for each key: of tokens, or one that leaks.
pub(in crate::counter) struct Buckets {
    keys: Named<Mutex<Bucket>>,
    rule: fn(&mut Bucket, Rate, u64, bool) -> i64,
    rate: Rate,
    origin: Instant,
    meter: Arc<Meter>,
}

#[derive(Clone, Copy)]
struct Rate {
    /// Units; parts of one per nanosecond are as many.
    per_second: u64,
    /// Parts of units.
    capacity: u64,
}

/// Parts of a unit.
const UNIT: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Parts of units.
    level: u64,
    /// When it was so, in nanoseconds since the origin.
    at: u64,
}

impl Bucket {
    /// The time goes on, never back. Returns the parts of units that it brings.
    fn advance(&mut self, rate: Rate, now: u64) -> u64 {
        let passed = now.saturating_sub(self.at);
        self.at += passed;
        passed.saturating_mul(rate.per_second)
    }

    /// Tokens come in; an operation takes one, and a minus brings it back if there is room for it.
    fn take_token(&mut self, rate: Rate, now: u64, is_minus: bool) -> i64 {
        let brought = self.advance(rate, now);
        self.level = self.level.saturating_add(brought).min(rate.capacity);
        if is_minus && self.level + UNIT <= rate.capacity {
            self.level += UNIT;
            return -1;
        }
        if !is_minus && self.level >= UNIT {
            self.level -= UNIT;
            return 1;
        }
        0
    }

    /// Units leak out; an operation pours one in if there is room for it, and a minus draws one.
    fn pour(&mut self, rate: Rate, now: u64, is_minus: bool) -> i64 {
        let leaked = self.advance(rate, now);
        self.level = self.level.saturating_sub(leaked);
        if is_minus && self.level >= UNIT {
            self.level -= UNIT;
            return -1;
        }
        if !is_minus && self.level + UNIT <= rate.capacity {
            self.level += UNIT;
            return 1;
        }
        0
    }
}

impl Buckets {
    pub(in crate::counter) fn new(
        settings: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        let rate = Rate { per_second: settings.rate, capacity: settings.burst * UNIT };
        let is_leaky = settings.variant == Variant::Leaky;
        let level = if is_leaky { 0 } else { rate.capacity };
        Ok(Buckets {
            keys: Named::new(names, |_| Mutex::new(Bucket { level, at: 0 })),
            rule: if is_leaky { Bucket::pour } else { Bucket::take_token },
            rate,
            origin: Instant::now(),
            meter: Arc::clone(meter),
        })
    }
}

impl Subject for Buckets {
    fn apply(&self, _: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        self.meter.write(0);
        let moved = {
            let mut bucket = self.keys.get(key).lock().unwrap_or_else(PoisonError::into_inner);
            (self.rule)(&mut bucket, self.rate, nanos(self.origin.elapsed()), is_minus)
        };
        self.meter.write(1);
        Ok(moved)
    }

    fn limit(&self, after: Duration) -> Option<i64> {
        let brought = u128::from(self.rate.per_second) * after.as_nanos();
        let parts = u128::from(self.rate.capacity) + brought;
        Some(i64::try_from(parts / u128::from(UNIT)).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{Bucket, Rate, UNIT};

    /// A unit in 100 ns, 3 at once.
    const RATE: Rate = Rate { per_second: UNIT / 100, capacity: 3 * UNIT };

    fn check(mut bucket: Bucket, rule: fn(&mut Bucket, Rate, u64, bool) -> i64) {
        let moves: Vec<i64> = [
            (0, false),
            (0, false),
            (0, false),
            (0, false),
            (99, false),
            (100, false),
            // Time that goes back brings nothing.
            (50, false),
            (100, true),
            (100, false),
            // Long enough for more than there is room for.
            (10_000, true),
            (10_000, false),
            (u64::MAX, false),
        ]
        .into_iter()
        .map(|(now, is_minus)| rule(&mut bucket, RATE, now, is_minus))
        .collect();
        assert_eq!(moves, [1, 1, 1, 0, 0, 1, 0, -1, 1, 0, 1, 1]);
    }

    #[test]
    fn both_admit_the_burst_and_then_the_rate() {
        check(Bucket { level: RATE.capacity, at: 0 }, Bucket::take_token);
        check(Bucket { level: 0, at: 0 }, Bucket::pour);
    }
}
