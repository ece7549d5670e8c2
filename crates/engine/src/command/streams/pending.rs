//! `XPENDING`: what a group was delivered and has not acknowledged.

use super::ids;
use super::replying::write_id;
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Stream;
use crate::value::stream::{Group, Id};
use crate::wire::reply::Reply;

/// The error of a group that is not there, of the commands that name its key first.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    CommandError::Text(format!("NOGROUP No such key '{key}' or consumer group '{group}'").into())
}

/// Which pending entries are asked for.
struct Range<'a> {
    min_idle_ms: u64,
    from: Id,
    to: Id,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Range<'a> {
    /// Parses the arguments behind the group.
    fn parse(args: &[&'a [u8]]) -> Result<Self, CommandError> {
        if !(3..=6).contains(&args.len()) {
            return Err(CommandError::Syntax);
        }
        let (mut rest, mut min_idle_ms) = (args, 0);
        if is(args[0], "IDLE") {
            min_idle_ms = u64::try_from(parse::integer(args[1])?).unwrap_or(0);
            rest = &args[2..];
        }
        let [from, to, count, consumer @ ..] = rest else { return Err(CommandError::Syntax) };
        let count = usize::try_from(parse::integer(count)?.max(0)).unwrap_or(usize::MAX);
        let (from, to) = (ids::start(from)?, ids::end(to)?);
        Ok(Self { min_idle_ms, from, to, count, consumer: consumer.first().copied() })
    }
}

pub(super) fn xpending(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let range = if args.len() == 3 { None } else { Some(Range::parse(&args[3..])?) };
    let stream = ctx.keys.read::<Stream>(args[1])?;
    let group = stream.and_then(|stream| stream.group(args[2]));
    let group = group.ok_or_else(|| no_key_or_group(args[1], args[2]))?;
    match range {
        None => write_summary(ctx.reply, group),
        Some(range) => write_range(ctx.reply, group, &range, ctx.keys.now_ms()),
    }
    Ok(())
}

fn write_summary(reply: &mut Reply, group: &Group) {
    reply.array(4);
    reply.count(group.pending());
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    write_id(reply, first);
    write_id(reply, last);
    let with_some = || group.consumers().filter(|consumer| consumer.pending() > 0);
    reply.array(with_some().count());
    for consumer in with_some() {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(i64::try_from(consumer.pending()).unwrap_or(i64::MAX));
    }
}

fn write_range(reply: &mut Reply, group: &Group, range: &Range<'_>, now_ms: u64) {
    let consumer = range.consumer.map(|name| group.consumer(name));
    let pending: Box<dyn Iterator<Item = _>> = match consumer {
        Some(None) => Box::new(std::iter::empty()),
        Some(Some(consumer)) => Box::new(group.pending_of(consumer, range.from)),
        None => Box::new(group.pending_from(range.from)),
    };
    let idle_ms = |delivered_ms: u64| now_ms.saturating_sub(delivered_ms);
    let found: Vec<_> = pending
        .take_while(|pending| pending.id <= range.to)
        .filter(|pending| range.min_idle_ms == 0 || idle_ms(pending.delivered_ms) >= range.min_idle_ms)
        .take(range.count)
        .collect();
    reply.array(found.len());
    for pending in found {
        reply.array(4);
        write_id(reply, pending.id);
        reply.bulk(group.owner(pending));
        reply.count(usize::try_from(idle_ms(pending.delivered_ms)).unwrap_or(usize::MAX));
        reply.count(usize::try_from(pending.deliveries).unwrap_or(usize::MAX));
    }
}
