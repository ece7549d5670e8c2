//! Taking members from either end: ZPOPMIN, ZMPOP and their blocking kin.

use crate::blocking::Block;
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::reply::Protocol;
use crate::value::{Collection, SortedSet};

/// Redis's answer to a count that is negative or not an integer at all.
const NOT_POSITIVE: CommandError = CommandError::text("ERR value is out of range, must be positive");

/// Where members are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
    /// The command that takes from this end; also the name of the event.
    fn command(self) -> &'static str {
        match self {
            Self::Min => "zpopmin",
            Self::Max => "zpopmax",
        }
    }
}

/// What the answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `member score member score …`
    Flat,
    /// `[member score] [member score] …`
    Pairs,
    /// `key member score`
    KeyFlat,
    /// `key [[member score] …]`
    KeyPairs,
}

/// Takes `count` members, as far as there are so many, and answers them; `false` if the key does not exist, and then
/// nothing is answered.
fn pop(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    end: End,
    count: usize,
    shape: Shape,
) -> Result<bool, CommandError> {
    debug_assert!(count > 0);
    let Context { keys, reply } = ctx;
    let popped = keys.update::<SortedSet, _>(key, |set| {
        let count = count.min(set.len());
        match shape {
            Shape::Flat => reply.array(count * 2),
            Shape::Pairs => reply.array(count),
            Shape::KeyFlat => {
                reply.array(1 + count * 2);
                reply.bulk(key);
            }
            Shape::KeyPairs => {
                reply.array(2);
                reply.bulk(key);
                reply.array(count);
            }
        }
        let mut answer = |member: &[u8], score| {
            if matches!(shape, Shape::Pairs | Shape::KeyPairs) {
                reply.array(2);
            }
            reply.bulk(member);
            reply.double(score);
        };
        match end {
            End::Min => set.remove_range(0..count, answer),
            End::Max => {
                let range = set.len() - count..set.len();
                set.range(range.clone()).rev().for_each(|(member, score)| answer(member, score));
                set.remove_range(range, |_, _| {});
            }
        }
    })?;
    if popped.is_some() {
        ctx.keys.changed(key, end.command());
    }
    Ok(popped.is_some())
}

pub(super) fn zpopmin(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    pop_one_key(ctx, args, End::Min)
}

pub(super) fn zpopmax(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    pop_one_key(ctx, args, End::Max)
}

fn pop_one_key(ctx: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<(), CommandError> {
    let (count, shape) = match args {
        [_, _] => (1, Shape::Flat),
        [_, _, count] => {
            let resp3 = ctx.reply.protocol() == Protocol::Resp3;
            (
                parse::positive(count).map_err(|_| NOT_POSITIVE)?,
                if resp3 { Shape::Pairs } else { Shape::Flat },
            )
        }
        _ => return Err(CommandError::Syntax),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 {
        ctx.keys.read::<SortedSet>(args[1])?;
        ctx.reply.array(0);
    } else if !pop(ctx, args[1], end, count, shape)? {
        ctx.reply.array(0);
    }
    Ok(())
}

/// Takes from the first key that exists; `false` if none does. The log gets the one key that was chosen.
fn pop_first_key(
    ctx: &mut Context<'_, '_>,
    keys: &[&[u8]],
    end: End,
    count: usize,
    shape: Shape,
) -> Result<bool, CommandError> {
    for key in keys {
        if pop(ctx, key, end, count, shape)? {
            ctx.keys.log_instead(end.command(), &[key, count.to_string().as_bytes()]);
            return Ok(true);
        }
    }
    Ok(false)
}

/// The arguments of ZMPOP from the number of keys on.
struct Choice<'a, 'b> {
    keys: &'a [&'b [u8]],
    end: End,
    count: usize,
}

impl<'a, 'b> Choice<'a, 'b> {
    /// Reads `numkeys key [key ...] MIN | MAX [COUNT count]`.
    fn parse(args: &'a [&'b [u8]]) -> Result<Self, CommandError> {
        let at_least_one = |arg: &[u8], error| {
            let number = parse::integer(arg).ok().filter(|&number| number > 0);
            number.and_then(|number| usize::try_from(number).ok()).ok_or(CommandError::text(error))
        };
        let (number, rest) = args.split_first().ok_or(CommandError::Syntax)?;
        let number = at_least_one(number, "ERR numkeys should be greater than 0")?;
        let (keys, rest) = rest.split_at_checked(number).ok_or(CommandError::Syntax)?;
        let (end, rest) = match rest.split_first() {
            Some((end, rest)) if is(end, "MIN") => (End::Min, rest),
            Some((end, rest)) if is(end, "MAX") => (End::Max, rest),
            _ => return Err(CommandError::Syntax),
        };
        let count = match rest {
            [] => 1,
            [keyword, count, rest @ ..] if is(keyword, "COUNT") => {
                let count = at_least_one(count, "ERR count should be greater than 0")?;
                if !rest.is_empty() {
                    return Err(CommandError::Syntax);
                }
                count
            }
            _ => return Err(CommandError::Syntax),
        };
        Ok(Self { keys, end, count })
    }
}

