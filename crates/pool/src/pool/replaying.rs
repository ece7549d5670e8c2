//! Replaying the events of a log.

use super::Pool;
use super::divergence::Divergence;
use super::draw::Draw;
use crate::by::By;
use crate::catalogue::item::Item;
use crate::draw::selector::Selector;
use crate::ending::Ending;
use crate::record::event::{Asked, Event};
use crate::refusal::Refusal;
use crate::repeats::Repeats;

impl<S: Selector> Pool<S> {
    /// Applies an event. Takes the results of draws as recorded, without computing them; some
    /// nanoseconds a draw. Staging must be off.
    ///
    /// # Errors
    /// [`Divergence`]; do not use the pool after that.
    #[inline]
    pub fn apply(&mut self, event: &Event<'_>) -> Result<(), Divergence> {
        match event {
            Event::Drew(item) => self.apply_drew(*item),
            Event::DrewDifferent { items } => {
                items.iter().try_for_each(|item| self.take(*item).map(|_| ()))?;
                self.count_made(&By::default(), items);
                Ok(())
            }
            Event::Reserved { items, repeats, until_us } => {
                let (items, until_us) = (items.clone(), Some(*until_us));
                self.take_asked(&Asked { by: By::default(), items, repeats: *repeats, until_us })
            }
            Event::Asked(asked) => self.take_asked(asked),
            other => self.apply_rare(other),
        }
    }

    /// Applies a draw, as [`apply`](Self::apply) does.
    #[inline]
    pub(crate) fn apply_drew(&mut self, item: Option<u32>) -> Result<(), Divergence> {
        self.take(item)?;
        self.count_made(&By::default(), &[item]);
        Ok(())
    }

    /// As [`apply`](Self::apply), but computes each draw and compares it with the record.
    ///
    /// # Errors
    /// As `apply`; and [`Divergence::OtherItem`].
    pub fn verify(&mut self, event: &Event<'_>) -> Result<(), Divergence> {
        let refused = |draws| move |refusal: Refusal| Divergence::Refused { draws, refusal };
        let begin = self.next_draw;
        let mut draws = Vec::new();
        match event {
            Event::Drew(item) => {
                let draw = self.draw().map_err(|empty| refused(begin)(empty.into()))?;
                same(&[draw], &[*item])
            }
            Event::DrewDifferent { items } => {
                self.draw_many(items.len(), Repeats::Excluded, &mut draws).map_err(refused(begin))?;
                same(&draws, items)
            }
            Event::Reserved { items, repeats, until_us } => {
                let reserved = self.reserve(items.len(), *repeats, *until_us).map_err(refused(begin))?;
                same(&reserved.draws, items)
            }
            Event::Asked(asked) => {
                self.ask_again(asked, &mut draws).map_err(refused(begin))?;
                same(&draws, &asked.items)
            }
            other => self.apply_rare(other),
        }
    }

    /// Panics if staging is on: replayed steps must not be undone.
    pub(crate) fn expect_unstaged(&self) {
        assert!(!self.staging, "what is in a log is done again while {} steps are staged", self.steps.len());
    }

    #[inline]
    fn take(&mut self, item: Option<u32>) -> Result<Draw, Divergence> {
        // Only in debug builds: a replay runs this for each draw, and asserts it for each frame.
        debug_assert!(!self.staging, "what is in a log is not staged");
        let number = self.next_draw;
        if let Some(item) = item {
            self.check_item(item)?;
            if !self.urn.take(item) {
                return Err(Divergence::NoneLeft { draw: number, item });
            }
        }
        self.next_draw += 1;
        Ok(Draw { number, item })
    }

    fn take_asked(&mut self, asked: &Asked<'_>) -> Result<(), Divergence> {
        let draws: Result<Vec<Draw>, _> = asked.items.iter().map(|item| self.take(*item)).collect();
        self.asked_again(asked, &draws?).map_err(|refusal| self.refused(refusal))
    }

    fn apply_rare(&mut self, event: &Event<'_>) -> Result<(), Divergence> {
        self.expect_unstaged();
        if let Event::Changed { item, .. }
        | Event::Removed { item }
        | Event::GivenBack { item, .. }
        | Event::GivenBackBy { item, .. } = event
        {
            self.check_item(*item)?;
        }
        let done = match event {
            Event::Changed { item, weight, stock } => self.urn.alter(*item, *weight, *stock).map(|_| ()),
            Event::Added { id, weight, stock } => {
                self.add(&Item { id: (*id).into(), weight: *weight, stock: *stock })
            }
            Event::Removed { item } => {
                let id = self.urn.id(*item).to_owned();
                self.remove(&id)
            }
            Event::GivenBack { item, count } => {
                let id = self.urn.id(*item).to_owned();
                self.give_back(&id, *count)
            }
            Event::GivenBackBy { user, now_ms, item, count } => {
                let id = self.urn.id(*item).to_owned();
                self.give_back_by(&By { user: Some(user), now_ms: *now_ms, request: None }, &id, *count)
            }
            Event::Ended { number, how } => self.end_open(*number, *how),
            Event::Advanced { now_ms } if self.advance_to(*now_ms) => Ok(()),
            Event::Advanced { now_ms } => {
                return Err(Divergence::NothingDue { draws: self.next_draw, now_ms: *now_ms });
            }
            Event::Epoch { client_seed, after } => self.begin_epoch(client_seed, after.clone()).map(|_| ()),
            Event::Drew(_) | Event::DrewDifferent { .. } | Event::Reserved { .. } | Event::Asked(_) => {
                unreachable!("draws are done before, and are not {event:?}")
            }
        };
        done.map_err(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refusal) -> Divergence {
        Divergence::Refused { draws: self.next_draw, refusal }
    }

    /// Ends an open reservation. An ended one is an error: a log has each end once.
    fn end_open(&mut self, number: u64, how: Ending) -> Result<(), Refusal> {
        match self.reservation(number) {
            Some(_) => self.end(number, how),
            None => Err(Refusal::NoReservation { number }),
        }
    }

    #[inline]
    fn check_item(&self, item: u32) -> Result<(), Divergence> {
        if self.urn.has(item) { Ok(()) } else { Err(Divergence::NoItem { draws: self.next_draw, item }) }
    }
}

/// Compares computed draws with recorded items.
fn same(draws: &[Draw], items: &[Option<u32>]) -> Result<(), Divergence> {
    assert_eq!(draws.len(), items.len(), "as many are drawn again as were drawn");
    for (draw, &recorded) in draws.iter().zip(items) {
        if draw.item != recorded {
            return Err(Divergence::OtherItem { draw: draw.number, recorded, computed: draw.item });
        }
    }
    Ok(())
}
