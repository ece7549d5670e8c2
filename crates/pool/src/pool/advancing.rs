//! The schedule: what time brings to the stock, and takes from it.

use super::Pool;
use super::step::Step;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::rules::Rules;
use crate::selector::Selector;

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

    /// Does what time has brought by now, in its order: reservations that are over end, at most so many of them, and the schedule goes on.
    /// To be asked before whatever else is done at this time. Microseconds since 1970.
    pub fn catch_up(&mut self, now_us: u64, reservations_max: usize) {
        for _ in 0..reservations_max {
            let Some(until_us) = self.next_until().filter(|&until_us| until_us <= now_us) else { break };
            // What is given back before a window ends may lapse with it, and what comes back later does not.
            self.advance_to((until_us / 1000).saturating_sub(1));
            self.expire_one(now_us);
        }
        self.advance(now_us);
    }

    /// When time changes something next: a reservation is over, or the schedule goes on. Microseconds since 1970. O(1).
    pub fn next_due(&self) -> Option<u64> {
        let release_us = self.urn.next_release_ms().map(|at_ms| at_ms.saturating_mul(1000));
        [self.next_until(), release_us].into_iter().flatten().min()
    }

    /// Why nothing is drawn for nobody.
    pub(crate) fn nothing_left(&self) -> Refusal {
        if self.rules().is_some_and(Rules::need_users) {
            return Refusal::NoUser;
        }
        self.empty()
    }

    /// Why nothing is drawn where nothing is left.
    pub(super) fn empty(&self) -> Refusal {
        self.urn.next_release_ms().map_or(Refusal::Empty, |at_ms| Refusal::EmptyUntil { at_ms })
    }
}
