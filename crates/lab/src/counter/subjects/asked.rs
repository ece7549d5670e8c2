//! Limiters without a store: the generic cell rate algorithm, ours and the peer crate `governor`'s.

use super::rated::Rated;
use crate::counter::meter::Meter;
use crate::counter::named::Named;
use crate::counter::settings::Settings;
use crate::counter::subject::Subject;
use std::sync::Arc;
use std::time::Duration;
use tidemark_counter::limiter::{Gcra, Monotonic, SharedGcra};

/// A limiter per key and the function that requests a unit. Every operation is a request, also a
/// minus: the peer has no refund, and ours must do the same work.
struct Asked<L, A> {
    keys: Named<L>,
    rated: Rated,
    is_allowed: A,
}

/// Ours: a word for each key.
pub(in crate::counter) fn gcra(
    settings: &Settings,
    names: &Arc<[String]>,
    _: &Arc<Meter>,
) -> anyhow::Result<impl Subject + use<>> {
    let rated = Rated::of(settings);
    let (rule, clock) = (Gcra::new(rated.burst, rated.rate()?)?, Monotonic::new());
    Ok(Asked {
        keys: Named::new(names, |_| SharedGcra::default()),
        rated,
        is_allowed: move |key: &SharedGcra| key.is_allowed(&rule, clock.now(), 1),
    })
}

/// The peer's: one of its limiters for each key, with the same clock as ours.
#[cfg(feature = "peers")]
pub(in crate::counter) fn governor(
    settings: &Settings,
    names: &Arc<[String]>,
    _: &Arc<Meter>,
) -> anyhow::Result<impl Subject + use<>> {
    use anyhow::Context;
    use governor::clock::MonotonicClock;
    use governor::state::{InMemoryState, NotKeyed};
    use governor::{Quota, RateLimiter};
    use std::num::NonZeroU32;

    let rated = Rated::of(settings);
    let within = |number: u64| u32::try_from(number).ok().and_then(NonZeroU32::new);
    let rate = within(settings.rate).context("-rate is more than governor takes")?;
    let burst = within(rated.burst).context("-burst is more than governor takes")?;
    let quota = Quota::per_second(rate).allow_burst(burst);
    Ok(Asked {
        keys: Named::new(names, |_| RateLimiter::direct_with_clock(quota, MonotonicClock)),
        rated,
        is_allowed: |key: &RateLimiter<NotKeyed, InMemoryState, MonotonicClock>| key.check().is_ok(),
    })
}

impl<L, A> Subject for Asked<L, A>
where
    L: Sync,
    A: Fn(&L) -> bool + Sync,
{
    fn apply(&self, _: usize, key: usize, _: bool) -> anyhow::Result<i64> {
        Ok(i64::from((self.is_allowed)(self.keys.get(key))))
    }

    fn limit(&self, after: Duration) -> Option<i64> {
        Some(self.rated.limit(after))
    }
}
