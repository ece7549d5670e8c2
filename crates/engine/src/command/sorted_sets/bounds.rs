//! The bounds of a range of a sorted set: parsing, and membership.

use crate::command::parse;
use crate::error::CommandError;
use crate::value::SortedSet;
use std::ops::Range;

/// One end of a range of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoreEnd {
    score: f64,
    exclusive: bool,
}

impl ScoreEnd {
    /// Parses `5`, `(5`, `-inf`, `+inf`. As in Redis, empty is zero and leading space is skipped.
    pub(crate) fn parse(arg: &[u8]) -> Result<Self, CommandError> {
        let (number, exclusive) = match arg {
            [b'(', number @ ..] => (number, true),
            number => (number, false),
        };
        let number = number.trim_ascii_start();
        let score = if number.is_empty() { Ok(0.0) } else { parse::float(number) };
        let score = score.map_err(|_| CommandError::text("ERR min or max is not a float"))?;
        Ok(Self { score, exclusive })
    }
}

/// One end of a range of members.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LexEnd<'a> {
    Lowest,
    Highest,
    Member { member: &'a [u8], exclusive: bool },
}

impl<'a> LexEnd<'a> {
    /// Parses `-`, `+`, `[member`, `(member`.
    pub(crate) fn parse(arg: &'a [u8]) -> Result<Self, CommandError> {
        match arg {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', member @ ..] => Ok(Self::Member { member, exclusive: false }),
            [b'(', member @ ..] => Ok(Self::Member { member, exclusive: true }),
            _ => Err(CommandError::text("ERR min or max not valid string range item")),
        }
    }

    /// Returns whether this end is after a member. For the member that it names, `named` decides.
    fn is_behind(self, other: &[u8], named: impl Fn(bool) -> bool) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Member { member, exclusive } => other < member || (other == member && named(exclusive)),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bounds<'a> {
    /// Ranks; negative ones count from the end.
    Ranks(i64, i64),
    Scores(ScoreEnd, ScoreEnd),
    Members(LexEnd<'a>, LexEnd<'a>),
}

/// Kind of the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Rank,
    Score,
    Lex,
}

impl<'a> Bounds<'a> {
    pub(crate) fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Self, CommandError> {
        match by {
            By::Rank => Ok(Self::Ranks(parse::integer(min)?, parse::integer(max)?)),
            By::Score => Ok(Self::Scores(ScoreEnd::parse(min)?, ScoreEnd::parse(max)?)),
            By::Lex => Ok(Self::Members(LexEnd::parse(min)?, LexEnd::parse(max)?)),
        }
    }

    /// Returns the ranks of the members inside, counted from the lowest.
    pub(crate) fn ranks(&self, set: &SortedSet) -> Range<usize> {
        if let Self::Ranks(start, stop) = *self {
            return parse::range(start, stop, set.len()).unwrap_or(0..0);
        }
        let (start, end) = if let Self::Members(..) = self {
            (
                set.partition_point_by_name(|member| self.begin_behind(member, 0.0)),
                set.partition_point_by_name(|member| self.end_behind(member, 0.0)),
            )
        } else {
            (
                set.partition_point(|member, score| self.begin_behind(member, score)),
                set.partition_point(|member, score| self.end_behind(member, score)),
            )
        };
        start..end.max(start)
    }

    /// Returns whether a member is inside, for bounds of scores, or of members in a set with one
    /// score. Ranks contain every member.
    pub(crate) fn contain(&self, member: &[u8], score: f64) -> bool {
        !self.begin_behind(member, score) && self.end_behind(member, score)
    }

    /// Returns whether the range begins after a member.
    fn begin_behind(&self, member: &[u8], score: f64) -> bool {
        match *self {
            Self::Ranks(..) => false,
            Self::Scores(min, _) => score < min.score || (min.exclusive && score <= min.score),
            Self::Members(min, _) => min.is_behind(member, |exclusive| exclusive),
        }
    }

    /// Returns whether the range ends after a member.
    fn end_behind(&self, member: &[u8], score: f64) -> bool {
        match *self {
            Self::Ranks(..) => true,
            Self::Scores(_, max) => score < max.score || (!max.exclusive && score <= max.score),
            Self::Members(_, max) => max.is_behind(member, |exclusive| !exclusive),
        }
    }
}
