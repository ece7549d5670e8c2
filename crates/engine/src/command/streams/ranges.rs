//! `XLEN`, `XRANGE` and `XREVRANGE`.

use super::ids;
use super::replying::write_entries;
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::stream::Id;
use crate::value::{Object, Stream, TypedValue};

pub(super) fn xlen(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let len = ctx.keys.read::<Stream>(args[1])?.map_or(0, Stream::len);
    ctx.reply.count(len);
    Ok(())
}

pub(super) fn xrange(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    range(ctx, args, false)
}

pub(super) fn xrevrange(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    range(ctx, args, true)
}

/// Entries that are asked for.
struct Range {
    from: Id,
    to: Id,
    count: Option<usize>,
}

impl Range {
    fn parse(args: &[&[u8]], is_back: bool) -> Result<Self, CommandError> {
        let (from, to) = if is_back { (args[3], args[2]) } else { (args[2], args[3]) };
        let (from, to) = (ids::start(from)?, ids::end(to)?);
        let mut count = None;
        let mut options = args[4..].iter();
        while let Some(option) = options.next() {
            let value = options.next().filter(|_| is(option, "COUNT")).ok_or(CommandError::Syntax)?;
            count = Some(usize::try_from(parse::integer(value)?.max(0)).unwrap_or(usize::MAX));
        }
        Ok(Self { from, to, count })
    }
}

/// Estimates how many entries `XRANGE`, or `XREVRANGE` if `is_back`, visits.
pub(super) fn effort(object: &Object, args: &[&[u8]], is_back: bool) -> usize {
    let range = Range::parse(args, is_back).ok();
    let found = range
        .zip(Stream::from_object(object))
        .map(|(range, stream)| stream.estimate(range.from, range.to).min(range.count.unwrap_or(usize::MAX)));
    found.unwrap_or(0)
}

fn range(ctx: &mut Context<'_, '_>, args: &[&[u8]], is_back: bool) -> Result<(), CommandError> {
    let Range { from, to, count } = Range::parse(args, is_back)?;
    let Some(stream) = ctx.keys.read::<Stream>(args[1])? else {
        ctx.reply.array(0);
        return Ok(());
    };
    match count {
        Some(0) => ctx.reply.null_array(),
        count if is_back => write_entries(ctx.reply, stream.range_back(from, to), count.unwrap_or(0)),
        count => write_entries(ctx.reply, stream.range(from, to), count.unwrap_or(0)),
    }
    Ok(())
}
