//! Drawing: one, or several at once.
//!
//! Draws follow from the secret and their numbers, so what is refused must not tell of numbers that are drawn later. A call is refused in two
//! cases only:
//!
//! * The state alone says so, before a number is looked at: there are too few units or different items, a limit of draws would be reached on
//!   the way, or guarantees may make weights too large.
//! * Its first draw is not possible. That follows from the state as well: an urn looks at no number where nothing can be given.
//!
//! Whether a later draw is possible may depend on what the first ones have given. Then the call is not refused: its draws are made, and
//! what is not possible any more gives nothing. A refusal behind the first draw, taken back, would say where the last prize lies, and the
//! next caller would draw the same numbers.
//!
//! What else a client can see tells nothing of later draws either:
//!
//! | what | follows from |
//! |---|---|
//! | odds, stock, history, what is counted of users | draws that were made |
//! | a request that is sent again | the draws that are kept of it; refused, from what it asks for |
//! | a reservation that is cancelled | the units come back, the numbers do not |
//! | room for reservations, requests, users and bytes of the log | counts, before anything is drawn |
//! | the time that a refusal takes | the state: no number is looked at |
//! | the time that draws take | the numbers of these draws; those computed ahead take as long whatever they are |
//!
//! Only a program that takes draws back, [`revert`](Pool::revert) or [`back_to`](Pool::back_to), knows what comes next.

