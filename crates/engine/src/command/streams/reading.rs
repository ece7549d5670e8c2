//! `XREAD` and `XREADGROUP`: entries behind an ID, for which a client may wait.
//!
//! What `XREADGROUP` delivers follows from the stream, its arguments and the time, so its record is the
//! command itself: for each stream that it has changed, without a wait.

use super::ids;
use super::replying::{write_entries, write_entry, write_id};
use crate::blocking::waiter::Block;
use crate::command::parse::{self, is};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::value::stream::{Group, Id, IdText};
use crate::value::{Object, Stream, TypedValue};
use crate::watch::touched::Touched;
use crate::wire::reply::{Protocol, Reply};

/// Most entries that a client gets which has waited, unless it says otherwise.
const WAITED_MAX: usize = 1000;

/// A read as a client asks for it.
struct Request<'a, 'b> {
    /// Group and consumer, of `XREADGROUP`.
    group: Option<(&'b [u8], &'b [u8])>,
    /// Whether delivered entries become pending.
    acknowledging: bool,
    /// How long to wait, if at all, in milliseconds; 0 waits for ever.
    wait_ms: Option<u64>,
    /// Most entries of each stream; 0 for all.
    count: usize,
    keys: &'a [&'b [u8]],
    ids: &'a [&'b [u8]],
    /// Position of the first ID.
    ids_at: usize,
}

