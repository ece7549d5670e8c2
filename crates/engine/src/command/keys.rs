//! Keys of any type: existence, lifetime, names.

use super::parse::{self, is};
use super::{Answer, Command, Group, Handler, KeySpec, Misses, Run, WriteReach, flags::*};
use crate::context::{Context, without_links};
use crate::error::CommandError;
use crate::keyspace::{Entry, form};
use crate::value::Type;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Generic, id, name, arity, flags, keys, Run::Keys(run))
}

const EXPIRE_SYNTAX: [&str; 4] = [
    "key seconds [NX | XX | GT | LT]",
    "key milliseconds [NX | XX | GT | LT]",
    "key unix-time-seconds [NX | XX | GT | LT]",
    "key unix-time-milliseconds [NX | XX | GT | LT]",
];

pub(super) const COMMANDS: &[Command] =
    &[
        row(100, "del", -2, WRITE, KeySpec::REST, del)
            .reaching(WriteReach::EachKey)
            .using(&["RM delete"])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .doc(
                "1.0.0",
                "O(N) with N the number of keys; memory of large collections is freed in the background",
                "key [key ...]",
                "Deletes keys.",
            ),
        row(101, "unlink", -2, WRITE | FAST, KeySpec::REST, del)
            .reaching(WriteReach::EachKey)
            .using(&["RM delete"])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .doc(
                "4.0.0",
                "O(N) with N the number of keys; memory of large collections is freed in the background",
                "key [key ...]",
                "Deletes keys; the same as DEL.",
            ),
        row(102, "exists", -2, READONLY | FAST, KeySpec::REST, exists)
            .answering(Answer::Ordered)
            .using(&["RO"])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .doc(
                "1.0.0",
                "O(N) with N the number of keys",
                "key [key ...]",
                "Counts how many of the keys exist; a key named twice counts twice.",
            ),
        row(103, "type", 2, READONLY | FAST, KeySpec::ONE, kind)
            .answering(Answer::Ordered)
            .using(&["RO"])
            .doc("1.0.0", "O(1)", "key", "Returns the type of a key's value."),
        row(104, "touch", -2, READONLY | FAST, KeySpec::REST, touch)
            .answering(Answer::Ordered)
            .using(&["RO"])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .doc(
                "3.2.1",
                "O(N) with N the number of keys",
                "key [key ...]",
                "Counts how many of the keys exist and marks them as used.",
            ),
        row(105, "expire", -3, WRITE | FAST, KeySpec::ONE, expire).using(&["RW update"]).doc(
            "1.0.0",
            "O(log N) with N the number of keys that expire",
            EXPIRE_SYNTAX[0],
            "Sets the time to live of a key in seconds.",
        ),
        row(106, "pexpire", -3, WRITE | FAST, KeySpec::ONE, pexpire).using(&["RW update"]).doc(
            "2.6.0",
            "O(log N) with N the number of keys that expire",
            EXPIRE_SYNTAX[1],
            "Sets the time to live of a key in milliseconds.",
        ),
        row(107, "expireat", -3, WRITE | FAST, KeySpec::ONE, expireat).using(&["RW update"]).doc(
            "1.2.0",
            "O(log N) with N the number of keys that expire",
            EXPIRE_SYNTAX[2],
            "Sets when a key expires, in seconds since 1970.",
        ),
        row(108, "pexpireat", -3, WRITE | FAST, KeySpec::ONE, pexpireat).using(&["RW update"]).doc(
            "2.6.0",
            "O(log N) with N the number of keys that expire",
            EXPIRE_SYNTAX[3],
            "Sets when a key expires, in milliseconds since 1970.",
        ),
        row(109, "ttl", 2, READONLY | FAST, KeySpec::ONE, ttl)
            .answering(Answer::Unrepeatable)
            .using(&["RO access"])
            .tips(&["nondeterministic_output"])
            .doc("1.0.0", "O(1)", "key", "Returns the time to live of a key in seconds."),
        row(110, "pttl", 2, READONLY | FAST, KeySpec::ONE, pttl)
            .answering(Answer::Unrepeatable)
            .using(&["RO access"])
            .tips(&["nondeterministic_output"])
            .doc("2.6.0", "O(1)", "key", "Returns the time to live of a key in milliseconds."),
        row(111, "expiretime", 2, READONLY | FAST, KeySpec::ONE, expiretime)
            .answering(Answer::Ordered)
            .using(&["RO access"])
            .doc("7.0.0", "O(1)", "key", "Returns when a key expires, in seconds since 1970."),
        row(112, "pexpiretime", 2, READONLY | FAST, KeySpec::ONE, pexpiretime)
            .answering(Answer::Ordered)
            .using(&["RO access"])
            .doc("7.0.0", "O(1)", "key", "Returns when a key expires, in milliseconds since 1970."),
        row(113, "persist", 2, WRITE | FAST, KeySpec::ONE, persist).using(&["RW update"]).doc(
            "2.2.0",
            "O(log N) with N the number of keys that expire",
            "key",
            "Removes the time to live of a key.",
        ),
        row(114, "rename", 3, WRITE, KeySpec::TWO, rename).using(&["RW access delete", "OW update"]).doc(
            "1.0.0",
            "O(1)",
            "key newkey",
            "Renames a key, whatever its new name held.",
        ),
        row(115, "renamenx", 3, WRITE | FAST, KeySpec::TWO, renamenx)
            .using(&["RW access delete", "OW insert"])
            .doc("1.0.0", "O(1)", "key newkey", "Renames a key if the new name is free."),
        row(116, "copy", -3, WRITE | DENYOOM, KeySpec::TWO, copy)
            .using(&["RO access", "OW update"])
            .reaching(WriteReach::OtherDatabase)
            .visiting_all()
            .doc(
                "6.2.0",
                "O(N) with N the bytes of the value",
                "source destination [DB destination-db] [REPLACE]",
                "Copies the value of a key to another key.",
            ),
        row(117, "move", 3, WRITE | FAST, KeySpec::ONE, move_key)
            .using(&["RW access update"])
            .reaching(WriteReach::OtherDatabase)
            .doc("1.0.0", "O(1)", "key db", "Moves a key to another database."),
        Command::new(Group::Generic, 118, "object", -2, READONLY, KeySpec::None, Run::Container)
            .doc("2.2.3", "Depends on the subcommand", "", "Looks at how a value is kept.")
            .with(OBJECT),
    ];

