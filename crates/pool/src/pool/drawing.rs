//! Drawing: one, or several at once.

use super::Pool;
use super::draw::{DRAWS_MAX, Draw};
use super::people::Standing;
use super::step::Step;
use crate::by::By;
use crate::event::Event;
use crate::refusal::{Empty, Refusal};
use crate::repeats::Repeats;
use crate::selector::Selector;

impl<S: Selector> Pool<S> {
    /// Draws once. As fast as the selector, with no allocation. Where [rules](Self::rules) count what each user does, there is nothing for
    /// nobody: [`draw_by`](Self::draw_by) draws for somebody.
    ///
    /// # Errors
    /// [`Empty`]; then the draw has not taken a number.
    #[inline]
    pub fn draw(&mut self) -> Result<Draw, Empty> {
        if self.ruled.is_some() {
            return self.draw_as_nobody();
        }
        let number = self.next_draw;
        let item = self.urn.draw(self.numbers.of_draw(number))?;
        self.next_draw += 1;
        if self.staging {
            self.steps.push(Step::drew(item));
            self.recorder.drew(item);
        }
        Ok(Draw { number, item })
    }

    #[cold]
    fn draw_as_nobody(&mut self) -> Result<Draw, Empty> {
        let mut drawn = Vec::with_capacity(1);
        self.draw_by(&By::default(), 1, Repeats::Allowed, &mut drawn).map_err(|_| Empty)?;
        drawn.pop().ok_or(Empty)
    }

    /// Draws so many at once, or none of them, and adds them to `into`. 1 to [`DRAWS_MAX`].
    ///
    /// # Errors
    /// [`Refusal::Count`]; and [`Refusal::Empty`] or [`Refusal::NotSoManyItems`] if there are too few: then nothing has been drawn.
    pub fn draw_many(&mut self, count: usize, repeats: Repeats, into: &mut Vec<Draw>) -> Result<(), Refusal> {
        self.draw_by(&By::default(), count, repeats, into)
    }

    /// Draws for somebody who stands like this, if there are rules.
    pub(super) fn draw_all(
        &mut self,
        count: usize,
        repeats: Repeats,
        standing: Option<&mut Standing>,
        into: &mut Vec<Draw>,
    ) -> Result<(), Refusal> {
        if !(1..=DRAWS_MAX).contains(&count) {
            return Err(Refusal::Count { count, max: DRAWS_MAX });
        }
        let (begin, was_staging) = (into.len(), self.staging);
        let (mark, recorded) = (self.steps.len(), self.recorder.mark());
        self.staging = true;
        let drawn = match repeats {
            Repeats::Allowed => self.draw_repeatedly(count, standing, into),
            Repeats::Excluded => self.draw_different(count, standing, into),
        };
        self.staging = was_staging;
        if drawn.is_err() {
            into.truncate(begin);
            self.revert_to(mark);
            self.recorder.back_to(recorded);
        } else if !was_staging {
            self.commit();
        } else if repeats == Repeats::Excluded {
            let items = into[begin..].iter().map(|draw| draw.item).collect();
            self.recorder.back_to(recorded);
            self.recorder.record(&Event::DrewDifferent { items });
        }
        drawn
    }

    fn draw_repeatedly(
        &mut self,
        count: usize,
        standing: Option<&mut Standing>,
        into: &mut Vec<Draw>,
    ) -> Result<(), Refusal> {
        let Some(standing) = standing else {
            return (0..count).try_for_each(|_| {
                into.push(self.draw()?);
                Ok(())
            });
        };
        (0..count).try_for_each(|_| {
            into.push(self.draw_standing(standing, &[])?);
            Ok(())
        })
    }

    /// What has been drawn is hidden from the rest of the call.
    fn draw_different(
        &mut self,
        count: usize,
        mut standing: Option<&mut Standing>,
        into: &mut Vec<Draw>,
    ) -> Result<(), Refusal> {
        let (rule, mut hidden) = (self.urn.rule(), Vec::new());
        let drawn = (0..count).try_for_each(|drawn| {
            let too_few = Refusal::NotSoManyItems { wanted: count, left: drawn };
            if drawn > 0 && self.urn.total_weight() == 0 {
                return Err(too_few);
            }
            let draw = match &mut standing {
                None => self.draw().map_err(Refusal::from),
                Some(standing) => self.draw_standing(standing, &hidden),
            };
            let draw = draw.map_err(|refusal| match refusal {
                Refusal::Empty if drawn > 0 => too_few,
                refusal => refusal,
            })?;
            into.push(draw);
            if let Some(item) = draw.item {
                self.urn.hide(item);
                hidden.push(item);
            }
            Ok(())
        });
        self.urn.show(hidden.into_iter(), rule);
        drawn
    }
}
