//! Strings: bytes as sent, numbers, and parts of either.

use super::comparing::Comparison;
use super::parse::{self, is};
use super::{Answer, Command, Extension, Group, Handler, KeySpec, Misses, Run, WriteReach, flags::*};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Deadline, MAX_BYTES, Payload, ValueRef};
use crate::value::Type;
use crate::watch::part::Part;
use crate::watch::touched::{Splice, Touched};
use crate::wire::long_double::LongDouble;
use crate::wire::reply::Reply;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::String, id, name, arity, flags, keys, Run::Keys(run))
}

const GROWS: u32 = WRITE | DENYOOM;

pub(super) const COMMANDS: &[Command] = &[
    row(1, "get", 2, READONLY | FAST, KeySpec::ONE, get)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc("1.0.0", "O(1)", "key", "Returns the string value of a key."),
    row(2, "set", -3, GROWS, KeySpec::ONE, set)
        .using(&["RW access update"])
        .using_by_options(set_key_uses)
        .missing(Misses::OfWrites)
        .doc(
            "1.0.0",
            "O(1)",
            "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
             PXAT unix-time-milliseconds | KEEPTTL] [DURABLE | SYNC]",
            "Sets the string value of a key, whatever it held; with DURABLE, answers when it is on disk.",
        ),
    row(3, "setnx", 3, GROWS | FAST, KeySpec::ONE, setnx).using(&["OW insert"]).doc(
        "1.0.0",
        "O(1)",
        "key value",
        "Sets the string value of a key if the key doesn't exist.",
    ),
    row(4, "setex", 4, GROWS, KeySpec::ONE, setex).using(&["OW update"]).doc(
        "2.0.0",
        "O(1)",
        "key seconds value",
        "Sets the string value and the time to live in seconds of a key.",
    ),
    row(5, "psetex", 4, GROWS, KeySpec::ONE, psetex).using(&["OW update"]).doc(
        "2.6.0",
        "O(1)",
        "key milliseconds value",
        "Sets the string value and the time to live in milliseconds of a key.",
    ),
    row(6, "getset", 3, GROWS | FAST, KeySpec::ONE, getset)
        .using(&["RW access update"])
        .missing(Misses::OfWrites)
        .doc(
            "1.0.0",
            "O(1)",
            "key value",
            "Sets the string value of a key and returns what it was.",
        ),
    row(7, "getdel", 2, WRITE | FAST, KeySpec::ONE, getdel)
        .using(&["RW access delete"])
        .missing(Misses::OfWrites)
        .doc(
            "6.2.0",
            "O(1)",
            "key",
            "Returns the string value of a key and deletes the key.",
        ),
    row(8, "getex", -2, WRITE | FAST, KeySpec::ONE, getex)
        .using(&["RW access update"])
        .missing(Misses::OfWrites)
        .doc(
            "6.2.0",
            "O(1)",
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
            "Returns the string value of a key and sets or clears its time to live.",
        ),
    row(9, "incr", 2, GROWS | FAST, KeySpec::ONE, incr).using(&["RW access update"]).doc(
        "1.0.0",
        "O(1)",
        "key",
        "Adds one to the integer value of a key, which starts at 0.",
    ),
    row(10, "decr", 2, GROWS | FAST, KeySpec::ONE, decr).using(&["RW access update"]).doc(
        "1.0.0",
        "O(1)",
        "key",
        "Subtracts one from the integer value of a key, which starts at 0.",
    ),
    row(11, "incrby", 3, GROWS | FAST, KeySpec::ONE, incrby).using(&["RW access update"]).doc(
        "1.0.0",
        "O(1)",
        "key increment",
        "Adds to the integer value of a key, which starts at 0.",
    ),
    row(12, "decrby", 3, GROWS | FAST, KeySpec::ONE, decrby).using(&["RW access update"]).doc(
        "1.0.0",
        "O(1)",
        "key decrement",
        "Subtracts from the integer value of a key, which starts at 0.",
    ),
    row(13, "incrbyfloat", 3, GROWS | FAST, KeySpec::ONE, incrbyfloat).using(&["RW access update"]).doc(
        "2.6.0",
        "O(1)",
        "key increment",
        "Adds to the floating-point value of a key, which starts at 0.",
    ),
    row(14, "append", 3, GROWS | FAST, KeySpec::ONE, append).using(&["RW insert"]).doc(
        "2.0.0",
        "O(1) amortised",
        "key value",
        "Appends to the string value of a key, which starts empty.",
    ),
    row(15, "strlen", 2, READONLY | FAST, KeySpec::ONE, strlen)
        .answering(Answer::Ordered)
        .using(&["RO"])
        .doc("2.2.0", "O(1)", "key", "Returns the length of a string value in bytes.")
        .looking_at(|_| Part::Length { of: Type::String }),
    row(16, "setrange", 4, GROWS, KeySpec::ONE, setrange)
        .using(&["RW update"])
        .extending(Extension::Byte)
        .doc(
            "2.2.0",
            "O(1) for short strings, O(N) with N the bytes that the string grows by",
            "key offset value",
            "Overwrites a part of a string value, which grows with zero bytes where needed.",
        ),
    row(17, "getrange", 4, READONLY, KeySpec::ONE, getrange)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc("2.4.0", "O(N) with N the bytes returned", "key start end", "Returns a part of a string value.")
        .looking_at(|args| Part::span(Type::String, args, 2, 3)),
    row(18, "substr", 4, READONLY, KeySpec::ONE, getrange)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "1.0.0",
            "O(N) with N the bytes returned",
            "key start end",
            "Returns a part of a string value: the older name of GETRANGE.",
        )
        .looking_at(|args| Part::span(Type::String, args, 2, 3)),
    row(19, "mget", -2, READONLY | FAST, KeySpec::REST, mget)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .tips(&["request_policy:multi_shard"])
        .doc(
            "1.0.0",
            "O(N) with N the number of keys",
            "key [key ...]",
            "Returns the string values of several keys at one moment.",
        ),
    row(20, "mset", -3, GROWS, KeySpec::PAIRS, mset)
        .using(&["OW update"])
        .reaching(WriteReach::EachKey)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .doc(
            "1.0.1",
            "O(N) with N the number of keys",
            "key value [key value ...]",
            "Sets the string values of several keys at one moment.",
        ),
    row(21, "msetnx", -3, GROWS, KeySpec::PAIRS, msetnx)
        .using(&["OW insert"])
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
        .doc(
            "1.0.1",
            "O(N) with N the number of keys",
            "key value [key value ...]",
            "Sets the string values of several keys at one moment if none of the keys exists.",
        ),
    row(22, "lcs", -3, READONLY, KeySpec::TWO, lcs).answering(Answer::Ordered).using(&["RO access"]).doc(
        "7.0.0",
        "O(N*M) with N and M the lengths of the strings",
        "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        "Finds the longest common subsequence of two strings.",
    ),
];

