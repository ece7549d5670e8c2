//! Which members of a sorted set a watched read looks at, and whether the moves of others leave its answer as it was.
//!
//! Everything here compares the set before some moves with the set after them, of which only the latter is there. What the
//! moves do not name is in both, with the same score.
//!
//! ```text
//! ZRANGE k 2 4:   before │ near . . far │ behind      what moves within one side of the window leaves it as it is,
//!                 0    1 │ 2     3    4 │ 5 …         except that nothing may come to or leave what lies before it
//! ```

use crate::command::sorted_sets::bounds::{Bounds, LexEnd, ScoreEnd};
use crate::command::sorted_sets::range::{Preset, Query};
use crate::value::{SortedSet, sorted_set_order as order};
use crate::watch::touched::Move;
use std::cmp::Ordering;
use std::ops::Range;

/// A member's place in the order.
type Position<'a> = (f64, &'a [u8]);

/// The bounds of a range as a read keeps them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kept {
    /// None: ranks are counted over all members.
    None,
    Scores(ScoreEnd, ScoreEnd),
    /// Members, which stand at these positions of the arguments.
    Members {
        min: usize,
        max: usize,
    },
}

impl Kept {
    /// The bounds; `None` for what cannot be, bounds that cannot be read.
    fn bounds<'a>(self, arg: &impl Fn(usize) -> &'a [u8]) -> Option<Bounds<'a>> {
        match self {
            Self::None => Some(Bounds::Ranks(0, -1)),
            Self::Scores(min, max) => Some(Bounds::Scores(min, max)),
            Self::Members { min, max } => {
                Some(Bounds::Members(LexEnd::parse(arg(min)).ok()?, LexEnd::parse(arg(max)).ok()?))
            }
        }
    }

    /// The bounds by which moves can be told apart; `None` if they cannot.
    fn bounds_of_moves<'a>(
        self,
        arg: &impl Fn(usize) -> &'a [u8],
        moves: &[Move],
        set: Option<&SortedSet>,
    ) -> Option<Bounds<'a>> {
        if self.are_meaningful(moves, set) { self.bounds(arg) } else { None }
    }

    /// Whether what is between the bounds can be told from single members. Ranges of members are defined for sets of one score
    /// only; in others what they answer depends on all that there is.
    fn are_meaningful(self, moves: &[Move], set: Option<&SortedSet>) -> bool {
        let Self::Members { .. } = self else { return true };
        let Some(set) = set else { return false };
        let score = |rank: usize| set.get(rank).map(|(_, score)| score);
        let (Some(lowest), Some(highest)) = (score(0), score(set.len().saturating_sub(1))) else {
            return false;
        };
        let is_one = |score: f64| score.total_cmp(&lowest).is_eq();
        is_one(highest) && moves.iter().flat_map(|moved| [moved.from, moved.to]).flatten().all(is_one)
    }
}

/// The members in a range, or some of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    kept: Kept,
    is_reversed: bool,
    /// How many are passed over, from the end where it begins.
    skipped: usize,
    /// How many are answered behind those; none for all.
    taken: Option<usize>,
}

/// Where a position lies, seen from the end where a window begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Within,
    /// Behind it, outside of the bounds, or nowhere at all.
    Elsewhere,
}

impl Window {
    /// What a range command looks at, whose range begins at argument 2; `None` if that is no window.
    pub(super) fn of(args: &[&[u8]], preset: Preset) -> Option<Self> {
        let range = Query::parse(&args[2..], preset).ok()?;
        let Query { bounds, reverse, limit, .. } = range;
        let kept = match bounds {
            Bounds::Ranks(start, stop) => return Self::of_ranks(start, stop, reverse),
            Bounds::Scores(min, max) => Kept::Scores(min, max),
            Bounds::Members(..) if reverse => Kept::Members { min: 3, max: 2 },
            Bounds::Members(..) => Kept::Members { min: 2, max: 3 },
        };
        let (offset, count) = limit.unwrap_or((0, -1));
        let skipped = usize::try_from(offset).ok()?;
        Some(Self { kept, is_reversed: reverse, skipped, taken: usize::try_from(count).ok() })
    }

    /// Two ranks that both count from the end begin a window there.
    fn of_ranks(start: i64, stop: i64, reverse: bool) -> Option<Self> {
        let (first, last, is_reversed) = match (start < 0, stop < 0) {
            (false, false) => (start, Some(stop), reverse),
            (true, true) => (-1 - stop, Some(-1 - start), !reverse),
            (false, true) if stop == -1 => (start, None, reverse),
            _ => return None,
        };
        let taken = last.map(|last| usize::try_from(last.saturating_sub(first).saturating_add(1)));
        let (skipped, taken) = (usize::try_from(first).ok()?, taken.transpose().ok()?);
        Some(Self { kept: Kept::None, is_reversed, skipped, taken })
    }

