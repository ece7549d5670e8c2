//! Several limits for one request, each shared by threads.

use super::all::{Ask, Request, Verdict};
use super::{Limiter, Shared, Time};
use std::time::Duration;

/// Most limits of one call: tenant, user, route and the like. Each is locked while the next ones
/// are checked.
pub const MAX_TOGETHER: usize = 32;

/// A limiter of any kind that threads share: [`Shared`], a [`SharedGcra`](super::SharedGcra) with
/// [its rule](super::Ruled), or a [`SharedConcurrency`](super::SharedConcurrency) with [the name of
/// a lease](super::Named).
pub trait Lock {
    /// Returns the address: identifies the limiter and defines the lock order.
    fn place(&self) -> usize;

    /// Locks the limiter, and calls `then` once with a request for `amount` units.
    fn with(&self, amount: u64, then: &mut dyn FnMut(&mut dyn Ask));
}

impl<L: Limiter> Lock for Shared<L> {
    fn place(&self) -> usize {
        (&raw const *self).addr()
    }

    fn with(&self, amount: u64, then: &mut dyn FnMut(&mut dyn Ask)) {
        then(&mut Request { limiter: self.limiter(), state: &mut *self.lock(), amount });
    }
}

/// Checks several limits that threads share, each for an amount: either all of them admit the
/// request and count it, or nothing changes.
///
/// All of them are locked before the decision, so no thread sees a partial result, and no request
/// is refused because of one that is refused itself. The lock order is fixed, so callers cannot
/// deadlock. A limit that is named twice is checked once, for the sum of its amounts.
///
/// At most [`MAX_TOGETHER`] limits; more do not compile.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{FixedWindow, Gcra, Monotonic, Rate, Shared, check_all_shared};
///
/// let clock = Monotonic::new();
/// let tenant = Shared::new(FixedWindow::new(1000, Duration::from_hours(24))?);
/// let user = Shared::new(Gcra::new(2, Rate::new(1, Duration::from_hours(1))?)?);
/// assert!(check_all_shared(clock.now(), [(&tenant, 2), (&user, 2)]).is_allowed());
/// assert_eq!(check_all_shared(clock.now(), [(&tenant, 1), (&user, 1)]).decisive, Some(1));
/// assert_eq!(tenant.state().used, 2);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
pub fn check_all_shared<const N: usize>(now: Time, limits: [(&dyn Lock, u64); N]) -> Verdict {
    const { assert!(N <= MAX_TOGETHER) };
    let mut order: [usize; N] = std::array::from_fn(|index| index);
    // Stable: of a limit that is named twice, the first index comes first.
    order.sort_by_key(|index| limits[*index].0.place());
    let mut verdict = Verdict::UNLIMITED;
    descend(now, &limits, &order, &mut verdict);
    verdict
}

/// Locks the first limit, recurses into the others for the verdict, and then applies it to the
/// first.
fn descend(now: Time, limits: &[(&dyn Lock, u64)], order: &[usize], verdict: &mut Verdict) {
    let Some(&index) = order.first() else { return };
    let (limit, _) = limits[index];
    let same = order.iter().take_while(|other| limits[**other].0.place() == limit.place()).count();
    let (named, others) = order.split_at(same);
    let amount = named.iter().fold(0, |sum: u64, name| sum.saturating_add(limits[*name].1));
    limit.with(amount, &mut |request| {
        let wait = request.wait(now);
        verdict.note_wait(index, wait);
        descend(now, limits, others, verdict);
        if verdict.is_allowed() {
            assert_eq!(wait, Some(Duration::ZERO), "all limits have said that there is room");
            request.grant(now);
        }
        verdict.note_remaining(index, request.decision(now, wait).remaining);
    });
}
