//! Reserving draws, and confirming, cancelling and expiring reservations.

use super::Pool;
use super::reservation::Reservation;
use super::step::{Ended, Step};
use crate::by::By;
use crate::draw::selector::Selector;
use crate::ending::Ending;
use crate::record::event::Event;
use crate::refusal::Refusal;
use crate::repeats::Repeats;

impl<S: Selector> Pool<S> {
    /// Draws as [`draw_many`](Self::draw_many) does, and holds the draws until `until_us`.
    ///
    /// # Errors
    /// As `draw_many`; [`Refusal::TooManyReservations`] and [`Refusal::TooManySetAside`].
    pub fn reserve(&mut self, count: usize, repeats: Repeats, until_us: u64) -> Result<Reservation, Refusal> {
        self.reserve_by(&By::default(), count, repeats, until_us)
    }

    /// Confirms a reservation: its draws count. Idempotent. It reads no clock, so [end overdue
    /// reservations](Self::catch_up) first.
    ///
    /// # Errors
    /// [`Refusal::Ended`] if it ended in another way; [`Refusal::NoReservation`] if it does not
    /// exist or its ending is no longer kept.
    pub fn confirm(&mut self, number: u64) -> Result<(), Refusal> {
        self.end(number, Ending::Confirmed)
    }

    /// Cancels a reservation: its units return to stock, except those of items removed since.
    /// Idempotent.
    ///
    /// # Errors
    /// As [`confirm`](Self::confirm).
    pub fn cancel(&mut self, number: u64) -> Result<(), Refusal> {
        self.end(number, Ending::Cancelled)
    }

    /// Expires the reservation that has been overdue longest, if any, and returns its number. Its
    /// units return to stock. O(log n). Call it until it returns `None` before any other call for
    /// this time.
    pub fn expire_one(&mut self, now_us: u64) -> Option<u64> {
        let number = self.next_over(now_us)?.number();
        let ended = self.end(number, Ending::Expired);
        ended.unwrap_or_else(|refusal| panic!("reservation {number} is open and over: {refusal}"));
        Some(number)
    }

    /// Returns the reservation that has been overdue longest, if any.
    pub(super) fn next_over(&self, now_us: u64) -> Option<&Reservation> {
        self.reservations.first_over(now_us)
    }

    /// Returns the number of open reservations whose deadline has passed. O(1) for each.
    pub fn overdue(&self, now_us: u64) -> usize {
        self.reservations.overdue(now_us)
    }

    /// Returns the earliest deadline of a reservation, in microseconds since 1970. O(1).
    pub fn next_until(&self) -> Option<u64> {
        self.reservations.next_until()
    }

    /// Returns an open reservation.
    pub fn reservation(&self, number: u64) -> Option<&Reservation> {
        self.reservations.get(number)
    }

    /// Returns how a reservation ended, if it is among the last [`ENDED_KEPT`](crate::ENDED_KEPT).
    pub fn ending(&self, number: u64) -> Option<Ending> {
        self.reservations.ending(number)
    }

    /// Returns the number of reserved units of an item. They count as drawn.
    pub fn held(&self, item: u32) -> u64 {
        self.reservations.held(item)
    }

    /// Returns the open reservations, in the order of their numbers.
    pub fn reservations(&self) -> impl ExactSizeIterator<Item = &Reservation> {
        self.reservations.iter()
    }

    /// Returns the open reservations from this number on. O(log n).
    pub fn reservations_from(&self, number: u64) -> impl Iterator<Item = &Reservation> {
        self.reservations.iter_from(number)
    }

    pub(super) fn end(&mut self, number: u64, ending: Ending) -> Result<(), Refusal> {
        let Some(reservation) = self.reservations.close(number) else {
            return match self.ending(number) {
                Some(how) if how == ending => Ok(()),
                Some(how) => Err(Refusal::Ended { number, how }),
                None => Err(Refusal::NoReservation { number }),
            };
        };
        let mut changes = Vec::new();
        if ending != Ending::Confirmed {
            changes.extend(reservation.items().map(|item| self.urn.put_back(item, 1)));
            let by = By { user: reservation.user.as_deref(), now_ms: reservation.drawn_ms, request: None };
            self.take_back(&by, reservation.items().map(|item| (item, 1)));
        }
        let forgotten = self.reservations.keep(number, ending);
        let ended = || Step::Ended(Box::new(Ended { reservation, changes, forgotten }));
        self.note(ended, &Event::Ended { number, how: ending });
        Ok(())
    }

    pub(super) fn undo_reserved(&mut self, number: u64) {
        let closed = self.reservations.close(number);
        assert!(closed.is_some(), "reservation {number} is undone, and is not open");
    }

    pub(super) fn undo_ended(&mut self, ended: Ended) {
        let Ended { reservation, changes, forgotten } = ended;
        self.reservations.undo_keep(reservation.number(), forgotten);
        changes.iter().rev().for_each(|change| self.urn.undo(change));
        self.reservations.open(reservation);
    }
}