pub(super) fn zmpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Choice { keys, end, count } = Choice::parse(&args[1..])?;
    if !pop_first_key(ctx, keys, end, count, Shape::KeyPairs)? {
        ctx.reply.null_array();
    }
    Ok(())
}

pub(super) fn bzpopmin(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    block_for_one(ctx, args, End::Min)
}

pub(super) fn bzpopmax(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    block_for_one(ctx, args, End::Max)
}

fn block_for_one(ctx: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<(), CommandError> {
    let Some((timeout, keys)) = args[1..].split_last() else { return Err(CommandError::Syntax) };
    let timeout_ms = timeout_ms(timeout)?;
    if pop_first_key(ctx, keys, end, 1, Shape::KeyFlat)? {
        return Ok(());
    }
    let serve = match end {
        End::Min => {
            |ctx: &mut Context<'_, '_>, key: &[u8], _: &[&[u8]]| serve(ctx, key, End::Min, 1, Shape::KeyFlat)
        }
        End::Max => {
            |ctx: &mut Context<'_, '_>, key: &[u8], _: &[&[u8]]| serve(ctx, key, End::Max, 1, Shape::KeyFlat)
        }
    };
    ctx.keys.block(wait_for(keys, timeout_ms, serve));
    Ok(())
}

pub(super) fn bzmpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Choice { keys, end, count } = Choice::parse(&args[2..])?;
    let timeout_ms = timeout_ms(args[1])?;
    if pop_first_key(ctx, keys, end, count, Shape::KeyPairs)? {
        return Ok(());
    }
    ctx.keys.block(wait_for(keys, timeout_ms, |ctx, key, args| {
        let Choice { end, count, .. } = Choice::parse(args.get(2..).unwrap_or_default())?;
        serve(ctx, key, end, count, Shape::KeyPairs)
    }));
    Ok(())
}

fn serve(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    end: End,
    count: usize,
    shape: Shape,
) -> Result<(), CommandError> {
    let served = pop_first_key(ctx, &[key], end, count, shape)?;
    debug_assert!(served, "a client is served from a key that has members");
    Ok(())
}

fn wait_for(keys: &[&[u8]], timeout_ms: Option<u64>, serve: crate::blocking::Serve) -> Block {
    let keys = keys.iter().map(|key| key.to_vec()).collect();
    Block { wants: SortedSet::TYPE, keys, also: Vec::new(), timeout_ms, serve }
}

/// Reads a timeout in seconds, with a fraction; zero is for ever.
fn timeout_ms(arg: &[u8]) -> Result<Option<u64>, CommandError> {
    let seconds =
        parse::float(arg).map_err(|_| CommandError::text("ERR timeout is not a float or out of range"))?;
    let ms = (seconds * 1000.0).ceil();
    if ms < 0.0 {
        return Err(CommandError::text("ERR timeout is negative"));
    }
    if ms >= i64::MAX as f64 {
        return Err(CommandError::text("ERR timeout is out of range"));
    }
    Ok(Some(ms as u64).filter(|&ms| ms > 0))
}
