//! Drawing: one, or several at once.

use super::Pool;
use super::draw::{DRAWS_MAX, Draw};
use super::people::Standing;
use crate::by::By;
use crate::event::Event;
use crate::refusal::{Empty, Refusal};
use crate::repeats::Repeats;
use crate::selector::Selector;
use crate::urn::Hidden;

/// How many items are looked for together at most,
const TOGETHER_MAX: usize = 64;
/// and at first.
const TOGETHER_FIRST: usize = 8;

impl<S: Selector> Pool<S> {
    /// Draws once. As fast as the selector, with no allocation. Where [rules](Self::rules) count what each user does, there is nothing for
    /// nobody: [`draw_by`](Self::draw_by) draws for somebody.
    ///
    /// # Errors
    /// [`Empty`]; then the draw has not taken a number.
    #[inline]
    pub fn draw(&mut self) -> Result<Draw, Empty> {
        if self.ruled.is_some() {
            return self.draw_as_nobody().map_err(|_| Empty);
        }
        let number = self.next_draw;
        let item = self.draw_item()?;
        Ok(Draw { number, item })
    }

    /// What the next draw gives, where nothing is counted of users.
    #[inline]
    fn draw_item(&mut self) -> Result<Option<u32>, Empty> {
        let item = match self.urn.lasting_weight() {
            Some(weight) => self.urn.draw_below(self.numbers.below(self.next_draw, weight))?,
            None => self.urn.draw(self.numbers.of_draw(self.next_draw))?,
        };
        self.next_draw += 1;
        self.keep_draw(item);
        Ok(item)
    }

    /// As [`draw_item`](Self::draw_item) so often, while steps are kept. Several items are looked for together where that can be: whenever
    /// something is sold out, what was found behind it is looked for anew, and fewer together.
    fn draw_items(&mut self, count: usize) -> Result<(), Empty> {
        let (mut left, mut together) = (count, TOGETHER_FIRST);
        while left > 0 {
            let Some(weight) = self.urn.lasting_weight() else {
                self.draw_item()?;
                left -= 1;
                continue;
            };
            let wanted = together.min(left);
            let drawn = self.draw_together(wanted, weight)?;
            left -= drawn;
            together = if drawn < wanted { drawn } else { TOGETHER_MAX.min(2 * together) };
        }
        Ok(())
    }

    /// Draws so many, or fewer, among items of this weight.
    fn draw_together(&mut self, count: usize, weight: u64) -> Result<usize, Empty> {
        let Self { urn, numbers, next_draw, steps, recorder, .. } = self;
        let (mut points, mut items) = ([0; TOGETHER_MAX], [0; TOGETHER_MAX]);
        let (points, items) = (&mut points[..count], &mut items[..count]);
        for (point, draw) in points.iter_mut().zip(*next_draw..) {
            *point = numbers.below(draw, weight);
        }
        urn.draw_each(points, items, |item| {
            *next_draw += 1;
            steps.drew(item);
            recorder.drew(item);
        })
    }

    /// As [`draw`](Self::draw), and says why nothing is drawn.
    #[inline]
    pub(crate) fn draw_or_refuse(&mut self) -> Result<Draw, Refusal> {
        if self.ruled.is_some() {
            return self.draw_as_nobody();
        }
        self.draw().map_err(|Empty| self.unless_more_comes(Refusal::Empty))
    }

    #[cold]
    fn draw_as_nobody(&mut self) -> Result<Draw, Refusal> {
        let mut drawn = Vec::with_capacity(1);
        self.draw_by(&By::default(), 1, Repeats::Allowed, &mut drawn)?;
        Ok(drawn.pop().expect("a draw that is not refused is there"))
    }

    /// Draws so many at once, or none of them, and adds them to `into`. 1 to [`DRAWS_MAX`]; where [rules](Self::rules) name items, at most
    /// 16,777,216 divided by how many they name, but always 1,024.
    ///
    /// # Errors
    /// [`Refusal::Count`]; and [`Refusal::Empty`], [`Refusal::NotSoMany`] or [`Refusal::NotSoManyItems`] if there are too few: then nothing
    /// has been drawn. Where the schedule goes on, [`Refusal::EmptyUntil`] in place of the first two.
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
            assert!(self.ruled.is_none() && self.staging, "steps are kept, and rules have a standing");
            let (first, draws) = (self.next_draw, self.steps.draws());
            self.draw_items(count).map_err(|Empty| too_few(count, self.steps.draws() - draws))?;
            // All at once from bare numbers: a draw that is moved as a whole right behind the stores of its parts waits for them.
            let drawn = self.steps.drawn_since(draws);
            let (next, kept) = (self.next_draw, drawn.len());
            assert!(
                kept == count && next == first + count as u64,
                "{count} draws from number {first} on are {kept} steps, and the next one is {next}"
            );
            into.extend(drawn.zip(first..).map(|(item, number)| Draw { number, item }));
            return Ok(());
        };
        (0..count).try_for_each(|drawn| {
            let draw = self.draw_standing(standing, None).map_err(|refusal| match refusal {
                Refusal::Empty => too_few(count, drawn),
                refusal => refusal,
            })?;
            into.push(draw);
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
        let (rule, mut hidden) = (self.urn.rule(), Hidden::default());
        let drawn = (0..count).try_for_each(|drawn| {
            let too_few = Refusal::NotSoManyItems { wanted: count, left: drawn };
            if drawn > 0 && self.urn.total_weight() == 0 {
                return Err(too_few);
            }
            let draw = match &mut standing {
                None => self.draw().map_err(Refusal::from),
                Some(standing) => self.draw_standing(standing, Some(&hidden)),
            };
            let draw = draw.map_err(|refusal| match refusal {
                Refusal::Empty if drawn > 0 => too_few,
                refusal => refusal,
            })?;
            into.push(draw);
            if let Some(item) = draw.item {
                self.urn.hide(item);
                hidden.insert(item);
            }
            Ok(())
        });
        self.urn.show(hidden.into_iter(), rule);
        drawn
    }
}

/// Why so many are not drawn where so many are possible.
fn too_few(wanted: usize, left: usize) -> Refusal {
    if left == 0 { Refusal::Empty } else { Refusal::NotSoMany { wanted, left } }
}