const SECOND: KeySpec = KeySpec::Range { first: 2, last: 2, step: 1 };

const OBJECT: &[Command] = &[
    row(120, "encoding", 3, READONLY, SECOND, object_encoding)
        .answering(Answer::Unrepeatable)
        .using(&["RO"])
        .missing(Misses::None)
        .tips(&["nondeterministic_output"])
        .doc("2.2.3", "O(1)", "key", "Returns Redis's word for the encoding of a value of this shape."),
    row(121, "refcount", 3, READONLY, SECOND, object_refcount)
        .answering(Answer::Unrepeatable)
        .using(&["RO"])
        .missing(Misses::None)
        .tips(&["nondeterministic_output"])
        .doc("2.2.3", "O(1)", "key", "Returns the number of references to a value, which is 1."),
    row(122, "idletime", 3, READONLY, SECOND, object_idletime)
        .answering(Answer::Unrepeatable)
        .using(&["RO"])
        .missing(Misses::None)
        .tips(&["nondeterministic_output"])
        .doc("2.2.3", "O(1)", "key", "Returns the seconds since the key was last read or written."),
    row(123, "freq", 3, READONLY, SECOND, object_freq)
        .answering(Answer::Unrepeatable)
        .using(&["RO"])
        .missing(Misses::None)
        .tips(&["nondeterministic_output"])
        .doc("4.0.0", "O(1)", "key", "Returns the access frequency of a key under an LFU policy."),
    row(124, "help", 2, READONLY, KeySpec::None, object_help).doc(
        "6.2.0",
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
];

fn del(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let mut removed = 0;
    for key in &args[1..] {
        if ctx.keys.remove(key) {
            ctx.keys.changed(key, "del");
            removed += 1;
        }
    }
    ctx.reply.integer(removed);
    Ok(())
}

fn exists(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let count = args[1..].iter().filter(|key| ctx.keys.exists(key)).count();
    ctx.reply.count(count);
    Ok(())
}

fn touch(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let count = args[1..].iter().filter(|key| ctx.keys.entry(key).is_some()).count();
    ctx.reply.count(count);
    Ok(())
}

fn kind(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    ctx.reply.simple(ctx.keys.type_of(args[1]).map_or("none", Type::name));
    Ok(())
}

/// Conditions of EXPIRE and its variants.
#[derive(Default)]
struct Conditions {
    absent: bool,
    present: bool,
    greater: bool,
    less: bool,
}

impl Conditions {
    fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for arg in args {
            let flag = if is(arg, "NX") {
                &mut conditions.absent
            } else if is(arg, "XX") {
                &mut conditions.present
            } else if is(arg, "GT") {
                &mut conditions.greater
            } else if is(arg, "LT") {
                &mut conditions.less
            } else {
                let text = format!("ERR Unsupported option {}", String::from_utf8_lossy(arg));
                return Err(CommandError::Text(text.into()));
            };
            *flag = true;
        }
        let Self { absent, present, greater, less } = conditions;
        if absent && (present || greater || less) {
            return Err(CommandError::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if greater && less {
            return Err(CommandError::text("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Returns whether the deadline `old` (`None`: never) may become `new`.
    fn allow(&self, old: Option<u64>, new: i64) -> bool {
        let old_or_never = old.map_or(i64::MAX, |at| i64::try_from(at).unwrap_or(i64::MAX));
        !(self.absent && old.is_some()
            || self.present && old.is_none()
            || self.greater && (old.is_none() || new <= old_or_never)
            || self.less && old.is_some() && new >= old_or_never)
    }
}

fn expire_generic(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    seconds: bool,
    absolute: bool,
    command: &'static str,
) -> Result<(), CommandError> {
    let invalid = CommandError::InvalidExpire(command);
    // As in Redis, a bad option is reported before a bad number.
    let conditions = Conditions::parse(&args[3..])?;
    let value = parse::integer(args[2])?;
    let millis = if seconds { value.checked_mul(1000).ok_or(invalid.clone())? } else { value };
    let now_ms = ctx.keys.now_ms();
    let at = if absolute { millis } else { millis.checked_add_unsigned(now_ms).ok_or(invalid)? };
    let key = args[1];
    let Some(old) = ctx.keys.entry(key).map(Entry::deadline) else {
        ctx.reply.integer(0);
        return Ok(());
    };
    if !conditions.allow(old, at) {
        ctx.reply.integer(0);
        return Ok(());
    }
    match u64::try_from(at).ok().filter(|&at| at > now_ms) {
        Some(at) => {
            ctx.keys.set_deadline(key, Some(at));
            ctx.keys.changed(key, "expire");
        }
        None => {
            ctx.keys.remove(key);
            ctx.keys.changed(key, "del");
        }
    }
    ctx.reply.integer(1);
    Ok(())
}

fn expire(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, true, false, "expire")
}

fn pexpire(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, false, false, "pexpire")
}

fn expireat(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, true, true, "expireat")
}

fn pexpireat(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, false, true, "pexpireat")
}

/// Answers `show` of the deadline; -2 without a key, -1 without a deadline.
fn reply_deadline(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    show: impl FnOnce(u64, u64) -> u64,
) -> Result<(), CommandError> {
    let answer = match ctx.keys.peek(key).map(Entry::deadline) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => i64::try_from(show(at, ctx.keys.now_ms())).unwrap_or(i64::MAX),
    };
    ctx.reply.integer(answer);
    Ok(())
}

fn ttl(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    reply_deadline(ctx, args[1], |at, now| (at.saturating_sub(now) + 500) / 1000)
}

fn pttl(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    reply_deadline(ctx, args[1], u64::saturating_sub)
}

fn expiretime(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    reply_deadline(ctx, args[1], |at, _| at.saturating_add(500) / 1000)
}

fn pexpiretime(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    reply_deadline(ctx, args[1], |at, _| at)
}

fn persist(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let had_deadline = ctx.keys.entry(args[1]).and_then(Entry::deadline).is_some();
    if had_deadline {
        ctx.keys.set_deadline(args[1], None);
        ctx.keys.changed(args[1], "persist");
    }
    ctx.reply.integer(i64::from(had_deadline));
    Ok(())
}

/// Renames a key that exists. Returns `false` if `only_if_free` and the new name is taken.
fn rename_to(ctx: &mut Context<'_, '_>, args: &[&[u8]], only_if_free: bool) -> Result<bool, CommandError> {
    let (from, to) = (args[1], args[2]);
    if !ctx.keys.exists(from) {
        return Err(CommandError::NoSuchKey);
    }
    if only_if_free && ctx.keys.exists(to) {
        return Ok(false);
    }
    if from != to {
        // One of the two may link to the other.
        ctx.keys.cut_links(to);
        let entry = ctx.keys.take(from).ok_or(CommandError::NoSuchKey)?;
        ctx.keys.place(entry.renamed(to));
        ctx.keys.rename_links(from, to);
        ctx.keys.changed(from, "rename_from");
        ctx.keys.changed(to, "rename_to");
    }
    Ok(true)
}

fn rename(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    rename_to(ctx, args, false)?;
    ctx.reply.ok();
    Ok(())
}

fn renamenx(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let renamed = rename_to(ctx, args, true)?;
    ctx.reply.integer(i64::from(renamed));
    Ok(())
}

fn copy(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (from, to) = (args[1], args[2]);
    let (mut replace, mut target) = (false, ctx.keys.db());
    let mut rest = args[3..].iter();
    while let Some(arg) = rest.next() {
        if is(arg, "REPLACE") {
            replace = true;
        } else if is(arg, "DB") {
            target = parse::database(rest.next().ok_or(CommandError::Syntax)?)?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let source = ctx.keys.db();
    if source == target && from == to {
        return Err(CommandError::text("ERR source and destination objects are the same"));
    }
    ctx.keys.select(target);
    let is_taken = !replace && ctx.keys.exists(to);
    ctx.keys.select(source);
    if is_taken || !ctx.keys.exists(from) {
        ctx.reply.integer(0);
        return Ok(());
    }
    // A copy would give each unit a second time, and draw with secrets that the original reveals.
    if ctx.keys.type_of(from) == Some(Type::Pool) {
        return Err(CommandError::text(
            "ERR a pool cannot be copied: RENAME moves it, and POOL.CREATE makes another",
        ));
    }
    // A copy has the logged state, so log what is uncommitted first.
    if ctx.keys.type_of(from) == Some(Type::Counter) && ctx.keys.settle_counter(from, false)?.is_logged {
        ctx.keys.log_instead("copy", &args[1..]);
    }
    let Some(copied) = ctx.keys.entry(from).map(|entry| without_links(form::copy(entry, to))) else {
        ctx.reply.integer(0);
        return Ok(());
    };
    ctx.keys.select(target);
    ctx.keys.place(copied);
    ctx.keys.changed(to, "copy_to");
    ctx.keys.select(source);
    ctx.reply.integer(1);
    Ok(())
}

fn move_key(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, source, target) = (args[1], ctx.keys.db(), parse::database(args[2])?);
    if source == target {
        return Err(CommandError::text("ERR source and destination objects are the same"));
    }
    ctx.keys.select(target);
    let taken = ctx.keys.exists(key);
    ctx.keys.select(source);
    if taken || !ctx.keys.exists(key) {
        ctx.reply.integer(0);
        return Ok(());
    }
    ctx.keys.separate(key);
    let entry = ctx.keys.take(key).ok_or(CommandError::NoSuchKey)?;
    ctx.keys.select(target);
    ctx.keys.place(entry);
    ctx.keys.select(source);
    ctx.keys.changed(key, "move_from");
    ctx.keys.select(target);
    ctx.keys.changed(key, "move_to");
    ctx.keys.select(source);
    ctx.reply.integer(1);
    Ok(())
}

fn object_encoding(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let encoding = ctx.keys.peek(args[2]).and_then(Entry::encoding);
    ctx.reply.bulk_or_null(encoding.map(str::as_bytes));
    Ok(())
}

fn object_refcount(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    if ctx.keys.exists(args[2]) {
        ctx.reply.integer(1);
    } else {
        ctx.reply.null();
    }
    Ok(())
}

fn object_idletime(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    match ctx.keys.peek(args[2]).map(Entry::clock) {
        Some(clock) => ctx.reply.integer(i64::from(ctx.keys.clock().saturating_sub(clock))),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn object_freq(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    if !ctx.keys.exists(args[2]) {
        ctx.reply.null();
        return Ok(());
    }
    Err(CommandError::text(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
         switching between policies at runtime LRU and LFU data will take some time to adjust.",
    ))
}

fn object_help(ctx: &mut Context<'_, '_>, _args: &[&[u8]]) -> Result<(), CommandError> {
    super::reply_help(ctx.reply, "OBJECT", OBJECT);
    Ok(())
}
