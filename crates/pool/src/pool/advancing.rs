//! The schedule: what time brings to the stock, and takes from it.

use super::Pool;
use super::step::Step;
use crate::draw::selector::Selector;
use crate::record::event::Event;
use crate::refusal::Refusal;

impl<S: Selector> Pool<S> {
    /// Does what the schedule says until this moment, in microseconds since 1970: units come to the stock, or lapse. Whether anything
    /// was due. A moment that has passed changes nothing. O(1) if nothing is due, otherwise O(log n) for each item for which something
    /// is, however long nobody has looked; to be asked before whatever else is done at this time.
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

    /// Does what time has brought by now, in its order: reservations that are over end, and the schedule goes on. To be asked before
    /// whatever else is done at this time. Microseconds since 1970. O(log n) for each draw that was set aside and comes back.
    pub fn catch_up(&mut self, now_us: u64) {
        self.catch_up_some(now_us, usize::MAX);
    }

    /// As [`catch_up`](Self::catch_up), as far as the reservation by which so many draws have come back; whether that was all. As long as
    /// something is left, nothing else may be done at this time: for whoever has nothing else to do, and does it in parts.
    pub fn catch_up_some(&mut self, now_us: u64, draws_max: usize) -> bool {
        let mut draws = 0;
        while let Some(over) = self.next_over(now_us) {
            if draws >= draws_max {
                return false;
            }
            let (until_us, count) = (over.until_us, over.draws.len());
            // What is given back by the end of a window lapses with it, and what comes back later does not.
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

    /// When time changes something next: a reservation is over, or the schedule goes on. Microseconds since 1970. O(1).
    pub fn next_due(&self) -> Option<u64> {
        let release_us = self.urn.next_release_ms().map(|at_ms| at_ms.saturating_mul(1000));
        [self.next_until(), release_us].into_iter().flatten().min()
    }

    /// Why nothing is drawn for want of stock, or when the schedule goes on if it does.
    pub(super) fn unless_more_comes(&self, refusal: Refusal) -> Refusal {
        self.urn.next_release_ms().map_or(refusal, |at_ms| Refusal::EmptyUntil { at_ms })
    }
}