fn get(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    match ctx.keys.entry(args[1]).map(crate::keyspace::Entry::value) {
        None => ctx.reply.null(),
        Some(ValueRef::Raw(bytes)) => ctx.reply.bulk(bytes),
        Some(ValueRef::Int(value)) => ctx.reply.bulk_integer(value),
        Some(_) => match ctx.keys.string(args[1])? {
            Some(text) => ctx.reply.bulk(&text),
            None => ctx.reply.null(),
        },
    }
    Ok(())
}

/// The options of SET, GETEX and similar commands.
#[derive(Default)]
struct Options<'a> {
    deadline: Option<Deadline>,
    /// The time as given, whether in seconds, whether absolute. Parsed after all options.
    time: Option<(&'a [u8], bool, bool)>,
    only_if_absent: bool,
    only_if_present: bool,
    only_if: Option<Comparison<'a>>,
    get: bool,
    durable: bool,
}

/// Returns a deadline, in milliseconds since 1970, from a client's time.
pub(super) fn deadline_from(
    arg: &[u8],
    seconds: bool,
    absolute: bool,
    now_ms: u64,
    command: &'static str,
) -> Result<u64, CommandError> {
    let value = parse::integer(arg)?;
    let invalid = CommandError::InvalidExpire(command);
    let millis = if seconds { value.checked_mul(1000).ok_or(invalid.clone())? } else { value };
    if value <= 0 {
        return Err(invalid);
    }
    let at = if absolute { millis } else { millis.checked_add_unsigned(now_ms).ok_or(invalid.clone())? };
    u64::try_from(at).map_err(|_| invalid)
}