use super::Pool;
use super::draw::{DRAWS_MAX, Draw};
use super::people::Standing;
use crate::by::By;
use crate::draw::selector::Selector;
use crate::draw::urn::Hidden;
use crate::record::event::{Asked, Event};
use crate::refusal::{Empty, Refusal};
use crate::repeats::Repeats;

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

    /// Gives the next number to a draw that has given this.
    pub(super) fn made(&mut self, item: Option<u32>) -> Draw {
        let number = self.next_draw;
        self.next_draw += 1;
        self.keep_draw(item);
        Draw { number, item }
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

    /// Draws so many at once, or none of them, and adds them to `into`. The call is refused only for what the state alone says, or for its
    /// first draw. If nothing is left for a later one, and that depends on what the others gave, the later one gives nothing: in pools that
    /// give a fallback or nothing in place of what is sold out, and at limits of wins. 1 to [`DRAWS_MAX`]; where [rules](Self::rules) name items, at most
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
        self.check_possible(count, repeats, standing.as_deref())?;
        let (begin, was_staging) = (into.len(), self.staging);
        let (mark, recorded) = (self.steps.len(), self.recorder.mark());
        self.staging = true;
        let drawn = match repeats {
            Repeats::Allowed => self.draw_repeatedly(count, standing, into),
            Repeats::Excluded => self.draw_different(count, standing, into),
        };
        self.staging = was_staging;
        let (made, steps) = (into.len() - begin, self.steps.len() - mark);
        let given = match drawn {
            Ok(given) => given,
            Err(refusal) => {
                let kept = made + steps;
                assert!(kept == 0, "{count} draws were refused behind {made}, which are {steps} steps");
                return Err(refusal);
            }
        };
        assert!(
            made == count && steps == count && (1..=count).contains(&given),
            "{count} draws of one call are {made}, of which {given} were possible, and {steps} steps"
        );
        if !was_staging {
            self.commit();
        } else if repeats == Repeats::Excluded || given < count {
            self.recorder.back_to(recorded);
            self.record_together(repeats, &into[begin..]);
        }
        Ok(())
    }

    /// Records the draws of one call as one event: those without repeats, or beyond what was possible, give something else alone.
    #[cold]
    fn record_together(&mut self, repeats: Repeats, draws: &[Draw]) {
        let items = draws.iter().map(|draw| draw.item).collect();
        let event = match repeats {
            Repeats::Excluded => Event::DrewDifferent { items },
            Repeats::Allowed => {
                Event::Asked(Box::new(Asked { by: By::default(), items, repeats, until_us: None }))
            }
        };
        self.recorder.record(&event);
    }

    /// Refuses several draws at once if the state says that not all of them are possible. If none is, the first draw says why.
    #[inline]
    fn check_possible(
        &self,
        count: usize,
        repeats: Repeats,
        standing: Option<&Standing>,
    ) -> Result<(), Refusal> {
        if count == 1 {
            return Ok(());
        }
        match standing {
            Some(standing) => self.check_possible_standing(standing, count, repeats),
            None => too_few(count, self.urn.possible(count, repeats, None), repeats),
        }
    }

    /// Makes so many draws, and returns how many were possible; the others give nothing.
    fn draw_repeatedly(
        &mut self,
        count: usize,
        standing: Option<&mut Standing>,
        into: &mut Vec<Draw>,
    ) -> Result<usize, Refusal> {
        let Some(standing) = standing else {
            assert!(self.ruled.is_none() && self.staging, "steps are kept, and rules have a standing");
            let (first, draws) = (self.next_draw, self.steps.draws());
            let drawn = self.draw_items(count);
            let given = self.steps.draws() - draws;
            if drawn.is_err() {
                if given == 0 {
                    return Err(Refusal::Empty);
                }
                (given..count).for_each(|_| _ = self.made(None));
            }
            // All at once from bare numbers: a draw that is moved as a whole right behind the stores of its parts waits for them.
            let drawn = self.steps.drawn_since(draws);
            let (next, kept) = (self.next_draw, drawn.len());
            assert!(
                kept == count && next == first + count as u64,
                "{count} draws from number {first} on are {kept} steps, and the next one is {next}"
            );
            into.extend(drawn.zip(first..).map(|(item, number)| Draw { number, item }));
            return Ok(given);
        };
        for given in 0..count {
            match self.draw_standing(standing, None) {
                Ok(draw) => into.push(draw),
                Err(refusal) if given == 0 => return Err(refusal),
                Err(_) => {
                    // What is impossible stays so for the rest of the call: stock and what limits allow only become less.
                    into.extend((given..count).map(|_| self.draw_nothing_standing(standing)));
                    return Ok(given);
                }
            }
        }
        Ok(count)
    }

    /// As [`draw_repeatedly`](Self::draw_repeatedly), and what has been drawn is hidden from the rest of the call.
    fn draw_different(
        &mut self,
        count: usize,
        mut standing: Option<&mut Standing>,
        into: &mut Vec<Draw>,
    ) -> Result<usize, Refusal> {
        let (rule, mut hidden, mut given) = (self.urn.rule(), Hidden::default(), 0);
        while given < count {
            // Behind the first, what has no tickets is not drawn: nothing would hide it.
            if given > 0 && self.urn.total_weight() == 0 {
                break;
            }
            let draw = match &mut standing {
                None => self.draw().map_err(Refusal::from),
                Some(standing) => self.draw_standing(standing, Some(&hidden)),
            };
            match draw {
                Ok(draw) => {
                    into.push(draw);
                    if let Some(item) = draw.item {
                        self.urn.hide(item);
                        hidden.insert(item);
                    }
                }
                Err(refusal) if given == 0 => return Err(refusal),
                Err(_) => break,
            }
            given += 1;
        }
        self.urn.show(hidden.into_iter(), rule);
        // As in `draw_repeatedly`, what is impossible stays so.
        into.extend((given..count).map(|_| match &mut standing {
            None => self.made(None),
            Some(standing) => self.draw_nothing_standing(standing),
        }));
        Ok(given)
    }
}

/// Refuses more draws than are possible. If none is, the first draw says why.
#[inline]
pub(super) fn too_few(wanted: usize, left: usize, repeats: Repeats) -> Result<(), Refusal> {
    match repeats {
        _ if left == 0 || left >= wanted => Ok(()),
        Repeats::Allowed => Err(Refusal::NotSoMany { wanted, left }),
        Repeats::Excluded => Err(Refusal::NotSoManyItems { wanted, left }),
    }
}
