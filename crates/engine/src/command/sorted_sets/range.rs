//! A range of a sorted set with its options, for commands that read or store ranges.

use super::bounds::{Bounds, By};
use crate::command::parse::{self, is};
use crate::error::CommandError;
use crate::value::SortedSet;
use std::ops::Range;

pub(super) const WITHSCORES: &str = "WITHSCORES";

#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) bounds: Bounds<'a>,
    pub(crate) reverse: bool,
    /// Offset and count. A negative offset selects nothing, a negative count takes all.
    pub(crate) limit: Option<(i64, i64)>,
    pub(crate) with_scores: bool,
}

/// Properties of a range that the command's name implies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preset {
    by: Option<By>,
    reverse: Option<bool>,
    stores: bool,
}

impl Preset {
    /// ZRANGE.
    pub(crate) const RANGE: Self = Self { by: None, reverse: None, stores: false };
    /// ZREVRANGE.
    pub(crate) const REVERSED: Self = Self::new(By::Rank, true);
    /// ZRANGEBYSCORE.
    pub(crate) const BY_SCORE: Self = Self::new(By::Score, false);
    /// ZREVRANGEBYSCORE.
    pub(crate) const BY_SCORE_REVERSED: Self = Self::new(By::Score, true);
    /// ZRANGEBYLEX.
    pub(crate) const BY_LEX: Self = Self::new(By::Lex, false);
    /// ZREVRANGEBYLEX.
    pub(crate) const BY_LEX_REVERSED: Self = Self::new(By::Lex, true);
    /// ZRANGESTORE.
    pub(crate) const STORED: Self = Self { stores: true, ..Self::RANGE };

    const fn new(by: By, reverse: bool) -> Self {
        Self { by: Some(by), reverse: Some(reverse), stores: false }
    }
}

impl<'a> Query<'a> {
    /// Parses `min max [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`, without what the
    /// preset fixes.
    pub(crate) fn parse(args: &[&'a [u8]], preset: Preset) -> Result<Self, CommandError> {
        let Preset { mut by, mut reverse, stores } = preset;
        let (mut limit, mut with_scores) = (None, false);
        let [start, stop, options @ ..] = args else { return Err(CommandError::Syntax) };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match options.as_slice() {
                _ if !stores && is(option, WITHSCORES) => with_scores = true,
                [offset, count, rest @ ..] if is(option, "LIMIT") => {
                    limit = Some((parse::integer(offset)?, parse::integer(count)?));
                    options = rest.iter();
                }
                _ if reverse.is_none() && is(option, "REV") => reverse = Some(true),
                _ if by.is_none() && is(option, "BYLEX") => by = Some(By::Lex),
                _ if by.is_none() && is(option, "BYSCORE") => by = Some(By::Score),
                _ => return Err(CommandError::Syntax),
            }
        }
        let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
        // A count of -1 is no limit, and is accepted even where limits are not.
        if by == By::Rank && limit.is_some_and(|(_, count)| count != -1) {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if by == By::Lex && with_scores {
            return Err(CommandError::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        // In reverse, the higher score or member comes first. Ranks count from the other end
        // instead.
        let (min, max) = if reverse && by != By::Rank { (stop, start) } else { (start, stop) };
        let limit = limit.filter(|_| by != By::Rank);
        Ok(Self { bounds: Bounds::parse(by, min, max)?, reverse, limit, with_scores })
    }

    /// Returns the ranks of the selected members, counted from the lowest.
    pub(crate) fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let Range { start, end } = self.bounds.ranks(set);
        if let Bounds::Ranks(..) = self.bounds {
            return if self.reverse { set.len() - end..set.len() - start } else { start..end };
        }
        let Some((offset, count)) = self.limit else { return start..end };
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX).min(end - start);
        let left = end - start - skipped;
        let taken = usize::try_from(count).map_or(left, |count| count.min(left));
        if self.reverse {
            let end = end - skipped;
            end - taken..end
        } else {
            let start = start + skipped;
            start..start + taken
        }
    }
}