impl Options<'_> {
    /// Returns the change of the key's deadline, if the options have one.
    fn deadline(&self, now_ms: u64, command: &'static str) -> Result<Option<Deadline>, CommandError> {
        let Some((time, seconds, absolute)) = self.time else { return Ok(self.deadline) };
        deadline_from(time, seconds, absolute, now_ms, command).map(|at| Some(Deadline::At(at)))
    }
}

/// Parses the options. As in Redis, an option may be repeated, and the last counts; different
/// options for the deadline are an error.
fn options<'a>(args: &[&'a [u8]], for_set: bool) -> Result<Options<'a>, CommandError> {
    let mut options = Options::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let times = [("EX", true, false), ("PX", false, false), ("EXAT", true, true), ("PXAT", false, true)];
        if let Some(&(_, seconds, absolute)) = times.iter().find(|(keyword, ..)| is(arg, keyword)) {
            let given = options.time.map(|(_, seconds, absolute)| (seconds, absolute));
            let agrees = options.deadline.is_none() && given.is_none_or(|given| given == (seconds, absolute));
            let time = rest.next().filter(|_| agrees).ok_or(CommandError::Syntax)?;
            options.time = Some((time, seconds, absolute));
        } else if is(arg, "KEEPTTL") && for_set && options.time.is_none() {
            options.deadline = Some(Deadline::Keep);
        } else if is(arg, "PERSIST") && !for_set && options.time.is_none() {
            options.deadline = Some(Deadline::Clear);
        } else if is(arg, "NX") && for_set && !options.only_if_present && options.only_if.is_none() {
            options.only_if_absent = true;
        } else if is(arg, "XX") && for_set && !options.only_if_absent && options.only_if.is_none() {
            options.only_if_present = true;
        } else if is(arg, "GET") && for_set {
            options.get = true;
        } else if (is(arg, "DURABLE") || is(arg, "SYNC")) && for_set {
            options.durable = true;
        } else {
            let is_first = !options.only_if_absent && !options.only_if_present && options.only_if.is_none();
            let operand = rest.next().filter(|_| for_set && is_first).copied();
            let comparison = Comparison::of_option(arg, operand).ok_or(CommandError::Syntax)?;
            options.only_if = Some(comparison?);
        }
    }
    Ok(options)
}

/// Without `GET`, it overwrites the value without access to it.
fn set_key_uses(args: &[&[u8]]) -> &'static [&'static str] {
    let reads = |arg: &&[u8]| is(arg, "GET") || Comparison::of_option(arg, None).is_some();
    if args.iter().skip(3).any(reads) { &["RW access update"] } else { &["OW update"] }
}

fn set(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let &[_, key, value, ref rest @ ..] = args else { return Err(CommandError::Syntax) };
    if rest.is_empty() {
        ctx.keys.set_string(key, value, Deadline::Clear);
        ctx.keys.changed(key, "set");
        ctx.reply.ok();
        return Ok(());
    }
    let options = options(rest, true)?;
    let deadline = options.deadline(ctx.keys.now_ms(), "set")?;
    if options.durable {
        ctx.keys.make_durable();
    }
    if options.get {
        match ctx.keys.string(key)? {
            Some(text) => ctx.reply.bulk(&text),
            None => ctx.reply.null(),
        }
    }
    let exists = ctx.keys.exists(key);
    let is_met = options.only_if.map_or(Ok(true), |comparison| comparison.is_met_by(ctx.keys, key))?;
    if (options.only_if_absent && exists) || (options.only_if_present && !exists) || !is_met {
        if !options.get {
            ctx.reply.null();
        }
        return Ok(());
    }
    let deadline = deadline.unwrap_or(Deadline::Clear);
    ctx.keys.set_string(key, value, deadline);
    if options.only_if.is_some() {
        // Not what it was compared with, which older members of a group do not know.
        log_without_comparison(ctx, key, value, deadline);
    }
    ctx.keys.changed(key, "set");
    if let Deadline::At(_) = deadline {
        ctx.keys.happened(key, "expire");
    }
    if !options.get {
        ctx.reply.ok();
    }
    Ok(())
}

