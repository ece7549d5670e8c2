//! Ranges of ranks, scores and members: to read, to store, to count and to remove.

use super::{WITHSCORES, reply_members};
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::SortedSet;
use std::ops::Range;

/// One end of a range of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScoreEnd {
    score: f64,
    exclusive: bool,
}

impl ScoreEnd {
    /// Reads `5`, `(5`, `-inf`, `+inf`. Nothing is zero and space in front is skipped, as in Redis.
    pub(super) fn parse(arg: &[u8]) -> Result<Self, CommandError> {
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
pub(super) enum LexEnd<'a> {
    Lowest,
    Highest,
    Member { member: &'a [u8], exclusive: bool },
}

impl<'a> LexEnd<'a> {
    /// Reads `-`, `+`, `[member`, `(member`.
    pub(super) fn parse(arg: &'a [u8]) -> Result<Self, CommandError> {
        match arg {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', member @ ..] => Ok(Self::Member { member, exclusive: false }),
            [b'(', member @ ..] => Ok(Self::Member { member, exclusive: true }),
            _ => Err(CommandError::text("ERR min or max not valid string range item")),
        }
    }

    /// Whether a member lies before this end; one that is named by the end does if `named` says so.
    fn is_behind(self, other: &[u8], named: impl Fn(bool) -> bool) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Member { member, exclusive } => other < member || (other == member && named(exclusive)),
        }
    }
}

/// What a range is a range of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bounds<'a> {
    /// Ranks, negative ones counted from the end.
    Ranks(i64, i64),
    Scores(ScoreEnd, ScoreEnd),
    Members(LexEnd<'a>, LexEnd<'a>),
}

/// What the two ends of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

impl<'a> Bounds<'a> {
    fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Self, CommandError> {
        match by {
            By::Rank => Ok(Self::Ranks(parse::integer(min)?, parse::integer(max)?)),
            By::Score => Ok(Self::Scores(ScoreEnd::parse(min)?, ScoreEnd::parse(max)?)),
            By::Lex => Ok(Self::Members(LexEnd::parse(min)?, LexEnd::parse(max)?)),
        }
    }

    /// The ranks of the members inside, counted from the lowest.
    pub(super) fn ranks(&self, set: &SortedSet) -> Range<usize> {
        if let Self::Ranks(start, stop) = *self {
            return parse::range(start, stop, set.len()).unwrap_or(0..0);
        }
        let start = set.partition_point(|member, score| self.begin_behind(member, score));
        let end = set.partition_point(|member, score| self.end_behind(member, score));
        start..end.max(start)
    }

    /// Whether a member is inside, if they are bounds of scores, or of members in a set of one score. Ranks bound nothing.
    pub(super) fn contain(&self, member: &[u8], score: f64) -> bool {
        !self.begin_behind(member, score) && self.end_behind(member, score)
    }

    /// Whether the range begins behind a member.
    fn begin_behind(&self, member: &[u8], score: f64) -> bool {
        match *self {
            Self::Ranks(..) => false,
            Self::Scores(min, _) => score < min.score || (min.exclusive && score <= min.score),
            Self::Members(min, _) => min.is_behind(member, |exclusive| exclusive),
        }
    }

    /// Whether the range ends behind a member.
    fn end_behind(&self, member: &[u8], score: f64) -> bool {
        match *self {
            Self::Ranks(..) => true,
            Self::Scores(_, max) => score < max.score || (!max.exclusive && score <= max.score),
            Self::Members(_, max) => max.is_behind(member, |exclusive| !exclusive),
        }
    }
}

/// A range with its options.
#[derive(Debug)]
pub(super) struct Query<'a> {
    pub(super) bounds: Bounds<'a>,
    pub(super) reverse: bool,
    /// How many to skip, and how many to take at most; negative is none, and all.
    pub(super) limit: Option<(i64, i64)>,
    with_scores: bool,
}

/// What the name of a command already says about its range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preset {
    by: Option<By>,
    reverse: Option<bool>,
    stores: bool,
}

