//! Draws under rules: per-user limits and guarantees.

use super::Pool;
use super::draw::{Draw, draws_max};
use super::drawing::too_few;
use super::people::{Before, Standing};
use super::ruled::{Counted, Ruled};
use super::step::Step;
use crate::by::By;
use crate::catalogue::rules::Rules;
use crate::draw::selector::Selector;
use crate::draw::urn::{Hidden, NotDrawn};
use crate::record::event::Event;
use crate::refusal::Refusal;
use crate::repeats::Repeats;

impl<S: Selector> Pool<S> {
    /// Returns the rules, if there are any.
    pub fn rules(&self) -> Option<&Rules<u32>> {
        self.ruled.as_ref().map(|ruled| &ruled.rules)
    }

    /// Returns the number of users with counts: at most [`USERS_MAX`](crate::USERS_MAX).
    pub fn users(&self) -> usize {
        self.ruled.as_ref().map_or(0, |ruled| ruled.people.len())
    }

    /// Returns a user's counts as of the last time they changed. `None` if the pool has no rules.
    /// O(rules).
    pub fn counted(&self, user: &[u8]) -> Option<Counted> {
        let ruled = self.ruled.as_ref()?;
        let standing = standing_of(ruled, &By { user: Some(user), ..By::default() });
        let misses = standing.misses(&ruled.rules).map(|(_, misses)| misses).collect();
        Some(Counted { limits: standing.used(&ruled.rules), misses })
    }

    /// Returns the standing of a user for a call of `count` draws; `None` if the pool has no rules.
    /// Refuses the call if the user would reach a limit of draws before the last one.
    pub(super) fn standing(&self, by: &By<'_>, count: usize) -> Result<Option<Standing>, Refusal> {
        let Some(ruled) = &self.ruled else { return Ok(None) };
        let limits = ruled.rules.limits().iter().filter(|limit| limit.wins_of.is_none());
        if let Some(max) = limits.map(|limit| limit.max).min().filter(|&max| count as u64 > max) {
            return Err(Refusal::MoreThanLimit { count, max });
        }
        let max = draws_max(ruled.rules.named());
        if count > max {
            return Err(Refusal::Count { count, max });
        }
        match by.user {
            None if ruled.rules.need_users() => return Err(Refusal::NoUser),
            Some(user) if !ruled.people.has_room_for(user, by.now_ms) => {
                return Err(Refusal::TooManyUsers { max: super::people::USERS_MAX });
            }
            _ => {}
        }
        let standing = standing_of(ruled, by);
        match standing.reached_within(&ruled.rules, count) {
            Some(reached) => Err(reached.into()),
            None => Ok(Some(standing)),
        }
    }

    /// Refuses several draws if the state and the user's standing say that not all are possible.
    pub(super) fn check_possible_standing(
        &self,
        standing: &Standing,
        count: usize,
        repeats: Repeats,
    ) -> Result<(), Refusal> {
        let rules = &self.ruled.as_ref().expect("a user has a standing only in a pool that has rules").rules;
        let may_bar = rules.limits().iter().any(|limit| limit.wins_of.is_some());
        let barred = may_bar.then(|| standing.barred(rules));
        let left = self.urn.possible(count, repeats, barred.as_deref());
        too_few(count, left, repeats).map_err(|too_few| {
            let reached =
                standing.next_relief(rules).filter(|_| barred.is_some_and(|barred| !barred.is_empty()));
            reached.map_or(too_few, Refusal::from)
        })?;
        // Weights only fall during a call: if the largest boosts fit now, later draws are never too
        // heavy.
        let boosts = standing.boosts_within(rules, count);
        if self.urn.bears(&boosts) { Ok(()) } else { Err(Refusal::TooHeavy) }
    }

    /// Draws once for a standing that has reached no limit of draws; `hidden` items are excluded. A
    /// refusal follows from the state and the standing, never from the secret.
    pub(super) fn draw_standing(
        &mut self,
        standing: &mut Standing,
        hidden: Option<&Hidden>,
    ) -> Result<Draw, Refusal> {
        let Self { ruled: Some(ruled), urn, numbers, .. } = self else {
            unreachable!("a user has a standing in a pool that has no rules")
        };
        let rules = &ruled.rules;
        let terms = standing.terms(rules);
        let number = self.next_draw;
        let drawn = urn.draw_favouring(&terms.favour(hidden), numbers.of_draw(number));
        let item = match drawn {
            Ok(item) => item,
            Err(NotDrawn::TooHeavy) => return Err(Refusal::TooHeavy),
            Err(NotDrawn::Empty) => {
                let reached = standing.next_relief(rules).filter(|_| terms.bar_something());
                return Err(reached.map_or(Refusal::Empty, Refusal::from));
            }
        };
        standing.count(rules, item);
        Ok(self.made(item))
    }

