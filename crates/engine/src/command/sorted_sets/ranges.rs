//! Ranges of ranks, scores and members: read, store, count and remove.

use super::bounds::{Bounds, By};
use super::range::{Preset, Query};
use super::reply_members;
use crate::context::Context;
use crate::error::CommandError;
use crate::value::SortedSet;

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
