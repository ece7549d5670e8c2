//! Limiters whose state is read from a store and written back for every operation.

use super::rated::Rated;
use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::subject::Subject;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidemark_counter::limiter::{LeakyBucket, Limiter, Monotonic, Time, TokenBucket};

/// A bucket for each key.
pub(in crate::counter) struct Buckets<L: Limiter> {
    keys: Named<Mutex<L::State>>,
    rule: L,
    rated: Rated,
    clock: Monotonic,
    meter: Arc<Meter>,
}

impl Buckets<TokenBucket> {
    pub(in crate::counter) fn of_tokens(
        settings: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        let rated = Rated::of(settings);
        Ok(Self::new(TokenBucket::new(rated.burst, rated.rate()?)?, rated, names, meter))
    }
}

impl Buckets<LeakyBucket> {
    pub(in crate::counter) fn that_leak(
        settings: &Settings,
        names: &Arc<[String]>,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        let rated = Rated::of(settings);
        Ok(Self::new(LeakyBucket::new(rated.burst, rated.rate()?)?, rated, names, meter))
    }
}

impl<L: Limiter> Buckets<L> {
    fn new(rule: L, rated: Rated, names: &Arc<[String]>, meter: &Arc<Meter>) -> Self {
        Buckets {
            keys: Named::new(names, |_| Mutex::new(rule.fresh())),
            rule,
            rated,
            clock: Monotonic::new(),
            meter: Arc::clone(meter),
        }
    }

    /// Takes a unit, or gives one back if a whole unit is still counted: the limiter admits a
    /// returned unit again.
    fn move_by(&self, state: &mut L::State, now: Time, is_minus: bool) -> i64 {
        if !is_minus {
            return i64::from(self.rule.check(state, now, 1).is_allowed);
        }
        if self.rule.idle_at(state).since(now) <= self.rated.unit() {
            return 0;
        }
        self.rule.refund(state, now, 1);
        -1
    }
}

impl<L> Subject for Buckets<L>
where
    L: Limiter<State: Send> + Sync,
{
    fn apply(&self, _: usize, key: usize, is_minus: bool) -> anyhow::Result<i64> {
        self.meter.write(0);
        let moved = {
            let mut state = self.keys.get(key).lock().unwrap_or_else(PoisonError::into_inner);
            self.move_by(&mut state, self.clock.now(), is_minus)
        };
        self.meter.write(1);
        Ok(moved)
    }

    fn limit(&self, after: Duration) -> Option<i64> {
        Some(self.rated.limit(after))
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Buckets, Duration, Limiter, Meter, Settings, Time};

    fn moves<L: Limiter>(buckets: &Buckets<L>) -> Vec<i64> {
        let mut state = buckets.rule.fresh();
        // A unit in 100 ns, 3 at once.
        let steps = [
            (0, false),
            (0, false),
            (0, false),
            (0, false),
            (99, false),
            (100, false),
            // Time that moves backwards restores nothing.
            (50, false),
            (100, true),
            (100, false),
            // All units are restored: none can be given back.
            (10_000, true),
            (10_000, false),
        ];
        steps.map(|(now, is_minus)| buckets.move_by(&mut state, Time::from_nanos(now), is_minus)).to_vec()
    }

    #[test]
    fn both_admit_the_burst_and_then_the_rate_and_again_what_is_given_back() {
        let settings = Settings { rate: 10_000_000, burst: 3, ..Settings::harness() };
        let (names, meter) = (Arc::from([]), Arc::new(Meter::new(Duration::ZERO)));
        let expected = [1, 1, 1, 0, 0, 1, 0, -1, 1, 0, 1];
        assert_eq!(moves(&Buckets::of_tokens(&settings, &names, &meter).unwrap()), expected);
        assert_eq!(moves(&Buckets::that_leak(&settings, &names, &meter).unwrap()), expected);
    }
}
