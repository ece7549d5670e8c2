//! Sorted sets: members ordered by score.

mod algebra;
pub(crate) mod bounds;
mod pops;
pub(crate) mod range;
mod ranges;
pub(super) mod rows;

use super::keyspace_wide::{ScanOptions, cursor};
use super::members::{self, Wanted};
use super::parse::{self, is};
use super::strings::{check_answer, check_length};
use crate::context::Context;
use crate::error::CommandError;
use crate::random::Random;
use crate::value::SortedSet;
use crate::wire::reply::{Protocol, Reply, format_double};
use range::WITHSCORES;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::HashSet;

/// Answers members, optionally with scores: as pairs in RESP3, alternating in RESP2.
fn reply_members<'a>(
    reply: &mut Reply,
    members: impl ExactSizeIterator<Item = (&'a [u8], f64)>,
    with_scores: bool,
) {
    let pairs = with_scores && reply.protocol() == Protocol::Resp3;
    reply.array(if with_scores && !pairs { members.len() * 2 } else { members.len() });
    for (member, score) in members {
        if pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(score);
        }
    }
}

pub(super) fn store(ctx: &mut Context<'_, '_>, key: &[u8], result: SortedSet, event: &'static str) {
    let len = result.len();
    members::store(ctx, key, (result, len), event);
}

/// Parses a score. Unlike in a range, a number too large or too small for a double is refused.
pub(super) fn score(arg: &[u8]) -> Result<f64, CommandError> {
    /// Integers up to here are exact doubles.
    const EXACT: i64 = 1 << 53;
    if let Some(integer) = parse::canonical_integer(arg).filter(|integer| (-EXACT..=EXACT).contains(integer))
    {
        return Ok(integer as f64);
    }
    let score = parse::float(arg)?;
    let is_word = arg.iter().any(|byte| matches!(byte, b'i' | b'I'));
    // After `0x`, `e` is a digit, and `p` begins the exponent.
    let is_hexadecimal = arg.iter().any(|byte| matches!(byte, b'x' | b'X'));
    let begins_exponent = if is_hexadecimal { [b'p', b'P'] } else { [b'e', b'E'] };
    let mantissa = arg.split(|byte| begins_exponent.contains(byte)).next().unwrap_or_default();
    let is_zero = !mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9' | b'a'..=b'f' | b'A'..=b'F'));
    if (score.is_infinite() && !is_word) || (score == 0.0 && !is_zero) {
        return Err(CommandError::NotAFloat);
    }
    Ok(score)
}

/// The options of ZADD.
#[derive(Debug, Clone, Copy, Default)]
struct Rules {
    only_new: bool,
    only_existing: bool,
    only_greater: bool,
    only_less: bool,
    count_changes: bool,
    increment: bool,
}

/// Result of adding one member.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// The options forbid it.
    Refused,
    /// The member already has this score.
    Same(f64),
    Updated(f64),
    Added(f64),
    /// The sum of opposite infinities.
    NotANumber,
}

impl Rules {
    /// Parses the options. Returns them and their number.
    fn parse(args: &[&[u8]]) -> Result<(Self, usize), CommandError> {
        let mut rules = Self::default();
        let mut count = 0;
        for arg in args {
            let flag = match arg.len() {
                2 if is(arg, "NX") => &mut rules.only_new,
                2 if is(arg, "XX") => &mut rules.only_existing,
                2 if is(arg, "GT") => &mut rules.only_greater,
                2 if is(arg, "LT") => &mut rules.only_less,
                2 if is(arg, "CH") => &mut rules.count_changes,
                4 if is(arg, "INCR") => &mut rules.increment,
                _ => break,
            };
            *flag = true;
            count += 1;
        }
        Ok((rules, count))
    }

