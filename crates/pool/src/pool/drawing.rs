//! Drawing: one, or several at once.

use super::Pool;
use super::draw::{DRAWS_MAX, Draw};
use super::step::Step;
use crate::event::Event;
use crate::refusal::{Empty, Refusal};
use crate::repeats::Repeats;
use crate::selector::Selector;

impl<S: Selector> Pool<S> {
    /// Draws once. As fast as the selector, with no allocation.
    ///
    /// # Errors
    /// [`Empty`]; then the draw has not taken a number.
    #[inline]
    pub fn draw(&mut self) -> Result<Draw, Empty> {
        let number = self.next_draw;
        let item = self.urn.draw(|bound| self.numbers.below(number, bound))?;
        self.next_draw += 1;
        if self.staging {
            self.steps.push(Step::drew(item));
            self.recorder.drew(item);
        }
        Ok(Draw { number, item })
    }

    /// Draws so many at once, or none of them, and adds them to `into`. 1 to [`DRAWS_MAX`].
    ///
    /// # Errors
    /// [`Refusal::Count`]; and [`Refusal::Empty`] or [`Refusal::NotSoManyItems`] if there are too few: then nothing has been drawn.
    pub fn draw_many(&mut self, count: usize, repeats: Repeats, into: &mut Vec<Draw>) -> Result<(), Refusal> {
        if !(1..=DRAWS_MAX).contains(&count) {
            return Err(Refusal::Count { count, max: DRAWS_MAX });
        }
        let (begin, was_staging) = (into.len(), self.staging);
        let (mark, recorded) = (self.steps.len(), self.recorder.mark());
        self.staging = true;
        let drawn = match repeats {
            Repeats::Allowed => self.draw_repeatedly(count, into),
            Repeats::Excluded => self.draw_different(count, into),
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

    fn draw_repeatedly(&mut self, count: usize, into: &mut Vec<Draw>) -> Result<(), Refusal> {
        for _ in 0..count {
            into.push(self.draw()?);
        }
        Ok(())
    }

    /// What has been drawn is hidden from the rest of the call.
    fn draw_different(&mut self, count: usize, into: &mut Vec<Draw>) -> Result<(), Refusal> {
        let (begin, rule) = (into.len(), self.urn.rule());
        let drawn = (0..count).try_for_each(|drawn| {
            let too_few = Refusal::NotSoManyItems { wanted: count, left: drawn };
            if drawn > 0 && self.urn.total_weight() == 0 {
                return Err(too_few);
            }
            let draw = self.draw().map_err(|empty| if drawn == 0 { empty.into() } else { too_few })?;
            into.push(draw);
            if let Some(item) = draw.item {
                self.urn.hide(item);
            }
            Ok(())
        });
        self.urn.show(into[begin..].iter().filter_map(|draw| draw.item), rule);
        drawn
    }
}