/// Logs SET without the option that compares the value.
fn log_without_comparison(ctx: &mut Context<'_, '_>, key: &[u8], value: &[u8], deadline: Deadline) {
    match deadline {
        Deadline::Clear => ctx.keys.log_instead("set", &[key, value]),
        Deadline::Keep => ctx.keys.log_instead("set", &[key, value, b"KEEPTTL"]),
        Deadline::At(at_ms) => {
            let at_ms = itoa::Buffer::new().format(at_ms).as_bytes().to_vec();
            ctx.keys.log_instead("set", &[key, value, b"PXAT", &at_ms]);
        }
    }
}

fn setnx(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let absent = !ctx.keys.exists(args[1]);
    if absent {
        ctx.keys.set_string(args[1], args[2], Deadline::Clear);
        ctx.keys.changed(args[1], "set");
    }
    ctx.reply.integer(i64::from(absent));
    Ok(())
}

fn set_for(ctx: &mut Context<'_, '_>, args: &[&[u8]], at: u64) -> Result<(), CommandError> {
    ctx.keys.set_string(args[1], args[3], Deadline::At(at));
    ctx.keys.changed(args[1], "set");
    ctx.keys.happened(args[1], "expire");
    ctx.reply.ok();
    Ok(())
}

fn setex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let at = deadline_from(args[2], true, false, ctx.keys.now_ms(), "setex")?;
    set_for(ctx, args, at)
}

fn psetex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let at = deadline_from(args[2], false, false, ctx.keys.now_ms(), "psetex")?;
    set_for(ctx, args, at)
}

fn getset(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    match ctx.keys.string(args[1])? {
        Some(text) => ctx.reply.bulk(&text),
        None => ctx.reply.null(),
    }
    ctx.keys.set_string(args[1], args[2], Deadline::Clear);
    ctx.keys.changed(args[1], "set");
    Ok(())
}

fn getdel(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Some(text) = ctx.keys.string(args[1])? else {
        ctx.reply.null();
        return Ok(());
    };
    ctx.reply.bulk(&text);
    ctx.keys.remove(args[1]);
    ctx.keys.changed(args[1], "del");
    Ok(())
}

fn getex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = options(&args[2..], false)?;
    let Some(text) = ctx.keys.string(args[1])? else {
        ctx.reply.null();
        return Ok(());
    };
    // As in Redis, a time is parsed only if there is a value for it.
    let deadline = options.deadline(ctx.keys.now_ms(), "getex")?;
    ctx.reply.bulk(&text);
    let old = ctx.keys.entry(args[1]).and_then(crate::keyspace::Entry::deadline);
    match deadline {
        Some(Deadline::At(at)) if at <= ctx.keys.now_ms() => {
            ctx.keys.remove(args[1]);
            ctx.keys.changed(args[1], "del");
        }
        Some(Deadline::At(at)) => {
            ctx.keys.set_deadline(args[1], Some(at));
            ctx.keys.changed(args[1], "expire");
        }
        Some(Deadline::Clear) if old.is_some() => {
            ctx.keys.set_deadline(args[1], None);
            ctx.keys.changed(args[1], "persist");
        }
        _ => {}
    }
    Ok(())
}

fn add(ctx: &mut Context<'_, '_>, key: &[u8], delta: i64) -> Result<(), CommandError> {
    let old = ctx.keys.integer(key)?.unwrap_or(0);
    let new = old.checked_add(delta).ok_or(CommandError::Overflow)?;
    ctx.keys.set(key, Payload::Int(new), Deadline::Keep);
    ctx.keys.changed(key, "incrby");
    ctx.reply.integer(new);
    Ok(())
}

fn incr(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    add(ctx, args[1], 1)
}

fn decr(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    add(ctx, args[1], -1)
}

fn incrby(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let delta = parse::integer(args[2])?;
    add(ctx, args[1], delta)
}

fn decrby(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let delta =
        parse::integer(args[2])?.checked_neg().ok_or(CommandError::text("ERR decrement would overflow"))?;
    add(ctx, args[1], delta)
}

/// Returns the text that INCRBYFLOAT and similar commands store; `None` stands for an infinity.
pub(super) fn sum(old: Option<LongDouble>, delta: Option<LongDouble>) -> Result<String, CommandError> {
    let sum = old.zip(delta).and_then(|(old, delta)| old.add(delta));
    sum.map(|sum| sum.to_string()).ok_or(CommandError::NotFinite)
}