impl Preset {
    /// ZRANGE.
    pub(super) const RANGE: Self = Self { by: None, reverse: None, stores: false };
    /// ZREVRANGE.
    pub(super) const REVERSED: Self = Self::new(By::Rank, true);
    /// ZRANGEBYSCORE.
    pub(super) const BY_SCORE: Self = Self::new(By::Score, false);
    /// ZREVRANGEBYSCORE.
    pub(super) const BY_SCORE_REVERSED: Self = Self::new(By::Score, true);
    /// ZRANGEBYLEX.
    pub(super) const BY_LEX: Self = Self::new(By::Lex, false);
    /// ZREVRANGEBYLEX.
    pub(super) const BY_LEX_REVERSED: Self = Self::new(By::Lex, true);
    /// ZRANGESTORE.
    const STORED: Self = Self { stores: true, ..Self::RANGE };

    const fn new(by: By, reverse: bool) -> Self {
        Self { by: Some(by), reverse: Some(reverse), stores: false }
    }
}

impl<'a> Query<'a> {
    /// Reads `min max [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`, without what the preset fixes.
    pub(super) fn parse(args: &[&'a [u8]], preset: Preset) -> Result<Self, CommandError> {
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
        // A limit of -1 is none, and passes even where limits do not.
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
        // Backwards, the higher score or member comes first. Ranks are counted backwards instead.
        let (min, max) = if reverse && by != By::Rank { (stop, start) } else { (start, stop) };
        let limit = limit.filter(|_| by != By::Rank);
        Ok(Self { bounds: Bounds::parse(by, min, max)?, reverse, limit, with_scores })
    }

    /// The ranks of the members that are asked for, counted from the lowest.
    fn ranks(&self, set: &SortedSet) -> Range<usize> {
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

fn answer(ctx: &mut Context<'_, '_>, args: &[&[u8]], preset: Preset) -> Result<(), CommandError> {
    let query = Query::parse(&args[2..], preset)?;
    let Some(set) = ctx.keys.read::<SortedSet>(args[1])? else {
        ctx.reply.array(0);
        return Ok(());
    };
    let members = set.range(query.ranks(set));
    if query.reverse {
        reply_members(ctx.reply, members.rev(), query.with_scores);
    } else {
        reply_members(ctx.reply, members, query.with_scores);
    }
    Ok(())
}

pub(super) fn zrange(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, Preset::RANGE)
}

pub(super) fn zrevrange(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, Preset::REVERSED)
}

pub(super) fn zrangebyscore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, Preset::BY_SCORE)
}

pub(super) fn zrevrangebyscore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, Preset::BY_SCORE_REVERSED)
}

pub(super) fn zrangebylex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, Preset::BY_LEX)
}

pub(super) fn zrevrangebylex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    answer(ctx, args, Preset::BY_LEX_REVERSED)
}

pub(super) fn zrangestore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let query = Query::parse(&args[3..], Preset::STORED)?;
    let result = ctx.keys.read::<SortedSet>(args[2])?.map_or_else(SortedSet::default, |set| {
        let members: Vec<(f64, &[u8])> =
            set.range(query.ranks(set)).map(|(member, score)| (score, member)).collect();
        SortedSet::from_ascending(&members)
    });
    super::store(ctx, args[1], result, "zrangestore");
    Ok(())
}

pub(super) fn zcount(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    count(ctx, args, By::Score)
}

pub(super) fn zlexcount(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    count(ctx, args, By::Lex)
}

fn count(ctx: &mut Context<'_, '_>, args: &[&[u8]], by: By) -> Result<(), CommandError> {
    let bounds = Bounds::parse(by, args[2], args[3])?;
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    ctx.reply.count(set.map_or(0, |set| bounds.ranks(set).len()));
    Ok(())
}

pub(super) fn zremrangebyrank(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    remove(ctx, args, By::Rank, "zremrangebyrank")
}

pub(super) fn zremrangebyscore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    remove(ctx, args, By::Score, "zremrangebyscore")
}

pub(super) fn zremrangebylex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    remove(ctx, args, By::Lex, "zremrangebylex")
}

fn remove(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    by: By,
    event: &'static str,
) -> Result<(), CommandError> {
    let bounds = Bounds::parse(by, args[2], args[3])?;
    let mut moves = ctx.keys.moves(args[1]);
    let removed = ctx.keys.update::<SortedSet, _>(args[1], |set| {
        let ranks = bounds.ranks(set);
        set.remove_range(ranks.clone(), |member, score| moves.note(member, Some(score), None));
        ranks.len()
    })?;
    let removed = removed.unwrap_or(0);
    if removed > 0 {
        ctx.keys.changed_in(args[1], event, || moves.touched());
    }
    ctx.reply.count(removed);
    Ok(())
}
