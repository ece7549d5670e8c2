//! Advancing the schedule and expiring reservations.

use super::Pool;
use super::step::Step;
use crate::draw::selector::Selector;
use crate::record::event::Event;
use crate::refusal::Refusal;

impl<S: Selector> Pool<S> {
    /// Advances the schedule to this time, in microseconds since 1970: units are released or lapse.
    /// Returns whether anything was due. A time in the past changes nothing. O(1) if nothing is
    /// due, otherwise O(log n) for each item with a due event, however long the last call was ago.
    /// Call it before anything else at this time.
    ///
    /// See [`Schedule`](crate::Schedule) for an example.
    pub fn advance(&mut self, now_us: u64) -> bool {
        self.advance_to(now_us / 1000)
    }

    pub(super) fn advance_to(&mut self, now_ms: u64) -> bool {
        let Some(advance) = self.urn.advance(now_ms) else { return false };
        self.note(|| Step::Advanced(Box::new(advance)), &Event::Advanced { now_ms });
        true
    }

    /// Does all that is due by this time, in order: expires reservations and advances the schedule.
    /// Call it before anything else at this time. Microseconds since 1970. O(log n) for each
    /// reserved draw that returns to stock.
    pub fn catch_up(&mut self, now_us: u64) {
        self.catch_up_some(now_us, usize::MAX);
    }

    /// As [`catch_up`](Self::catch_up), but stops once at least `draws_max` draws have returned to
    /// stock. Returns whether everything is done. Until then, make no other call for this time. For
    /// a caller that catches up in parts while idle.
    pub fn catch_up_some(&mut self, now_us: u64, draws_max: usize) -> bool {
        let mut draws = 0;
        while let Some(over) = self.next_over(now_us) {
            if draws >= draws_max {
                return false;
            }
            let (until_us, count) = (over.until_us, over.draws.len());
            // Units returned before a window ends lapse with it; units returned later do not.
            self.advance_to(until_us.saturating_sub(1) / 1000);
            let expired = self.expire_one(now_us);
            assert!(
                expired.is_some(),
                "the reservation that was over at {until_us} has not ended at {now_us}"
            );
            draws += count;
        }
        self.advance(now_us);
        true
    }

    /// Returns the next deadline of a reservation or event of the schedule. Microseconds since
    /// 1970. O(1).
    pub fn next_due(&self) -> Option<u64> {
        let release_us = self.urn.next_release_ms().map(|at_ms| at_ms.saturating_mul(1000));
        [self.next_until(), release_us].into_iter().flatten().min()
    }

    /// Replaces a refusal for lack of stock by [`Refusal::EmptyUntil`] if the schedule has more
    /// events.
    pub(super) fn unless_more_comes(&self, refusal: Refusal) -> Refusal {
        self.urn.next_release_ms().map_or(refusal, |at_ms| Refusal::EmptyUntil { at_ms })
    }
}
