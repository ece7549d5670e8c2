//! Draws for a named user or under a request ID.

use super::Pool;
use super::draw::Draw;
use super::requests::Request;
use super::reservation::{RESERVATIONS_MAX, RESERVED_DRAWS_MAX, Reservation};
use super::step::Step;
use crate::by::By;
use crate::draw::selector::Selector;
use crate::record::event::{Asked, Event};
use crate::refusal::Refusal;
use crate::repeats::Repeats;

/// A request for draws.
#[derive(Debug, Clone, Copy)]
struct Wish<'a> {
    by: By<'a>,
    count: usize,
    repeats: Repeats,
    /// Deadline of the reservation, if the draws are to be reserved.
    until_us: Option<u64>,
}

impl<S: Selector> Pool<S> {
    /// As [`draw_many`](Self::draw_many), for a caller. A repeated request gets its first answer
    /// again and draws nothing, if it is among the last [`REQUESTS_KEPT`](crate::REQUESTS_KEPT).
    /// Refused requests are not kept.
    ///
    /// ```
    /// use tidemark_pool::selector::WideTree;
    /// use tidemark_pool::{By, Catalogue, Item, Pool, Repeats, Secret};
    ///
    /// let catalogue = Catalogue::new(vec![Item::limited("car", 1, 1), Item::limited("mug", 9, 9)]).unwrap();
    /// let mut pool = Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
    /// let (mut first, mut again) = (Vec::new(), Vec::new());
    /// pool.draw_by(&By::request(b"order 17"), 2, Repeats::Allowed, &mut first).unwrap();
    /// // No answer has come: who asks again gets no second prize.
    /// pool.draw_by(&By::request(b"order 17"), 2, Repeats::Allowed, &mut again).unwrap();
    /// assert_eq!((first, pool.next_draw()), (again, 2));
    /// ```
    ///
    /// # Errors
    /// As `draw_many`; [`Refusal::NameLength`]; [`Refusal::OtherRequest`] if the request with this
    /// ID asked for something else.
    pub fn draw_by(
        &mut self,
        by: &By<'_>,
        count: usize,
        repeats: Repeats,
        into: &mut Vec<Draw>,
    ) -> Result<(), Refusal> {
        self.ask(&Wish { by: *by, count, repeats, until_us: None }, into).map(|_| ())
    }

    /// As [`reserve`](Self::reserve), for a caller. A repeated request gets its first answer again,
    /// even if the reservation has ended since.
    ///
    /// # Errors
    /// As `reserve` and [`draw_by`](Self::draw_by).
    pub fn reserve_by(
        &mut self,
        by: &By<'_>,
        count: usize,
        repeats: Repeats,
        until_us: u64,
    ) -> Result<Reservation, Refusal> {
        let mut draws = Vec::new();
        let wish = Wish { by: *by, count, repeats, until_us: Some(until_us) };
        let (until_us, drawn_ms) = self.ask(&wish, &mut draws)?;
        let until_us = until_us.expect("the same request has set its draws aside until a time");
        let user = by.user.map(Box::from);
        Ok(Reservation { draws: draws.into(), until_us, user, drawn_ms })
    }

    /// Draws, or repeats the answer of a kept request. Returns the reservation's deadline and the
    /// time of the draw.
    fn ask(&mut self, wish: &Wish<'_>, into: &mut Vec<Draw>) -> Result<(Option<u64>, u64), Refusal> {
        wish.by.check()?;
        if let Some(before) = self.requested(&wish.by) {
            wish.check_same(before)?;
            into.extend(self.requests.draws(before));
            return Ok((before.until_us, before.drawn_ms));
        }
        if wish.until_us.is_some() {
            self.check_room_aside(wish.count)?;
        }
        let mut standing = self.standing(&wish.by, wish.count)?;
        let (begin, recorded) = (into.len(), self.recorder.mark());
        self.draw_all(wish.count, wish.repeats, standing.as_mut(), into).map_err(
            |refusal| match refusal {
                refusal @ (Refusal::Empty | Refusal::NotSoMany { .. }) => self.unless_more_comes(refusal),
                refusal => refusal,
            },
        )?;
        if self.staging && (!wish.by.is_anonymous() || wish.until_us.is_some()) {
            let items = into[begin..].iter().map(|draw| draw.item).collect();
            self.recorder.back_to(recorded);
            self.recorder.record(&wish.event(self.event_time(&wish.by), items));
        }
        self.keep_standing(&wish.by, standing);
        self.keep_asked(wish, &into[begin..]);
        Ok((wish.until_us, self.event_time(&wish.by)))
    }