impl<'a, 'b> Request<'a, 'b> {
    fn parse(args: &'a [&'b [u8]], is_of_group: bool) -> Result<Self, CommandError> {
        let (mut group, mut acknowledging, mut wait_ms, mut count) = (None, true, None, 0);
        let mut streams = None;
        let mut at = 1;
        while let Some(option) = args.get(at) {
            let more = args.len() - at - 1;
            if more > 0 && is(option, "BLOCK") {
                wait_ms = Some(wait(args[at + 1])?);
                at += 1;
            } else if more > 0 && is(option, "COUNT") {
                count = usize::try_from(parse::integer(args[at + 1])?.max(0)).unwrap_or(usize::MAX);
                at += 1;
            } else if more > 0 && is(option, "STREAMS") {
                if !more.is_multiple_of(2) {
                    return Err(CommandError::text(
                        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be \
                         specified.",
                    ));
                }
                streams = Some(at + 1);
                break;
            } else if more > 1 && is(option, "GROUP") {
                if !is_of_group {
                    return Err(CommandError::text(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                group = Some((args[at + 1], args[at + 2]));
                at += 2;
            } else if is(option, "NOACK") {
                if !is_of_group {
                    return Err(CommandError::text(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                acknowledging = false;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        let first = streams.ok_or(CommandError::Syntax)?;
        if is_of_group && group.is_none() {
            return Err(CommandError::text("ERR Missing GROUP option for XREADGROUP"));
        }
        let (keys, ids) = args[first..].split_at((args.len() - first) / 2);
        Ok(Self { group, acknowledging, wait_ms, count, keys, ids, ids_at: first + keys.len() })
    }

    /// Most entries that a client gets which has waited.
    fn waited_count(&self) -> usize {
        if self.count == 0 { WAITED_MAX } else { self.count }
    }

    /// Logs what was read for a group from one stream.
    fn log(&self, keys: &mut Keys<'_>, key: &[u8], wanted: Wanted, count: usize) {
        let Some((group, consumer)) = self.group else { return };
        let id = match wanted {
            Wanted::New => None,
            Wanted::History(behind) => Some(behind.text()),
        };
        let id = id.as_ref().map_or(&b">"[..], IdText::as_bytes);
        // A count beyond this is that of all.
        let count = i64::try_from(count).unwrap_or(0).to_string();
        let options: &[&[u8]] = if self.acknowledging { &[] } else { &[b"NOACK"] };
        let before: &[&[u8]] = &[b"GROUP", group, consumer, b"COUNT", count.as_bytes()];
        keys.log_instead("xreadgroup", &[before, options, &[b"STREAMS", key, id]].concat());
    }

    /// Returns the ID that goes with a key.
    fn id_of(&self, key: &[u8]) -> Option<&'b [u8]> {
        self.keys.iter().position(|other| *other == key).and_then(|at| self.ids.get(at)).copied()
    }
}

/// Parses a time to wait, in milliseconds.
fn wait(arg: &[u8]) -> Result<u64, CommandError> {
    let wrong = CommandError::text("ERR timeout is not an integer or out of range");
    let ms = parse::canonical_integer(arg).ok_or(wrong)?;
    u64::try_from(ms).map_err(|_| CommandError::text("ERR timeout is negative"))
}

/// Returns the ID behind which `XREAD` reads.
fn read_from(arg: &[u8], stream: Option<&Stream>) -> Result<Id, CommandError> {
    match arg {
        b"$" => Ok(stream.map_or(Id::MIN, Stream::last)),
        // The last entry, as in Redis 7.4.
        b"+" => Ok(stream
            .map_or(Id::MIN, |stream| stream.last_entry().and_then(Id::previous).unwrap_or(stream.last()))),
        b">" => Err(CommandError::text(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> \
             option.",
        )),
        arg => ids::id(arg, 0),
    }
}

/// Refuses an `XREAD` that cannot be watched: one that waits, or whose IDs move with the streams.
pub(crate) fn check_repeatable(args: &[&[u8]]) -> Result<(), CommandError> {
    let request = Request::parse(args, false)?;
    let moves = request.ids.iter().any(|id| matches!(*id, b"$" | b"+"));
    if moves || request.wait_ms.is_some() {
        return Err(CommandError::text(
            "ERR XREAD is watched from an ID on, such as 0 or that of the last entry received, without BLOCK",
        ));
    }
    Ok(())
}

/// Estimates how many entries of a stream `XREAD` or `XREADGROUP` visits, unless it may wait.
pub(super) fn effort(object: &Object, args: &[&[u8]], is_of_group: bool) -> usize {
    let (Some(stream), Ok(request)) = (Stream::from_object(object), Request::parse(args, is_of_group)) else {
        return 0;
    };
    if request.wait_ms.is_some() {
        return 0;
    }
    // Which of the streams it is, is not known here.
    let behind = |id: &&[u8]| match (*id, request.group) {
        (b">", Some((group, _))) => stream.group(group).map(Group::last),
        (id, _) => ids::id(id, 0).ok(),
    };
    let behind = request.ids.iter().filter_map(behind).min();
    let entries = behind.map_or(0, |behind| stream.estimate(behind, Id::MAX));
    if request.count == 0 { entries } else { entries.min(request.count) }
}

/// Writes how many streams follow, each by [`write_key`].
fn write_head(reply: &mut Reply, streams: usize) {
    match reply.protocol() {
        Protocol::Resp2 => reply.array(streams),
        Protocol::Resp3 => reply.map(streams),
    }
}

/// Writes a stream's key; its entries follow.
fn write_key(reply: &mut Reply, key: &[u8]) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key);
}

/// Whether a stream has entries behind an ID.
fn has_more(stream: Option<&Stream>, behind: Id) -> bool {
    stream.and_then(Stream::last_entry).is_some_and(|last| last > behind)
}

pub(super) fn xread(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let request = Request::parse(args, false)?;
    let mut behind = Vec::with_capacity(request.ids.len());
    let mut found = 0;
    for (key, id) in request.keys.iter().zip(request.ids) {
        let stream = ctx.keys.read::<Stream>(key)?;
        let id = read_from(id, stream)?;
        found += usize::from(has_more(stream, id));
        behind.push(id);
    }
    if found > 0 {
        write_head(ctx.reply, found);
        for (key, id) in request.keys.iter().zip(behind) {
            write_behind(ctx, key, id, request.count)?;
        }
        return Ok(());
    }
    let Some(wait_ms) = request.wait_ms else {
        ctx.reply.null_array();
        return Ok(());
    };
    let mut resolved: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
    for (into, id) in resolved[request.ids_at..].iter_mut().zip(behind) {
        *into = id.text().as_bytes().to_vec();
    }
    let timeout_ms = Some(wait_ms).filter(|ms| *ms > 0);
    ctx.keys.block(Block::new(Stream::TYPE, request.keys, timeout_ms).reading(resolved));
    Ok(())
}

/// Writes a stream's key and its entries behind an ID, if there are any.
fn write_behind(ctx: &mut Context<'_, '_>, key: &[u8], behind: Id, count: usize) -> Result<(), CommandError> {
    let Some((stream, from)) = ctx.keys.read::<Stream>(key)?.zip(behind.next()) else { return Ok(()) };
    if has_more(Some(stream), behind) {
        write_key(ctx.reply, key);
        write_entries(ctx.reply, stream.range(from, Id::MAX), count);
    }
    Ok(())
}

/// Whether a client of `XREAD` that waits has something to read.
pub(super) fn is_readable(keys: &Keys<'_>, key: &[u8], args: &[&[u8]]) -> bool {
    let Ok(request) = Request::parse(args, false) else { return true };
    let stream = keys.read::<Stream>(key).ok().flatten();
    let behind = request.id_of(key).and_then(|id| read_from(id, stream).ok());
    behind.is_some_and(|behind| has_more(stream, behind))
}

/// Answers a client of `XREAD` that has waited.
pub(super) fn serve_xread(ctx: &mut Context<'_, '_>, key: &[u8], args: &[&[u8]]) -> Result<(), CommandError> {
    if !is_readable(ctx.keys, key, args) {
        // The time to wait is over.
        ctx.reply.null_array();
        return Ok(());
    }
    let request = Request::parse(args, false)?;
    let behind = read_from(request.id_of(key).ok_or(CommandError::Syntax)?, None)?;
    write_head(ctx.reply, 1);
    write_behind(ctx, key, behind, request.waited_count())
}

/// What `XREADGROUP` reads of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Entries that no consumer has got.
    New,
    /// Pending entries of the consumer behind an ID.
    History(Id),
}

impl Wanted {
    fn parse(arg: &[u8]) -> Result<Self, CommandError> {
        match arg {
            b"$" => Err(CommandError::text(
                "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
                 this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID \
                 would just return an empty result set.",
            )),
            b">" => Ok(Self::New),
            arg => match ids::id(arg, 0)? {
                // As in Redis, where this ID stands for `>`.
                Id::MAX => Ok(Self::New),
                id => Ok(Self::History(id)),
            },
        }
    }
}

fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    let text =
        format!("NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option");
    CommandError::Text(text.into())
}

pub(super) fn xreadgroup(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let request = Request::parse(args, true)?;
    let (group, _) = request.group.ok_or(CommandError::Syntax)?;
    let mut wanted = Vec::with_capacity(request.ids.len());
    for (key, id) in request.keys.iter().zip(request.ids) {
        let stream = ctx.keys.read::<Stream>(key)?;
        if stream.and_then(|stream| stream.group(group)).is_none() {
            return Err(no_group(key, group));
        }
        wanted.push(Wanted::parse(id)?);
    }
    let mut body = ctx.reply.apart();
    let mut found = 0;
    for (key, wanted) in request.keys.iter().zip(wanted) {
        let mut ctx = Context { keys: &mut *ctx.keys, reply: &mut body };
        let outcome = read_one(&mut ctx, &request, key, wanted, request.count)?;
        found += usize::from(outcome != Outcome::Nothing);
        if outcome == Outcome::Changed && request.keys.len() > 1 {
            request.log(ctx.keys, key, wanted, request.count);
        }
    }
    if found > 0 {
        write_head(ctx.reply, found);
        ctx.reply.encoded(body.bytes());
        if body.has_overflowed() {
            ctx.reply.overflow();
        }
        return Ok(());
    }
    match request.wait_ms {
        Some(wait_ms) => {
            let timeout_ms = Some(wait_ms).filter(|ms| *ms > 0);
            ctx.keys.block(Block::new(Stream::TYPE, request.keys, timeout_ms).when_ready());
        }
        None => ctx.reply.null_array(),
    }
    Ok(())
}

/// What a read from one stream has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// There is nothing to answer.
    Nothing,
    /// The answer is written.
    Answered,
    /// The answer is written, and entries were delivered or a consumer was created.
    Changed,
}

/// Reads from one stream, whose group is there.
fn read_one(
    ctx: &mut Context<'_, '_>,
    request: &Request<'_, '_>,
    key: &[u8],
    wanted: Wanted,
    count: usize,
) -> Result<Outcome, CommandError> {
    let (group, consumer) = request.group.ok_or(CommandError::Syntax)?;
    let (now_ms, acknowledging) = (ctx.keys.now_ms(), request.acknowledging);
    let most = if count == 0 { usize::MAX } else { count };
    let reply = &mut *ctx.reply;
    let read = ctx.keys.update(key, |stream: &mut Stream| match wanted {
        Wanted::New => {
            let entries = stream.undelivered(stream.group(group)?);
            let ids: Vec<Id> = entries.clone().take(most).map(|entry| entry.id()).collect();
            (!ids.is_empty()).then_some(())?;
            write_key(reply, key);
            reply.array(ids.len());
            entries.take(ids.len()).for_each(|entry| write_entry(reply, entry));
            let is_new = stream.deliver(group, consumer, &ids, acknowledging, now_ms)?;
            Some((is_new, true))
        }
        Wanted::History(behind) => {
            let is_new = stream.deliver(group, consumer, &[], false, now_ms)?;
            write_key(reply, key);
            let redelivered = write_history(reply, stream, (group, consumer), behind, most);
            let group = stream.group_mut(group)?;
            redelivered.iter().for_each(|id| group.redeliver(*id, now_ms));
            Some((is_new, is_new || !redelivered.is_empty()))
        }
    })?;
    let Some((is_new, has_changed)) = read.flatten() else { return Ok(Outcome::Nothing) };
    if has_changed {
        ctx.keys.changed_unannounced(key, || Touched::Everything);
    }
    if is_new {
        ctx.keys.happened(key, "xgroup-createconsumer");
    }
    Ok(if has_changed { Outcome::Changed } else { Outcome::Answered })
}

/// Writes pending entries of a consumer. Returns those that are still in the stream.
fn write_history(
    reply: &mut Reply,
    stream: &Stream,
    (group, consumer): (&[u8], &[u8]),
    behind: Id,
    most: usize,
) -> Vec<Id> {
    let found = stream.group(group).and_then(|group| Some((group, group.consumer(consumer)?)));
    let Some(((group, consumer), from)) = found.zip(behind.next()) else {
        reply.array(0);
        return Vec::new();
    };
    let ids: Vec<Id> = group.pending_of(consumer, from).take(most).map(|pending| pending.id).collect();
    reply.array(ids.len());
    let is_there = |id: &Id| match stream.get(*id) {
        Some(entry) => {
            write_entry(reply, entry);
            true
        }
        None => {
            reply.array(2);
            write_id(reply, *id);
            reply.null_array();
            false
        }
    };
    ids.into_iter().filter(is_there).collect()
}

/// Whether a client of `XREADGROUP` that waits can be answered: with new entries, or with the error that
/// the group is gone.
pub(super) fn is_deliverable(keys: &Keys<'_>, key: &[u8], args: &[&[u8]]) -> bool {
    let group = Request::parse(args, true).ok().and_then(|request| request.group);
    let Some(((group, _), Ok(Some(stream)))) = group.map(|group| (group, keys.read::<Stream>(key))) else {
        return true;
    };
    stream.group(group).is_none_or(|group| stream.has_undelivered(group))
}

/// Answers a client of `XREADGROUP` that has waited.
pub(super) fn serve_xreadgroup(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    args: &[&[u8]],
) -> Result<(), CommandError> {
    let request = Request::parse(args, true)?;
    let (group, _) = request.group.ok_or(CommandError::Syntax)?;
    let Ok(Some(stream)) = ctx.keys.read::<Stream>(key) else {
        return Err(CommandError::text("UNBLOCKED the stream key no longer exists"));
    };
    if stream.group(group).is_none() {
        return Err(CommandError::text(
            "NOGROUP the consumer group this client was blocked on no longer exists",
        ));
    }
    write_head(ctx.reply, 1);
    let count = request.waited_count();
    let outcome = read_one(ctx, &request, key, Wanted::New, count)?;
    assert!(outcome == Outcome::Changed, "a client is served {outcome:?}, which waits for new entries");
    request.log(ctx.keys, key, Wanted::New, count);
    Ok(())
}