fn incrbyfloat(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let old = match ctx.keys.string(args[1])? {
        Some(text) => LongDouble::parse(&text)?,
        None => Some(LongDouble::ZERO),
    };
    let text = sum(old, LongDouble::parse(args[2])?)?;
    // As in Redis a text, even if the sum is whole: OBJECT ENCODING shows it.
    ctx.keys.set(args[1], Payload::Raw(text.as_bytes()), Deadline::Keep);
    ctx.keys.changed(args[1], "incrbyfloat");
    ctx.reply.bulk(text.as_bytes());
    Ok(())
}

/// Refuses a string that would exceed the limit, before it is built.
pub(super) fn check_length(len: usize) -> Result<(), CommandError> {
    if len > MAX_BYTES { Err(CommandError::TooLong) } else { Ok(()) }
}

/// Refuses to continue an answer, begun at `mark`, that may be larger than the data: once it
/// exceeds the limit of a string, or the reply has overflowed.
pub(super) fn check_answer(reply: &Reply, mark: usize) -> Result<(), CommandError> {
    if reply.has_overflowed() { Err(CommandError::TooLong) } else { check_length(reply.len() - mark) }
}

fn append(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let old_len = ctx.keys.string(args[1])?.map(|text| text.len());
    check_length(old_len.unwrap_or(0).saturating_add(args[2].len()))?;
    let len = if old_len.is_none() {
        ctx.keys.set_string(args[1], args[2], Deadline::Clear);
        args[2].len()
    } else {
        let bytes = ctx.keys.growing_string(args[1])?;
        bytes.extend_from_slice(args[2]);
        bytes.len()
    };
    // The key may have replaced an expired one of any type.
    let touched = old_len.map_or(Touched::Everything, |old_len| Touched::Splice {
        of: Type::String,
        splice: Splice::back(old_len, len),
    });
    ctx.keys.changed_in(args[1], "append", || touched);
    ctx.reply.count(len);
    Ok(())
}

fn strlen(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let len = ctx.keys.string(args[1])?.map_or(0, |text| text.len());
    ctx.reply.count(len);
    Ok(())
}

fn setrange(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let offset = parse::integer(args[2])?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::text("ERR offset is out of range"))?;
    let value = args[3];
    let old_len = ctx.keys.string(args[1])?.map_or(0, |text| text.len());
    if value.is_empty() {
        ctx.reply.count(old_len);
        return Ok(());
    }
    let end = offset.saturating_add(value.len());
    check_length(end)?;
    let bytes = ctx.keys.growing_string(args[1])?;
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(value);
    let len = bytes.len();
    let splice = Splice::over(old_len, offset, end);
    ctx.keys.changed_in(args[1], "setrange", || Touched::Splice { of: Type::String, splice });
    ctx.reply.count(len);
    Ok(())
}

fn getrange(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (start, end) = (parse::integer(args[2])?, parse::integer(args[3])?);
    let text = ctx.keys.string(args[1])?;
    let bytes: &[u8] = text.as_deref().unwrap_or_default();
    // Two negative ends in the wrong order are an empty range, even if both would be clamped to the
    // front.
    let range = if start < 0 && end < 0 && start > end { None } else { range_of(start, end, bytes.len()) };
    ctx.reply.bulk(range.map_or(&[], |range| &bytes[range]));
    Ok(())
}

/// As [`parse::range`], but an end before the front means the first byte.
fn range_of(start: i64, end: i64, len: usize) -> Option<std::ops::Range<usize>> {
    let end = if end < 0 { end.saturating_add(len as i64).max(0) } else { end };
    parse::range(start, end, len)
}

fn mget(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    ctx.reply.array(args.len() - 1);
    for key in &args[1..] {
        // A key of another type has no string value: null, not an error.
        match ctx.keys.string(key) {
            Ok(Some(text)) => ctx.reply.bulk(&text),
            _ => ctx.reply.null(),
        }
    }
    Ok(())
}

fn pairs<'a, 'b>(
    args: &'a [&'b [u8]],
    command: &'static str,
) -> Result<impl Iterator<Item = &'a [&'b [u8]; 2]> + Clone, CommandError> {
    let (pairs, rest) = args[1..].as_chunks::<2>();
    if rest.is_empty() { Ok(pairs.iter()) } else { Err(CommandError::Arity(command.into())) }
}

