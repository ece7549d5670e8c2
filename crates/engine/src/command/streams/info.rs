//! `XINFO`: how a stream and its groups stand.

use super::groups::{misused, no_group};
use super::replying::{write_entries, write_entry, write_id};
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Stream;
use crate::value::stream::{Consumer, Group, Id, Pending};
use crate::wire::reply::Reply;

/// Entries, and pending entries of each group and consumer, that `FULL` shows unless a count is given.
const SHOWN: usize = 10;

fn number(reply: &mut Reply, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
}

fn id(reply: &mut Reply, name: &str, id: Id) {
    reply.bulk(name.as_bytes());
    write_id(reply, id);
}

fn number_or_null(reply: &mut Reply, name: &str, value: Option<i64>) {
    reply.bulk(name.as_bytes());
    match value {
        Some(value) => reply.integer(value),
        None => reply.null(),
    }
}

pub(super) fn stream(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let stream = ctx.keys.read::<Stream>(args[2])?.ok_or(CommandError::NoSuchKey)?;
    let full = match args[3..] {
        [] => None,
        [word] if is(word, "FULL") => Some(SHOWN),
        [word, option, count] if is(word, "FULL") && is(option, "COUNT") => {
            Some(usize::try_from(parse::integer(count)?).unwrap_or(SHOWN))
        }
        _ => return Err(misused(args)),
    };
    let reply = &mut *ctx.reply;
    reply.map(if full.is_some() { 9 } else { 10 });
    number(reply, "length", stream.len() as u64);
    // Blocks are what Redis has in a radix tree: as many keys, and a root above them.
    number(reply, "radix-tree-keys", stream.blocks() as u64);
    number(reply, "radix-tree-nodes", stream.blocks() as u64 + 1);
    id(reply, "last-generated-id", stream.last());
    id(reply, "max-deleted-entry-id", stream.max_deleted());
    number(reply, "entries-added", stream.added());
    id(reply, "recorded-first-entry-id", stream.first());
    match full {
        None => write_ends(reply, stream),
        Some(count) => {
            reply.bulk(b"entries");
            write_entries(reply, stream.range(Id::MIN, Id::MAX), count);
            reply.bulk(b"groups");
            reply.array(stream.groups().len());
            let most = if count == 0 { usize::MAX } else { count };
            stream.groups().for_each(|(name, group)| write_group(reply, stream, name, group, most));
        }
    }
    Ok(())
}

fn write_ends(reply: &mut Reply, stream: &Stream) {
    number(reply, "groups", stream.groups().len() as u64);
    let ends = [
        ("first-entry", stream.range(Id::MIN, Id::MAX).next()),
        ("last-entry", stream.range_back(Id::MIN, Id::MAX).next()),
    ];
    for (name, entry) in ends {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => write_entry(reply, entry),
            None => reply.null(),
        }
    }
}

fn write_group(reply: &mut Reply, stream: &Stream, name: &[u8], group: &Group, most: usize) {
    reply.map(7);
    reply.bulk(b"name");
    reply.bulk(name);
    write_progress(reply, stream, group);
    number(reply, "pel-count", group.pending() as u64);
    reply.bulk(b"pending");
    let shown = |reply: &mut Reply, pending: &Pending| {
        reply.integer(i64::try_from(pending.delivered_ms).unwrap_or(i64::MAX));
        reply.integer(i64::try_from(pending.deliveries).unwrap_or(i64::MAX));
    };
    reply.array(group.pending().min(most));
    for pending in group.pending_from(Id::MIN).take(most) {
        reply.array(4);
        write_id(reply, pending.id);
        reply.bulk(group.owner(pending));
        shown(reply, pending);
    }
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        number(reply, "seen-time", consumer.seen_ms());
        number(reply, "pel-count", consumer.pending() as u64);
        reply.bulk(b"pending");
        reply.array(consumer.pending().min(most));
        for pending in group.pending_of(consumer, Id::MIN).take(most) {
            reply.array(3);
            write_id(reply, pending.id);
            shown(reply, pending);
        }
    }
}

/// Writes what a group has read, and how much is ahead of it.
fn write_progress(reply: &mut Reply, stream: &Stream, group: &Group) {
    id(reply, "last-delivered-id", group.last());
    let read = group.entries_read().map(|read| i64::try_from(read).unwrap_or(i64::MAX));
    number_or_null(reply, "entries-read", read);
    number_or_null(reply, "lag", stream.lag(group));
}

pub(super) fn groups(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let stream = ctx.keys.read::<Stream>(args[2])?.ok_or(CommandError::NoSuchKey)?;
    let reply = &mut *ctx.reply;
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        number(reply, "consumers", group.consumers().len() as u64);
        number(reply, "pending", group.pending() as u64);
        write_progress(reply, stream, group);
    }
    Ok(())
}

pub(super) fn consumers(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let stream = ctx.keys.read::<Stream>(args[2])?.ok_or(CommandError::NoSuchKey)?;
    let group = stream.group(args[3]).ok_or_else(|| no_group(args[2], args[3]))?;
    let (reply, now_ms) = (&mut *ctx.reply, ctx.keys.now_ms());
    reply.array(group.consumers().len());
    let idle = |consumer: &Consumer| now_ms.saturating_sub(consumer.seen_ms());
    for consumer in group.consumers() {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        number(reply, "pending", consumer.pending() as u64);
        number(reply, "idle", idle(consumer));
    }
    Ok(())
}
