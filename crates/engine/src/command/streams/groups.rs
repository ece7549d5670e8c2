//! `XGROUP` and `XACK`.

use super::ids;
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::reclaim;
use crate::value::Stream;
use crate::value::stream::{Group, Id};
use crate::watch::touched::Touched;

/// Returns the error of arguments that a subcommand does not take.
pub(super) fn misused(args: &[&[u8]]) -> CommandError {
    let name = String::from_utf8_lossy(&args[1][..args[1].len().min(128)]).into_owned();
    let container = String::from_utf8_lossy(args[0]).to_ascii_uppercase();
    let text =
        format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try {container} HELP.");
    CommandError::Text(text.into())
}

/// Returns the error of a group that a stream does not have.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    CommandError::Text(format!("NOGROUP No such consumer group '{group}' for key name '{key}'").into())
}

const NO_KEY: CommandError = CommandError::text(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
     MKSTREAM option to create an empty stream automatically.",
);

/// Options of `CREATE` and `SETID`.
struct Options {
    makes_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(args: &[&[u8]], creates: bool) -> Result<Self, CommandError> {
        let mut options = Self { makes_stream: false, entries_read: None };
        let mut at = 5;
        while let Some(option) = args.get(at) {
            match args.get(at + 1) {
                _ if creates && is(option, "MKSTREAM") => options.makes_stream = true,
                Some(value) if is(option, "ENTRIESREAD") => {
                    let read = parse::integer(value)?;
                    if read < -1 {
                        return Err(CommandError::text("ERR value for ENTRIESREAD must be positive or -1"));
                    }
                    options.entries_read = u64::try_from(read).ok();
                    at += 1;
                }
                _ => return Err(misused(args)),
            }
            at += 1;
        }
        Ok(options)
    }
}

/// Refuses options in excess, in Redis only after it has looked for the key and the group.
fn check_count(args: &[&[u8]], most: usize) -> Result<(), CommandError> {
    if args.len() > most { Err(misused(args)) } else { Ok(()) }
}

/// Returns the stream of a subcommand that needs a group, once the group is there.
fn check_group(ctx: &Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let stream = ctx.keys.read::<Stream>(args[2])?.ok_or(NO_KEY)?;
    stream.group(args[3]).map(|_| ()).ok_or_else(|| no_group(args[2], args[3]))
}

pub(super) fn create(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(args, true)?;
    let (key, group) = (args[2], args[3]);
    let stream = ctx.keys.read::<Stream>(key)?;
    if stream.is_none() && !options.makes_stream {
        return Err(NO_KEY);
    }
    check_count(args, 8)?;
    let last = match args[4] {
        b"$" => stream.map_or(Id::MIN, Stream::last),
        id => ids::id(id, 0)?,
    };
    let create = |stream: &mut Stream| stream.create_group(group, last, options.entries_read);
    if !ctx.keys.upsert(key, create)? {
        return Err(CommandError::text("BUSYGROUP Consumer Group name already exists"));
    }
    ctx.keys.changed(key, "xgroup-create");
    ctx.reply.ok();
    Ok(())
}

pub(super) fn set_id(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(args, false)?;
    check_group(ctx, args)?;
    check_count(args, 7)?;
    let (key, group) = (args[2], args[3]);
    let last = match args[4] {
        b"$" => ctx.keys.read::<Stream>(key)?.map_or(Id::MIN, Stream::last),
        id => ids::id_or_end(id, 0)?,
    };
    ctx.keys.update(key, |stream: &mut Stream| stream.set_group(group, last, options.entries_read))?;
    ctx.keys.changed(key, "xgroup-setid");
    ctx.reply.ok();
    Ok(())
}

pub(super) fn destroy(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let destroyed = ctx.keys.update(args[2], |stream: &mut Stream| stream.delete_group(args[3]))?;
    let destroyed = destroyed.ok_or(NO_KEY)?;
    if destroyed.is_some() {
        ctx.keys.changed(args[2], "xgroup-destroy");
    }
    ctx.reply.integer(i64::from(destroyed.is_some()));
    if let Some(group) = destroyed.filter(Group::is_large) {
        reclaim(group, 1);
    }
    Ok(())
}

pub(super) fn create_consumer(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    check_group(ctx, args)?;
    let now_ms = ctx.keys.now_ms();
    let created = ctx.keys.update(args[2], |stream: &mut Stream| {
        stream.group_mut(args[3]).and_then(|group| group.create_consumer(args[4], now_ms)).is_some()
    })?;
    let created = created.unwrap_or(false);
    if created {
        ctx.keys.changed(args[2], "xgroup-createconsumer");
    }
    ctx.reply.integer(i64::from(created));
    Ok(())
}

pub(super) fn delete_consumer(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    check_group(ctx, args)?;
    let deleted = ctx.keys.update(args[2], |stream: &mut Stream| {
        stream.group_mut(args[3]).and_then(|group| group.delete_consumer(args[4]))
    })?;
    let deleted = deleted.flatten();
    if deleted.is_some() {
        ctx.keys.changed(args[2], "xgroup-delconsumer");
    }
    ctx.reply.count(deleted.unwrap_or(0));
    Ok(())
}

pub(super) fn xack(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let stream = ctx.keys.read::<Stream>(args[1])?;
    if stream.and_then(|stream| stream.group(args[2])).is_none() {
        ctx.reply.integer(0);
        return Ok(());
    }
    let ids = ids::all(&args[3..])?;
    let acknowledged = ctx.keys.update(args[1], |stream: &mut Stream| {
        let group = stream.group_mut(args[2]);
        group.map_or(0, |group| ids.iter().filter(|id| group.acknowledge(**id)).count())
    })?;
    let acknowledged = acknowledged.unwrap_or(0);
    if acknowledged > 0 {
        ctx.keys.changed_unannounced(args[1], || Touched::Everything);
    }
    ctx.reply.count(acknowledged);
    Ok(())
}
