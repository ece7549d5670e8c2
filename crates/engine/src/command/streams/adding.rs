//! `XADD`, `XTRIM`, `XDEL` and `XSETID`.

use super::ids;
use super::replying::write_id;
use crate::command::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::reclaim;
use crate::value::Stream;
use crate::value::stream::{AddError, Id, Keep, NewId, Trim, Trimmed};

/// Most bytes of the names and values of one entry, as in Redis.
const ENTRY_MAX: usize = 1 << 30;

/// Blocks that an approximate trim removes at most, unless a limit is given.
const TRIMMED_BLOCKS: usize = 100;
/// Most entries that this comes to, and their number if blocks have no limit.
const TRIMMED_MAX: u64 = 1_000_000;
const TRIMMED_DEFAULT: u64 = 10_000;

const LIMIT_WITHOUT_SIGN: CommandError =
    CommandError::text("ERR syntax error, LIMIT cannot be used without the special ~ option");

/// Options of `XADD` and `XTRIM`.
struct Options {
    trim: Option<Trim>,
    /// Whether `XADD` does nothing if there is no stream.
    needs_stream: bool,
    /// Of `XADD`: the new ID, and its position.
    id: Option<(NewId, usize)>,
}

impl Options {
    fn parse(args: &[&[u8]], adds: bool, block_entries: usize) -> Result<Self, CommandError> {
        let mut options = Self { trim: None, needs_stream: false, id: None };
        let mut limit = None;
        let mut at = 2;
        while let Some(option) = args.get(at) {
            let more = args.len() - at - 1;
            if adds && *option == b"*" {
                options.id = Some((NewId::Clock, at));
                break;
            } else if more > 0 && (is(option, "MAXLEN") || is(option, "MINID")) {
                at = options.parse_trim(args, at)?;
            } else if more > 0 && is(option, "LIMIT") {
                let value = parse::integer(args[at + 1])?;
                let negative = CommandError::text("ERR The LIMIT argument must be >= 0.");
                limit = Some(u64::try_from(value).map_err(|_| negative)?);
                at += 1;
            } else if adds && is(option, "NOMKSTREAM") {
                options.needs_stream = true;
            } else if adds {
                options.id = Some((ids::new_id(option)?, at));
                break;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        options.limit(limit, adds, block_entries)?;
        Ok(options)
    }

    /// Parses `MAXLEN` or `MINID` at a position. Returns the position of its last argument.
    fn parse_trim(&mut self, args: &[&[u8]], at: usize) -> Result<usize, CommandError> {
        if self.trim.is_some() {
            return Err(CommandError::text(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let has_sign = args.len() > at + 2 && (args[at + 1] == b"~" || args[at + 1] == b"=");
        let last = if has_sign { at + 2 } else { at + 1 };
        let keep = if is(args[at], "MAXLEN") {
            let negative = CommandError::text("ERR The MAXLEN argument must be >= 0.");
            Keep::Newest(u64::try_from(parse::integer(args[last])?).map_err(|_| negative)?)
        } else {
            Keep::From(ids::id(args[last], 0)?)
        };
        self.trim = Some(Trim { keep, is_approximate: has_sign && args[at + 1] == b"~", limit: 0 });
        Ok(last)
    }

    fn limit(&mut self, limit: Option<u64>, adds: bool, block_entries: usize) -> Result<(), CommandError> {
        let Some(trim) = &mut self.trim else {
            if limit.is_some_and(|limit| limit > 0) {
                return Err(CommandError::text(
                    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
                ));
            }
            if !adds {
                return Err(CommandError::text(
                    "ERR syntax error, XTRIM must be called with a trimming strategy",
                ));
            }
            return if limit.is_some() { Err(LIMIT_WITHOUT_SIGN) } else { Ok(()) };
        };
        match limit {
            Some(_) if !trim.is_approximate => return Err(LIMIT_WITHOUT_SIGN),
            Some(limit) => trim.limit = limit,
            None if trim.is_approximate => {
                let entries = block_entries.saturating_mul(TRIMMED_BLOCKS) as u64;
                trim.limit = if entries == 0 { TRIMMED_DEFAULT } else { entries.min(TRIMMED_MAX) };
            }
            None => {}
        }
        Ok(())
    }

    fn trims_approximately(&self) -> bool {
        self.trim.is_some_and(|trim| trim.is_approximate)
    }
}

fn refused(error: AddError) -> CommandError {
    CommandError::text(match error {
        AddError::Exhausted => "ERR The stream has exhausted the last possible ID, unable to add more items",
        AddError::NotGreater => {
            "ERR The ID specified in XADD is equal or smaller than the target stream top item"
        }
    })
}

pub(super) fn xadd(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (now_ms, limits) = (ctx.keys.now_ms(), ctx.keys.stream_limits());
    let options = Options::parse(args, true, limits.entries)?;
    let arity = || CommandError::Arity("xadd".into());
    let (wanted, position) = options.id.ok_or_else(arity)?;
    let (key, fields) = (args[1], &args[position + 1..]);
    if fields.len() < 2 || !fields.len().is_multiple_of(2) {
        return Err(arity());
    }
    if wanted == NewId::Exact(Id::MIN) {
        return Err(CommandError::text("ERR The ID specified in XADD must be greater than 0-0"));
    }
    if fields.iter().map(|field| field.len()).sum::<usize>() > ENTRY_MAX {
        ctx.keys.read::<Stream>(key)?;
        return Err(CommandError::text("ERR Elements are too large to be stored"));
    }
    let add = |stream: &mut Stream| {
        let id = stream.next_id(wanted, now_ms).map_err(refused)?;
        stream.add(id, fields, limits);
        let trimmed = options.trim.map_or(0, |trim| freed(stream.trim(trim)));
        Ok((id, trimmed, stream.len()))
    };
    let added = match ctx.keys.update(key, add)? {
        Some(added) => added?,
        None if options.needs_stream => {
            ctx.reply.null();
            return Ok(());
        }
        // Any ID but the smallest is free in a stream that begins.
        None => ctx.keys.upsert(key, add)??,
    };
    let (id, trimmed, length) = added;
    write_id(ctx.reply, id);
    ctx.keys.changed(key, "xadd");
    if trimmed > 0 {
        ctx.keys.happened(key, "xtrim");
    }
    let id = id.text();
    if options.trims_approximately() {
        let length = length.to_string();
        let trim: &[&[u8]] = if trimmed > 0 { &[b"MAXLEN", b"=", length.as_bytes()] } else { &[] };
        ctx.keys.log_instead("xadd", &[&[key], trim, &[id.as_bytes()], fields].concat());
    } else if !matches!(wanted, NewId::Exact(_)) {
        ctx.keys.log_with(position, id.as_bytes());
    }
    Ok(())
}

/// Frees what a trim has removed, on another thread if that takes long. Returns the number of entries.
fn freed(trimmed: Trimmed) -> u64 {
    let entries = trimmed.entries;
    if trimmed.is_large() {
        reclaim(trimmed, 1);
    }
    entries
}

pub(super) fn xtrim(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(args, false, ctx.keys.stream_limits().entries)?;
    let Some(trim) = options.trim else { return Err(CommandError::Syntax) };
    let trimmed = ctx.keys.update(args[1], |stream: &mut Stream| (freed(stream.trim(trim)), stream.len()))?;
    let (trimmed, length) = trimmed.unwrap_or((0, 0));
    if trimmed > 0 {
        ctx.keys.changed(args[1], "xtrim");
        if options.trims_approximately() {
            let length = length.to_string();
            ctx.keys.log_instead("xtrim", &[args[1], b"MAXLEN", b"=", length.as_bytes()]);
        }
    }
    ctx.reply.integer(i64::try_from(trimmed).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn xdel(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    if ctx.keys.read::<Stream>(args[1])?.is_none() {
        ctx.reply.integer(0);
        return Ok(());
    }
    let ids = ids::all(&args[2..])?;
    let delete = |stream: &mut Stream| ids.iter().filter(|id| stream.delete(**id)).count();
    let deleted = ctx.keys.update(args[1], delete)?.unwrap_or(0);
    if deleted > 0 {
        ctx.keys.changed(args[1], "xdel");
    }
    ctx.reply.count(deleted);
    Ok(())
}

pub(super) fn xsetid(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let last = ids::id(args[2], 0)?;
    let (mut added, mut max_deleted) = (None, None);
    let mut at = 3;
    while let Some(option) = args.get(at) {
        let value = args.get(at + 1).ok_or(CommandError::Syntax)?;
        if is(option, "ENTRIESADDED") {
            let negative = CommandError::text("ERR entries_added must be positive");
            added = Some(u64::try_from(parse::integer(value)?).map_err(|_| negative)?);
        } else if is(option, "MAXDELETEDID") {
            max_deleted = Some(ids::id(value, 0)?);
            if max_deleted > Some(last) {
                return Err(CommandError::text(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                ));
            }
        } else {
            return Err(CommandError::Syntax);
        }
        at += 2;
    }
    let stream = ctx.keys.read::<Stream>(args[1])?.ok_or(CommandError::NoSuchKey)?;
    if stream.last_entry().is_some_and(|entry| last < entry) {
        return Err(CommandError::text(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if !stream.has_no_entries() && added.is_some_and(|added| added < stream.len() as u64) {
        return Err(CommandError::text(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    let max_deleted = max_deleted.filter(|id| *id != Id::MIN);
    ctx.keys.update(args[1], |stream: &mut Stream| stream.continue_from(last, added, max_deleted))?;
    ctx.keys.changed(args[1], "xsetid");
    ctx.reply.ok();
    Ok(())
}