    /// Checks that `count` more draws can be reserved.
    fn check_room_aside(&self, count: usize) -> Result<(), Refusal> {
        if self.reservations.len() >= RESERVATIONS_MAX {
            return Err(Refusal::TooManyReservations { max: RESERVATIONS_MAX });
        }
        if self.reservations.draws().saturating_add(count) > RESERVED_DRAWS_MAX {
            return Err(Refusal::TooManySetAside { count, max: RESERVED_DRAWS_MAX });
        }
        Ok(())
    }

    /// Returns the kept request with the caller's request ID.
    fn requested(&self, by: &By<'_>) -> Option<&Request> {
        by.request.and_then(|id| self.requests.find(id))
    }

    /// Keeps the request, and opens the reservation.
    fn keep_asked(&mut self, wish: &Wish<'_>, draws: &[Draw]) {
        let Some(first) = draws.first().map(|draw| draw.number) else { return };
        if wish.by.request.is_some() {
            let by = By { now_ms: self.event_time(&wish.by), ..wish.by };
            let request = Request::new(&by, first, wish.repeats, wish.until_us);
            let forgotten = self.requests.keep(request, draws.iter().map(|draw| draw.item));
            self.keep_step(|| Step::Requested(forgotten));
        }
        if let Some(until_us) = wish.until_us {
            self.keep_step(|| Step::Reserved(first));
            let (user, drawn_ms) = (wish.by.user.map(Box::from), self.event_time(&wish.by));
            self.reservations.open(Reservation { draws: draws.into(), until_us, user, drawn_ms });
        }
    }

    /// Replays a request whose draws were already taken.
    pub(super) fn asked_again(&mut self, asked: &Asked<'_>, draws: &[Draw]) -> Result<(), Refusal> {
        let Asked { by, items, repeats, until_us } = asked;
        let wish = Wish { by: *by, count: items.len(), repeats: *repeats, until_us: *until_us };
        if self.requested(by).is_some() {
            // A log has no events of repeated requests.
            return Err(wish.other_request());
        }
        self.count_made(by, items);
        self.keep_asked(&wish, draws);
        Ok(())
    }

    /// Replays a request by drawing again.
    pub(super) fn ask_again(&mut self, asked: &Asked<'_>, into: &mut Vec<Draw>) -> Result<(), Refusal> {
        let Asked { by, items, repeats, until_us } = asked;
        let wish = Wish { by: *by, count: items.len(), repeats: *repeats, until_us: *until_us };
        if self.requested(by).is_some() {
            return Err(wish.other_request());
        }
        self.ask(&wish, into).map(|_| ())
    }
}

impl<'a> Wish<'a> {
    /// Checks that the earlier request asked for the same.
    fn check_same(&self, before: &Request) -> Result<(), Refusal> {
        let is_same = before.user.as_deref() == self.by.user
            && before.count as usize == self.count
            && before.repeats == self.repeats
            && before.until_us.is_some() == self.until_us.is_some();
        if is_same { Ok(()) } else { Err(self.other_request()) }
    }

    #[cold]
    fn other_request(&self) -> Refusal {
        let id = self.by.request.expect("only a request with an id is known from before");
        let id = String::from_utf8_lossy(id);
        Refusal::OtherRequest { id: id.into() }
    }

    fn event(&self, now_ms: u64, items: Vec<Option<u32>>) -> Event<'a> {
        let Self { by, repeats, until_us, .. } = *self;
        match until_us {
            Some(until_us) if by.is_anonymous() => Event::Reserved { items, repeats, until_us },
            _ => Event::Asked(Box::new(Asked { by: By { now_ms, ..by }, items, repeats, until_us })),
        }
    }
}
