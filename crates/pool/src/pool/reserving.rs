//! Setting draws aside, and what becomes of them.

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
    /// Draws as [`draw_many`](Self::draw_many) does, and sets aside what was drawn until this time.
    ///
    /// # Errors
    /// As `draw_many`; [`Refusal::TooManyReservations`] and [`Refusal::TooManySetAside`].
    pub fn reserve(&mut self, count: usize, repeats: Repeats, until_us: u64) -> Result<Reservation, Refusal> {
        self.reserve_by(&By::default(), count, repeats, until_us)
    }

    /// Ends a reservation: its draws count. Done once, however often it is asked for. It reads no clock: what is over by then is to be
    /// [ended](Self::catch_up) before.
    ///
    /// # Errors
    /// [`Refusal::Ended`] if it has ended in another way, [`Refusal::NoReservation`] if there is none of this number or it ended long ago.
    pub fn confirm(&mut self, number: u64) -> Result<(), Refusal> {
        self.end(number, Ending::Confirmed)
    }

    /// Ends a reservation: what was drawn is in stock again; of items that were removed meanwhile nothing comes back. Done once, however
    /// often it is asked for.
    ///
    /// # Errors
    /// As [`confirm`](Self::confirm).
    pub fn cancel(&mut self, number: u64) -> Result<(), Refusal> {
        self.end(number, Ending::Cancelled)
    }

    /// Ends the reservation whose time has been over for longest, if any is by now: what was drawn is in stock again. Says its number.
    /// O(log n); to be asked until there is none, before whatever else is done at this time.
    pub fn expire_one(&mut self, now_us: u64) -> Option<u64> {
        let number = self.next_over(now_us)?.number();
        let ended = self.end(number, Ending::Expired);
        ended.unwrap_or_else(|refusal| panic!("reservation {number} is open and over: {refusal}"));
        Some(number)
    }

    /// The reservation whose time has been over for longest, if any is by now.
    pub(super) fn next_over(&self, now_us: u64) -> Option<&Reservation> {
        self.reservations.first_over(now_us)
    }

    /// How many reservations are over by now, and have not ended. O(1) for each.
    pub fn overdue(&self, now_us: u64) -> usize {
        self.reservations.overdue(now_us)
    }

    /// When the next reservation is over, if there is any. Microseconds since 1970. O(1).
    pub fn next_until(&self) -> Option<u64> {
        self.reservations.next_until()
    }

    /// A reservation that has not ended.
    pub fn reservation(&self, number: u64) -> Option<&Reservation> {
        self.reservations.get(number)
    }

    /// How a reservation has ended, if it was one of the last [`ENDED_KEPT`](crate::ENDED_KEPT).
    pub fn ending(&self, number: u64) -> Option<Ending> {
        self.reservations.ending(number)
    }

    /// How many units of an item are set aside. They count as drawn.
    pub fn held(&self, item: u32) -> u64 {
        self.reservations.held(item)
    }

    /// The reservations that have not ended, in the order of their numbers.
    pub fn reservations(&self) -> impl ExactSizeIterator<Item = &Reservation> {
        self.reservations.iter()
    }

    /// Those of them whose numbers are these or above. O(log n).
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
