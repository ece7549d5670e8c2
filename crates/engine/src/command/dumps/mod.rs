//! `DUMP` and `RESTORE`: values as bytes that Redis 7 reads and writes.

pub(super) mod rows;

use super::parse::{self, is};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Deadline, Payload};
use crate::rdb::{self, RdbError, Restored};

fn dump(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Some(entry) = ctx.keys.entry(args[1]) else {
        ctx.reply.null();
        return Ok(());
    };
    let mut payload = Vec::new();
    rdb::encode(entry.value(), &mut payload).map_err(RdbError::refusal)?;
    rdb::seal(&mut payload);
    ctx.reply.bulk(&payload);
    Ok(())
}

/// Options of RESTORE.
#[derive(Debug, Default)]
struct Options {
    replace: bool,
    /// Whether the time to live is a time.
    is_absolute: bool,
    /// Seconds since the last access.
    idle: Option<u64>,
    /// How often the key is used. Checked, and not kept: keys are not evicted by use.
    frequency: Option<i64>,
}

impl Options {
    fn parse(mut args: &[&[u8]]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [option, rest @ ..] = args {
            args = match rest {
                _ if is(option, "REPLACE") => {
                    options.replace = true;
                    rest
                }
                _ if is(option, "ABSTTL") => {
                    options.is_absolute = true;
                    rest
                }
                [seconds, rest @ ..] if is(option, "IDLETIME") && options.frequency.is_none() => {
                    let seconds = u64::try_from(parse::integer(seconds)?)
                        .map_err(|_| CommandError::text("ERR Invalid IDLETIME value, must be >= 0"))?;
                    options.idle = Some(seconds);
                    rest
                }
                [frequency, rest @ ..] if is(option, "FREQ") && options.idle.is_none() => {
                    let frequency = parse::integer(frequency)?;
                    if !(0..=255).contains(&frequency) {
                        return Err(CommandError::text("ERR Invalid FREQ value, must be >= 0 and <= 255"));
                    }
                    options.frequency = Some(frequency);
                    rest
                }
                _ => return Err(CommandError::Syntax),
            };
        }
        Ok(options)
    }
}

fn restore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, payload) = (args[1], args[3]);
    let options = Options::parse(&args[4..])?;
    let exists = ctx.keys.exists(key);
    if exists && !options.replace {
        return Err(CommandError::text("BUSYKEY Target key name already exists."));
    }
    let ttl = u64::try_from(parse::integer(args[2])?)
        .map_err(|_| CommandError::text("ERR Invalid TTL value, must be >= 0"))?;
    let value = rdb::open(payload).and_then(rdb::decode).map_err(RdbError::refusal)?;
    let now_ms = ctx.keys.now_ms();
    let base_ms = if options.is_absolute { 0 } else { now_ms };
    let deadline = (ttl > 0).then(|| ttl.saturating_add(base_ms).min(i64::MAX.unsigned_abs()));
    if deadline.is_some_and(|at| at <= now_ms) {
        if ctx.keys.remove(key) {
            ctx.keys.changed(key, "del");
        }
        ctx.reply.ok();
        return Ok(());
    }
    // Not only the value is replaced: links of the old one are cut, and its deadline ends.
    ctx.keys.remove(key);
    let deadline = deadline.map_or(Deadline::Clear, Deadline::At);
    match value {
        Restored::String(text) => ctx.keys.set_string(key, &text, deadline),
        Restored::Object(object) => ctx.keys.set(key, Payload::Object(Box::new(object)), deadline),
    }
    let clock = ctx.keys.clock();
    if let (Some(idle), Some(entry)) = (options.idle, ctx.keys.peek(key)) {
        entry.touch(clock.saturating_sub(u32::try_from(idle).unwrap_or(u32::MAX)));
    }
    ctx.keys.changed(key, "restore");
    ctx.reply.ok();
    Ok(())
}