    /// Makes a draw that gives nothing, because no draw is possible any more for this standing.
    pub(super) fn draw_nothing_standing(&mut self, standing: &mut Standing) -> Draw {
        let ruled = self.ruled.as_ref().expect("a user has a standing only in a pool that has rules");
        standing.count(&ruled.rules, None);
        self.made(None)
    }

    /// Stores the standing after draws.
    pub(super) fn keep_standing(&mut self, by: &By<'_>, standing: Option<Standing>) {
        let (Some(ruled), Some(standing)) = (&mut self.ruled, standing) else { return };
        let (tallies, idle_ms, tracks) = standing.into_parts(&ruled.rules);
        let before = match by.user {
            Some(user) => ruled.people.keep(user, tallies, idle_ms, by.now_ms),
            None => Vec::new(),
        };
        let tracks_before = std::mem::replace(&mut ruled.tracks, tracks);
        self.keep_step(|| Step::Counted(Box::new((before, tracks_before))));
    }

    /// Counts replayed draws for their user.
    #[inline]
    pub(super) fn count_made(&mut self, by: &By<'_>, items: &[Option<u32>]) {
        if self.ruled.is_some() {
            self.count_by_rules(by, items);
        }
    }

    #[cold]
    fn count_by_rules(&mut self, by: &By<'_>, items: &[Option<u32>]) {
        let ruled = self.ruled.as_ref().expect("the caller has seen that there are rules");
        let mut standing = standing_of(ruled, by);
        items.iter().for_each(|item| standing.count(&ruled.rules, *item));
        self.keep_standing(by, Some(standing));
    }

    /// Subtracts wins: pairs of item and number, drawn at the time in `by`.
    pub(super) fn take_back(&mut self, by: &By<'_>, items: impl Iterator<Item = (u32, u64)>) {
        let Some(ruled) = &self.ruled else { return };
        if by.user.is_none_or(|user| ruled.people.tallies(user).is_none()) {
            return;
        }
        // Time 0 keeps each tally in its own window, so newer counts remain.
        let mut standing = standing_of(ruled, &By { now_ms: 0, ..*by });
        items.for_each(|(item, count)| standing.take_back(&ruled.rules, item, count, by.now_ms));
        self.keep_standing(by, Some(standing));
    }

    pub(super) fn undo_counted(&mut self, before: Vec<Before>, tracks: Box<[u64]>) {
        let ruled = self.ruled.as_mut().expect("what was counted was counted by rules");
        before.into_iter().rev().for_each(|before| ruled.people.undo(before));
        ruled.tracks = tracks;
    }

    /// Gives back a user's units, as [`give_back`](Self::give_back) does, and subtracts them from
    /// the limits whose current window contains the time in `by`.
    ///
    /// # Errors
    /// As `give_back`, and [`Refusal::NameLength`].
    pub fn give_back_by(&mut self, by: &By<'_>, id: &str, count: u64) -> Result<(), Refusal> {
        by.check()?;
        let (Some(user), Some(item)) = (by.user, self.urn.find(id)) else { return self.give_back(id, count) };
        let recorded = self.recorder.mark();
        self.give_back(id, count)?;
        if self.staging {
            let now_ms = self.event_time(by);
            self.recorder.back_to(recorded);
            self.recorder.record(&Event::GivenBackBy { user, now_ms, item, count });
        }
        self.take_back(by, [(item, count)].into_iter());
        Ok(())
    }

    /// Returns the time to record for an event: 0 if no rule depends on it.
    pub(super) fn event_time(&self, by: &By<'_>) -> u64 {
        let is_timed = self.ruled.as_ref().is_some_and(|ruled| ruled.rules.are_timed());
        if is_timed && by.user.is_some() { by.now_ms } else { 0 }
    }
}

/// Returns the standing of a caller at the time in `by`.
fn standing_of(ruled: &Ruled, by: &By<'_>) -> Standing {
    let known = by.user.and_then(|user| ruled.people.tallies(user));
    Standing::new(&ruled.rules, known, &ruled.tracks, by.now_ms)
}