fn mset(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    for [key, value] in pairs(args, "mset")? {
        ctx.keys.set_string(key, value, Deadline::Clear);
        ctx.keys.changed(key, "set");
    }
    ctx.reply.ok();
    Ok(())
}

fn msetnx(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let pairs = pairs(args, "msetnx")?;
    let free = pairs.clone().all(|[key, _]| !ctx.keys.exists(key));
    if free {
        for [key, value] in pairs {
            ctx.keys.set_string(key, value, Deadline::Clear);
            ctx.keys.changed(key, "set");
        }
    }
    ctx.reply.integer(i64::from(free));
    Ok(())
}

/// A run of equal bytes in both strings.
struct Match {
    left: usize,
    right: usize,
    len: usize,
}

fn lcs(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let text = |key| {
        ctx.keys
            .string(key)
            .map(|text| text.map(|text| text.to_vec()).unwrap_or_default())
            .map_err(|_| CommandError::text("ERR The specified keys must contain string values"))
    };
    let (left, right) = (text(args[1])?, text(args[2])?);
    let (mut want_len, mut want_matches, mut with_len, mut min_len) = (false, false, false, 0);
    let mut rest = args[3..].iter();
    while let Some(arg) = rest.next() {
        if is(arg, "LEN") {
            want_len = true;
        } else if is(arg, "IDX") {
            want_matches = true;
        } else if is(arg, "WITHMATCHLEN") {
            with_len = true;
        } else if is(arg, "MINMATCHLEN") {
            min_len = parse::integer(rest.next().ok_or(CommandError::Syntax)?)?.max(0) as usize;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if want_len && want_matches {
        return Err(CommandError::text("ERR If you want both the length and indexes, please just use IDX."));
    }
    let (common, matches) = longest_common_subsequence(&left, &right)?;
    if want_len {
        ctx.reply.count(common.len());
    } else if want_matches {
        let matches: Vec<Match> = matches.into_iter().filter(|found| found.len >= min_len.max(1)).collect();
        reply_matches(ctx, &matches, with_len, common.len());
    } else {
        ctx.reply.bulk(&common);
    }
    Ok(())
}

fn reply_matches(ctx: &mut Context<'_, '_>, matches: &[Match], with_len: bool, total: usize) {
    ctx.reply.map(2);
    ctx.reply.bulk(b"matches");
    ctx.reply.array(matches.len());
    for found in matches {
        ctx.reply.array(if with_len { 3 } else { 2 });
        for start in [found.left, found.right] {
            ctx.reply.array(2);
            ctx.reply.count(start);
            ctx.reply.count(start + found.len - 1);
        }
        if with_len {
            ctx.reply.count(found.len);
        }
    }
    ctx.reply.bulk(b"len");
    ctx.reply.count(total);
}

/// Most cells of the table for two strings: 64 Mi cells of 4 bytes.
const MAX_LCS_CELLS: usize = 64 << 20;

/// Returns the subsequence and its runs, last run first, by dynamic programming over prefixes.
fn longest_common_subsequence(left: &[u8], right: &[u8]) -> Result<(Vec<u8>, Vec<Match>), CommandError> {
    let width = right.len() + 1;
    let cells = (left.len() + 1).checked_mul(width).filter(|&cells| cells <= MAX_LCS_CELLS);
    let cells = cells.ok_or(CommandError::text(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
    ))?;
    let mut lengths = vec![0_u32; cells];
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.iter().enumerate() {
            lengths[(i + 1) * width + j + 1] = if a == b {
                lengths[i * width + j] + 1
            } else {
                lengths[i * width + j + 1].max(lengths[(i + 1) * width + j])
            };
        }
    }
    let (mut i, mut j) = (left.len(), right.len());
    let (mut common, mut matches): (Vec<u8>, Vec<Match>) = (Vec::new(), Vec::new());
    while i > 0 && j > 0 {
        if left[i - 1] == right[j - 1] {
            (i, j) = (i - 1, j - 1);
            common.push(left[i]);
            match matches.last_mut() {
                Some(run) if run.left == i + 1 && run.right == j + 1 => {
                    *run = Match { left: i, right: j, len: run.len + 1 };
                }
                _ => matches.push(Match { left: i, right: j, len: 1 }),
            }
        } else if lengths[(i - 1) * width + j] > lengths[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    common.reverse();
    Ok((common, matches))
}
