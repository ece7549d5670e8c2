//! The members of a sorted set that a watched read uses, and whether moves of other members leave
//! its answer unchanged.
//!
//! Everything here compares the set before some moves with the set after them; only the latter is
//! available. Members without a move are in both, with the same score.
//!
//! ```text
//! ZRANGE k 2 4:   before │ near . . far │ after       moves within one side of the window leave it unchanged,
//!                 0    1 │ 2     3    4 │ 5 …         if the number of members before it stays the same
//! ```

use crate::command::sorted_sets::bounds::{Bounds, LexEnd, ScoreEnd};
use crate::command::sorted_sets::range::{Preset, Query};
use crate::value::{SortedSet, sorted_set_order as order};
use crate::watch::touched::Move;
use std::cmp::Ordering;
use std::ops::Range;

/// A member's position in the order: score and name.
type Position<'a> = (f64, &'a [u8]);

/// The bounds of a range, as a read keeps them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kept {
    /// No bounds: ranks are counted over all members.
    None,
    Scores(ScoreEnd, ScoreEnd),
    /// Members, at these positions of the arguments.
    Members {
        min: usize,
        max: usize,
    },
}

impl Kept {
    /// Returns the bounds; `None` if they cannot be parsed, which a watched read excludes.
    fn bounds<'a>(self, arg: &impl Fn(usize) -> &'a [u8]) -> Option<Bounds<'a>> {
        match self {
            Self::None => Some(Bounds::Ranks(0, -1)),
            Self::Scores(min, max) => Some(Bounds::Scores(min, max)),
            Self::Members { min, max } => {
                Some(Bounds::Members(LexEnd::parse(arg(min)).ok()?, LexEnd::parse(arg(max)).ok()?))
            }
        }
    }

    /// Returns the bounds by which moves can be classified; `None` if they cannot.
    fn bounds_of_moves<'a>(
        self,
        arg: &impl Fn(usize) -> &'a [u8],
        moves: &[Move],
        set: Option<&SortedSet>,
    ) -> Option<Bounds<'a>> {
        if self.are_meaningful(moves, set) { self.bounds(arg) } else { None }
    }

    /// Returns whether membership in the range can be decided per member. Ranges of members are
    /// only defined for sets with one score; in others the answer depends on all members.
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

/// A range of members, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    kept: Kept,
    is_reversed: bool,
    /// Number of members skipped, from the end where the window begins.
    skipped: usize,
    /// Number of members returned after those; `None` for all.
    taken: Option<usize>,
}

/// A position relative to a window, seen from the end where the window begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Within,
    /// After the window, out of bounds, or absent.
    Elsewhere,
}

impl Window {
    /// Returns the window of a range command whose range begins at argument 2; `None` if it has
    /// none.
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

    /// Returns the window of two ranks. If both count from the end, the window begins there.
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

    /// Returns whether moves may have changed which members are returned, their order or their
    /// scores.
    ///
    /// If every move stays on one side of the window, no member in it has moved, and the number
    /// before it is unchanged. So the window has the same members.
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

    /// Returns the first and the last member of the window, if there are that many.
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

/// The number of members in a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counted {
    kept: Kept,
}

impl Counted {
    /// Returns the count of a range of scores; `None` for scores that cannot be parsed.
    pub(super) fn of_scores(args: &[&[u8]]) -> Option<Self> {
        let [_, _, min, max] = args else { return None };
        Some(Self { kept: Kept::Scores(ScoreEnd::parse(min).ok()?, ScoreEnd::parse(max).ok()?) })
    }

    /// Returns the count of a range of members.
    pub(super) fn of_members() -> Self {
        Self { kept: Kept::Members { min: 2, max: 3 } }
    }

    /// Returns whether a move into or out of the range may have changed the count.
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

/// The rank of a member: the number of members before it, from either end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rank {
    pub(super) is_from_end: bool,
}

impl Rank {
    /// Returns whether moves may have changed the rank or score of `named`: its own, or those of
    /// other members across it.
    pub(super) fn is_touched(self, named: &[u8], moves: &[Move], set: Option<&SortedSet>) -> bool {
        if moves.iter().any(|moved| *moved.member == *named) {
            return true;
        }
        // A member that is absent and has not moved was absent before.
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
    /// Returns a window that misses its last member.
    pub(super) fn shortened(self) -> Self {
        Self { taken: self.taken.map(|taken| taken.saturating_sub(1)), ..self }
    }

    /// Returns the window at the other end.
    pub(super) fn reversed(self) -> Self {
        Self { is_reversed: !self.is_reversed, ..self }
    }
}

#[cfg(test)]
impl Rank {
    /// Returns the rank counted from the other end.
    pub(super) fn reversed(self) -> Self {
        Self { is_from_end: !self.is_from_end }
    }
}