    /// Whether moves may have changed which members are answered, their order or their scores.
    ///
    /// If every move stays on one side of the window, what is in it has not moved, and as much lies before it as did; so the
    /// same members are found there.
    pub(super) fn is_touched<'a>(
        &self,
        arg: &impl Fn(usize) -> &'a [u8],
        moves: &[Move],
        set: Option<&SortedSet>,
    ) -> bool {
        let Some(bounds) = self.kept.bounds_of_moves(arg, moves, set) else { return true };
        let (near, far) = set.map_or((None, None), |set| self.edges(&bounds, set));
        let side = |member: &[u8], score: Option<f64>| {
            let Some(score) = score.filter(|score| bounds.contain(member, *score)) else {
                return Side::Elsewhere;
            };
            if far.is_some_and(|far| self.order((score, member), far).is_gt()) {
                Side::Elsewhere
            } else if near.is_some_and(|near| self.order((score, member), near).is_lt()) {
                Side::Before
            } else {
                Side::Within
            }
        };
        moves.iter().any(|Move { member, from, to }| {
            let (from, to) = (side(member, *from), side(member, *to));
            from != to || from == Side::Within
        })
    }

    /// The first and the last member of the window, as far as there are so many.
    fn edges<'s>(
        &self,
        bounds: &Bounds<'_>,
        set: &'s SortedSet,
    ) -> (Option<Position<'s>>, Option<Position<'s>>) {
        let Range { start, end } = bounds.ranks(set);
        let at = |place: usize| {
            let rank = if self.is_reversed { end - 1 - place } else { start + place };
            set.get(rank).map(|(member, score)| (score, member))
        };
        let last = self.taken.and_then(|taken| self.skipped.checked_add(taken)?.checked_sub(1));
        let is_inside = |place: &usize| *place < end - start;
        (Some(self.skipped).filter(is_inside).and_then(at), last.filter(is_inside).and_then(at))
    }

    fn order(&self, one: Position<'_>, other: Position<'_>) -> Ordering {
        if self.is_reversed { order(other, one) } else { order(one, other) }
    }
}

/// How many members are in a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counted {
    kept: Kept,
}

impl Counted {
    /// What a count of scores looks at; `None` for scores that cannot be read.
    pub(super) fn of_scores(args: &[&[u8]]) -> Option<Self> {
        let [_, _, min, max] = args else { return None };
        Some(Self { kept: Kept::Scores(ScoreEnd::parse(min).ok()?, ScoreEnd::parse(max).ok()?) })
    }

    /// What a count of members looks at.
    pub(super) fn of_members() -> Self {
        Self { kept: Kept::Members { min: 2, max: 3 } }
    }

    /// Whether a move may have changed how many there are: one that comes in or goes out.
    pub(super) fn is_touched<'a>(
        &self,
        arg: &impl Fn(usize) -> &'a [u8],
        moves: &[Move],
        set: Option<&SortedSet>,
    ) -> bool {
        let Some(bounds) = self.kept.bounds_of_moves(arg, moves, set) else { return true };
        moves.iter().any(|Move { member, from, to }| {
            let is_in = |score: Option<f64>| score.is_some_and(|score| bounds.contain(member, score));
            is_in(*from) != is_in(*to)
        })
    }
}

/// The place of a member: how many come before it, from either end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(super) is_from_end: bool,
}

impl Place {
    /// Whether moves may have changed the place or the score of `named`: its own, and those from one side of it to the other.
    pub(super) fn is_touched(self, named: &[u8], moves: &[Move], set: Option<&SortedSet>) -> bool {
        if moves.iter().any(|moved| *moved.member == *named) {
            return true;
        }
        // Without a move of its own it was not there before either, if it is not there.
        let Some(score) = set.and_then(|set| set.score(named)) else { return false };
        let before = if self.is_from_end { Ordering::Greater } else { Ordering::Less };
        moves.iter().any(|Move { member, from, to }| {
            let is_before = |other: Option<f64>| {
                other.is_some_and(|other| order((other, member), (score, named)) == before)
            };
            is_before(*from) != is_before(*to)
        })
    }
}

#[cfg(test)]
impl Window {
    /// A window that passes over the last member that it should look at.
    pub(super) fn shortened(self) -> Self {
        Self { taken: self.taken.map(|taken| taken.saturating_sub(1)), ..self }
    }

    /// A window at the other end.
    pub(super) fn reversed(self) -> Self {
        Self { is_reversed: !self.is_reversed, ..self }
    }
}

#[cfg(test)]
impl Place {
    /// The place counted from the other end.
    pub(super) fn reversed(self) -> Self {
        Self { is_from_end: !self.is_from_end }
    }
}
