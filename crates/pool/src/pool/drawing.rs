//! Single draws, and several draws in one call.
//!
//! Draws follow from the secret and their numbers, so a refusal must not reveal anything about
//! numbers that are drawn later. A call is refused in two cases only:
//!
//! * The state alone decides, before any number is computed: there are too few units or different
//!   items, a limit of draws would be reached during the call, or guarantees may make weights too
//!   large.
//! * Its first draw is not possible. The state decides this as well: an urn that can give nothing
//!   ignores the number.
//!
//! Whether a later draw is possible may depend on the results of the earlier ones. In that case the
//! call is not refused: its draws are made, and those that are impossible give nothing. If a
//! refusal undid the earlier draws, it would reveal where the last prize lies, and the next caller
//! would draw the same numbers.
//!
//! Nothing else that a client observes reveals later draws either:
//!
//! | what | follows from |
//! |---|---|
//! | odds, stock, history, counts of users | past draws |
//! | a repeated request | its kept draws; if refused, what it asks for |
//! | a cancelled reservation | its units return to stock, its numbers are not reused |
//! | room for reservations, requests, users and log bytes | counts, before anything is drawn |
//! | the duration of a refusal | the state: no number is computed |
//! | the duration of draws | these draws; computing numbers ahead takes constant time |
//!
//! Only a program that undoes draws, with [`revert`](Pool::revert) or [`back_to`](Pool::back_to),
//! can predict the next ones.

use super::Pool;
use super::draw::{DRAWS_MAX, Draw};
use super::people::Standing;
use crate::by::By;
use crate::draw::selector::Selector;
use crate::draw::urn::Hidden;
use crate::record::event::{Asked, Event};
use crate::refusal::{Empty, Refusal};
use crate::repeats::Repeats;

/// Maximum size of a batch of lookups.
const TOGETHER_MAX: usize = 64;
/// Size of the first batch of lookups.
const TOGETHER_FIRST: usize = 8;

impl<S: Selector> Pool<S> {
    /// Draws once, at the speed of the selector and without allocation. If the [rules](Self::rules)
    /// count per user, an anonymous draw is refused: use [`draw_by`](Self::draw_by).
    ///
    /// # Errors
    /// [`Empty`]; a refused draw takes no number.
    #[inline]
    pub fn draw(&mut self) -> Result<Draw, Empty> {
        if self.ruled.is_some() {
            return self.draw_anonymously().map_err(|_| Empty);
        }
        let number = self.next_draw;
        let item = self.draw_item()?;
        Ok(Draw { number, item })
    }

    /// Makes the next draw in a pool without rules.
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

    /// Assigns the next number to a draw with this result.
    pub(super) fn made(&mut self, item: Option<u32>) -> Draw {
        let number = self.next_draw;
        self.next_draw += 1;
        self.keep_draw(item);
        Draw { number, item }
    }

    /// Calls [`draw_item`](Self::draw_item) `count` times, in batches where possible; staging must
    /// be on. When an item sells out, the rest of the batch is looked up again, in a smaller batch.
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

    /// Makes up to `count` draws among items of this total weight, and returns their number.
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

    /// As [`draw`](Self::draw), with the full reason of a refusal.
    #[inline]
    pub(crate) fn draw_or_refuse(&mut self) -> Result<Draw, Refusal> {
        if self.ruled.is_some() {
            return self.draw_anonymously();
        }
        self.draw().map_err(|Empty| self.unless_more_comes(Refusal::Empty))
    }

    #[cold]
    fn draw_anonymously(&mut self) -> Result<Draw, Refusal> {
        let mut drawn = Vec::with_capacity(1);
        self.draw_by(&By::default(), 1, Repeats::Allowed, &mut drawn)?;
        Ok(drawn.pop().expect("a draw that is not refused is there"))
    }

    /// Draws `count` times, or not at all, and appends the draws to `into`. Only the state or the
    /// first draw can refuse the call. A later draw gives nothing if the earlier ones made it
    /// impossible; this happens at limits of wins, and in pools that give a fallback or nothing for
    /// a sold-out item. `count` is 1 to [`DRAWS_MAX`]. If the [rules](Self::rules) name items, the
    /// maximum is 16,777,216 divided by their number, but at least 1,024.
    ///
    /// # Errors
    /// [`Refusal::Count`]; [`Refusal::Empty`], [`Refusal::NotSoMany`] or
    /// [`Refusal::NotSoManyItems`] if too few are left. If the schedule has more events,
    /// [`Refusal::EmptyUntil`] replaces [`Refusal::Empty`] and [`Refusal::NotSoMany`]. A refused
    /// call draws nothing.
    pub fn draw_many(&mut self, count: usize, repeats: Repeats, into: &mut Vec<Draw>) -> Result<(), Refusal> {
        self.draw_by(&By::default(), count, repeats, into)
    }

    /// Draws for a standing, which is `None` only if the pool has no rules.
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

    /// Records the draws of one call as a single event, as replaying them one by one would differ:
    /// they are without repeats, or the last ones were impossible.
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

    /// Refuses several draws if the state says that not all are possible. If none is, the first
    /// draw reports the reason.
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

    /// Makes `count` draws, and returns how many were possible; the rest give nothing.
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
            // Built from bare item numbers: moving a whole draw right after storing its fields
            // would stall on store forwarding.
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
                    // An impossible draw stays impossible for the rest of the call: stock and
                    // limits only shrink.
                    into.extend((given..count).map(|_| self.draw_nothing_standing(standing)));
                    return Ok(given);
                }
            }
        }
        Ok(count)
    }

    /// As [`draw_repeatedly`](Self::draw_repeatedly), but hides each drawn item for the rest of the
    /// call.
    fn draw_different(
        &mut self,
        count: usize,
        mut standing: Option<&mut Standing>,
        into: &mut Vec<Draw>,
    ) -> Result<usize, Refusal> {
        let (rule, mut hidden, mut given) = (self.urn.rule(), Hidden::default(), 0);
        while given < count {
            // After the first draw, an item without tickets is not drawn: hiding it has no effect.
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
        // As in `draw_repeatedly`, an impossible draw stays impossible.
        into.extend((given..count).map(|_| match &mut standing {
            None => self.made(None),
            Some(standing) => self.draw_nothing_standing(standing),
        }));
        Ok(given)
    }
}

/// Returns an error if `left` is less than `wanted`, but not 0: then the first draw reports the
/// reason.
#[inline]
pub(super) fn too_few(wanted: usize, left: usize, repeats: Repeats) -> Result<(), Refusal> {
    match repeats {
        _ if left == 0 || left >= wanted => Ok(()),
        Repeats::Allowed => Err(Refusal::NotSoMany { wanted, left }),
        Repeats::Excluded => Err(Refusal::NotSoManyItems { wanted, left }),
    }
}