    /// Refuses contradictory options, for this number of pairs.
    fn check(self, pairs: usize) -> Result<(), CommandError> {
        if self.only_new && self.only_existing {
            return Err(CommandError::text("ERR XX and NX options at the same time are not compatible"));
        }
        if (self.only_greater && (self.only_new || self.only_less)) || (self.only_less && self.only_new) {
            return Err(CommandError::text(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.increment && pairs > 1 {
            return Err(CommandError::text("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// Returns the result of giving a score to a member whose score is `old`, if it exists.
    fn outcome(self, given: f64, old: Option<f64>) -> Outcome {
        let Some(old) = old else {
            return if self.only_existing { Outcome::Refused } else { Outcome::Added(given) };
        };
        let new = if self.increment { old + given } else { given };
        if self.only_new {
            Outcome::Refused
        } else if new.is_nan() {
            Outcome::NotANumber
        } else if (self.only_greater && new <= old) || (self.only_less && new >= old) {
            Outcome::Refused
        } else if new.partial_cmp(&old) == Some(Ordering::Equal) {
            Outcome::Same(new)
        } else {
            Outcome::Updated(new)
        }
    }
}

/// Result of adding several members.
#[derive(Debug, Default)]
struct Tally {
    added: usize,
    updated: usize,
    last: Option<Outcome>,
}

fn zadd(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    add_and_reply(ctx, args).map(|_| ())
}

/// Runs ZADD. Returns whether it has changed something.
pub(super) fn add_and_reply(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<bool, CommandError> {
    let (rules, options) = Rules::parse(&args[2..])?;
    let (pairs, rest) = args[2 + options..].as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return Err(CommandError::Syntax);
    }
    rules.check(pairs.len())?;
    let tally = add(ctx, args[1], rules, pairs)?;
    if rules.increment {
        reply_increment(ctx, &tally)?;
    } else {
        ctx.reply.count(tally.added + if rules.count_changes { tally.updated } else { 0 });
    }
    Ok(tally.added + tally.updated > 0)
}

fn zincrby(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let rules = Rules { increment: true, ..Rules::default() };
    let tally = add(ctx, args[1], rules, &[[args[2], args[3]]])?;
    reply_increment(ctx, &tally)
}

fn reply_increment(ctx: &mut Context<'_, '_>, tally: &Tally) -> Result<(), CommandError> {
    match tally.last {
        Some(Outcome::Same(score) | Outcome::Updated(score) | Outcome::Added(score)) => {
            ctx.reply.double(score);
        }
        Some(Outcome::NotANumber) => {
            return Err(CommandError::text("ERR resulting score is not a number (NaN)"));
        }
        Some(Outcome::Refused) | None => ctx.reply.null(),
    }
    Ok(())
}

/// Adds pairs of score and member. Parses all before it adds any.
fn add(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    rules: Rules,
    pairs: &[[&[u8]; 2]],
) -> Result<Tally, CommandError> {
    let mut scores = SmallVec::<[f64; 4]>::with_capacity(pairs.len());
    for [given, member] in pairs {
        scores.push(score(given)?);
        check_length(member.len())?;
    }
    let mut moves = ctx.keys.moves(key);
    let change = |set: &mut SortedSet| {
        let mut tally = Tally::default();
        for ([_, member], given) in pairs.iter().zip(&scores) {
            let mut outcome = Outcome::Refused;
            set.update(member, |old| {
                outcome = rules.outcome(*given, old);
                match outcome {
                    Outcome::Updated(score) | Outcome::Added(score) => {
                        moves.note(member, old, Some(score));
                        Some(score)
                    }
                    Outcome::Refused | Outcome::Same(_) | Outcome::NotANumber => None,
                }
            });
            tally.added += usize::from(matches!(outcome, Outcome::Added(_)));
            tally.updated += usize::from(matches!(outcome, Outcome::Updated(_)));
            tally.last = Some(outcome);
        }
        tally
    };
    let tally = if rules.only_existing {
        ctx.keys.update(key, change)?.unwrap_or_default()
    } else {
        ctx.keys.upsert(key, change)?
    };
    if tally.added + tally.updated > 0 {
        ctx.keys.changed_in(key, if rules.increment { "zincr" } else { "zadd" }, || moves.touched());
    }
    Ok(tally)
}

fn zrem(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, mut moves) = (args[1], ctx.keys.moves(args[1]));
    let removed = ctx.keys.update(key, |set: &mut SortedSet| {
        let taken = args[2..].iter().filter_map(|member| Some((member, set.remove(member)?)));
        taken.map(|(member, score)| moves.note(member, Some(score), None)).count()
    })?;
    let removed = removed.unwrap_or(0);
    if removed > 0 {
        ctx.keys.changed_in(key, "zrem", || moves.touched());
    }
    ctx.reply.count(removed);
    Ok(())
}

fn zcard(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    ctx.reply.count(set.map_or(0, SortedSet::len));
    Ok(())
}

fn zscore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    match set.and_then(|set| set.score(args[2])) {
        Some(score) => ctx.reply.double(score),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn zmscore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    ctx.reply.array(args.len() - 2);
    for member in &args[2..] {
        match set.and_then(|set| set.score(member)) {
            Some(score) => ctx.reply.double(score),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

fn zrank(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    rank(ctx, args, "zrank", |rank, _| rank)
}

fn zrevrank(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    rank(ctx, args, "zrevrank", |rank, len| len - 1 - rank)
}

fn rank(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    name: &'static str,
    count_from_end: impl Fn(usize, usize) -> usize,
) -> Result<(), CommandError> {
    let with_score = match &args[3..] {
        [] => false,
        [option] if is(option, "WITHSCORE") => true,
        [_] => return Err(CommandError::Syntax),
        _ => return Err(CommandError::Arity(name.into())),
    };
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    let found =
        set.and_then(|set| set.rank(args[2]).map(|(rank, score)| (count_from_end(rank, set.len()), score)));
    match found {
        Some((rank, score)) if with_score => {
            ctx.reply.array(2);
            ctx.reply.count(rank);
            ctx.reply.double(score);
        }
        Some((rank, _)) => ctx.reply.count(rank),
        None if with_score => ctx.reply.null_array(),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn zrandmember(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (wanted, with_scores) = match &args[2..] {
        [] => return one_random_member(ctx, args[1]),
        [count] => (Wanted::parse(count)?, false),
        [count, option] if is(option, WITHSCORES) => (Wanted::parse_pairs(count)?, true),
        [count, ..] => {
            Wanted::parse(count)?;
            return Err(CommandError::Syntax);
        }
    };
    let mut random = Random::new(ctx.keys.random());
    let Some(set) = ctx.keys.read::<SortedSet>(args[1])? else {
        ctx.reply.array(0);
        return Ok(());
    };
    let wanted = match wanted {
        Wanted::Repeated(count) => return repeated_members(ctx.reply, set, count, with_scores, random),
        Wanted::Different(wanted) => wanted,
    };
    if wanted >= set.len() {
        reply_members(ctx.reply, set.iter(), with_scores);
        return Ok(());
    }
    // Floyd's algorithm for distinct ranks.
    let mut ranks = HashSet::with_capacity(wanted);
    for last in set.len() - wanted..set.len() {
        let rank = random.below(last + 1);
        ranks.insert(if ranks.contains(&rank) { last } else { rank });
    }
    let mut ranks: Vec<usize> = ranks.into_iter().collect();
    ranks.sort_unstable();
    let members: Vec<_> = ranks.into_iter().filter_map(|rank| set.get(rank)).collect();
    reply_members(ctx.reply, members.into_iter(), with_scores);
    Ok(())
}

fn one_random_member(ctx: &mut Context<'_, '_>, key: &[u8]) -> Result<(), CommandError> {
    let mut random = Random::new(ctx.keys.random());
    let set = ctx.keys.read::<SortedSet>(key)?;
    let member = set.and_then(|set| set.get(random.below(set.len())));
    ctx.reply.bulk_or_null(member.map(|(member, _)| member));
    Ok(())
}

/// Answers random members, with repeats. The set does not bound the count, so the answer's length
/// is checked.
fn repeated_members(
    reply: &mut Reply,
    set: &SortedSet,
    count: usize,
    with_scores: bool,
    mut random: Random,
) -> Result<(), CommandError> {
    let mark = reply.len();
    let pairs = with_scores && reply.protocol() == Protocol::Resp3;
    reply.array(if with_scores && !pairs { count * 2 } else { count });
    for _ in 0..count {
        let Some((member, score)) = set.get(random.below(set.len())) else { break };
        if pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(score);
        }
        check_answer(reply, mark)?;
    }
    Ok(())
}

fn zscan(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let start = cursor(args[2])?;
    let set = ctx.keys.read::<SortedSet>(args[1])?;
    let mut found = Vec::new();
    let mut next = 0;
    if let Some(set) = set {
        // As in Redis, options are parsed only if there is something to scan.
        let options = ScanOptions::parse(&args[3..], false)?;
        // Names must outlive the visit, so they are copied; a step is as long as its COUNT.
        next = set.scan(start, options.count, |member, score| {
            if options.matches(member) {
                found.push((member.to_vec(), score));
            }
        });
    }
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    ctx.reply.array(found.len() * 2);
    for (member, score) in found {
        ctx.reply.bulk(&member);
        ctx.reply.bulk(format_double(score).as_bytes());
    }
    Ok(())
}
