//! Pops of members from either end: ZPOPMIN, ZMPOP and their blocking variants.

use crate::blocking::waiter::Block;
use crate::command::first_of::FirstOf;
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::{SortedSet, TypedValue};
use crate::wire::reply::Protocol;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
    fn parse(arg: &[u8]) -> Result<Self, CommandError> {
        match arg {
            min if is(min, "MIN") => Ok(Self::Min),
            max if is(max, "MAX") => Ok(Self::Max),
            _ => Err(CommandError::Syntax),
        }
    }

    /// Returns the command that pops from this end; also the event's name.
    fn command(self) -> &'static str {
        match self {
            Self::Min => "zpopmin",
            Self::Max => "zpopmax",
        }
    }
}

/// Form of the answer.
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

/// Pops up to `count` members and answers them. Returns `false`, without an answer, if the key does
/// not exist.
fn pop(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    end: End,
    count: usize,
    shape: Shape,
) -> Result<bool, CommandError> {
    assert!(count > 0, "a pop takes at least one member");
    let Context { keys, reply } = ctx;
    let mut moves = keys.moves(key);
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
            End::Min => set.remove_range(0..count, |member, score| {
                answer(member, score);
                moves.note(member, Some(score), None);
            }),
            End::Max => {
                let range = set.len() - count..set.len();
                set.range(range.clone()).rev().for_each(|(member, score)| answer(member, score));
                set.remove_range(range, |member, score| moves.note(member, Some(score), None));
            }
        }
    })?;
    if popped.is_some() {
        ctx.keys.changed_in(key, end.command(), || moves.touched());
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
            (parse::at_least(0, count, parse::NOT_POSITIVE)?, if resp3 { Shape::Pairs } else { Shape::Flat })
        }
        _ => return Err(CommandError::Syntax),
    };
    if count == 0 {
        ctx.keys.read::<SortedSet>(args[1])?;
        ctx.reply.array(0);
    } else if !pop(ctx, args[1], end, count, shape)? {
        ctx.reply.array(0);
    }
    Ok(())
}

/// Pops from the first key that exists, and logs that key only. Returns `false` if none exists.
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

/// The arguments of ZMPOP: `numkeys key [key ...] <MIN | MAX> [COUNT count]`.
type Choice<'a, 'b> = FirstOf<'a, 'b, End>;

pub(super) fn zmpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Choice { keys, end, count } = Choice::parse(&args[1..], End::parse)?;
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
    let timeout_ms = parse::timeout_ms(timeout)?;
    if pop_first_key(ctx, keys, end, 1, Shape::KeyFlat)? {
        return Ok(());
    }
    ctx.keys.block(Block::new(SortedSet::TYPE, keys, timeout_ms));
    Ok(())
}

pub(super) fn serve_bzpopmin(ctx: &mut Context<'_, '_>, key: &[u8], _: &[&[u8]]) -> Result<(), CommandError> {
    serve(ctx, key, End::Min, 1, Shape::KeyFlat)
}

pub(super) fn serve_bzpopmax(ctx: &mut Context<'_, '_>, key: &[u8], _: &[&[u8]]) -> Result<(), CommandError> {
    serve(ctx, key, End::Max, 1, Shape::KeyFlat)
}

pub(super) fn bzmpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Choice { keys, end, count } = Choice::parse(&args[2..], End::parse)?;
    let timeout_ms = parse::timeout_ms(args[1])?;
    if pop_first_key(ctx, keys, end, count, Shape::KeyPairs)? {
        return Ok(());
    }
    ctx.keys.block(Block::new(SortedSet::TYPE, keys, timeout_ms));
    Ok(())
}

pub(super) fn serve_bzmpop(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    args: &[&[u8]],
) -> Result<(), CommandError> {
    let Choice { end, count, .. } = Choice::parse(&args[2..], End::parse)?;
    serve(ctx, key, end, count, Shape::KeyPairs)
}

fn serve(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    end: End,
    count: usize,
    shape: Shape,
) -> Result<(), CommandError> {
    let served = pop_first_key(ctx, &[key], end, count, shape)?;
    assert!(served, "a client is served from a key that has members");
    Ok(())
}
