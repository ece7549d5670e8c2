//! Hashes: fields with values.

pub(super) mod times;

use super::keyspace_wide::{self, ScanOptions};
use super::members::{self, Wanted};
use super::parse::{self, is};
use super::strings::{check_answer, check_length, sum};
use super::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::context::Context;
use crate::error::CommandError;
use crate::random::Random;
use crate::value::{Hash, Type};
use crate::watch::part::Part;
use crate::watch::touched::Touched;
use crate::wire::long_double::LongDouble;
use crate::wire::reply::{Protocol, Reply};

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    Command::new(Group::Hash, id, name, arity, flags, KeySpec::ONE, Run::Keys(run))
}

const GROWS: u32 = WRITE | DENYOOM | FAST;

pub(super) const COMMANDS: &[Command] = &[
    row(250, "hset", -4, GROWS, hset).using(&["RW update"]).doc(
        "2.0.0",
        "O(N) with N the number of fields",
        "key field value [field value ...]",
        "Sets the values of fields and returns how many of the fields are new.",
    ),
    row(251, "hsetnx", 4, GROWS, hsetnx).using(&["RW insert"]).doc(
        "2.0.0",
        "O(1)",
        "key field value",
        "Sets the value of a field if the field doesn't exist.",
    ),
    row(252, "hmset", -4, GROWS, hmset).using(&["RW update"]).doc(
        "2.0.0",
        "O(N) with N the number of fields",
        "key field value [field value ...]",
        "Sets the values of fields: the older form of HSET.",
    ),
    row(253, "hget", 3, READONLY | FAST, hget)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc("2.0.0", "O(1)", "key field", "Returns the value of a field.")
        .looking_at(|_| Part::elements(Type::Hash)),
    row(254, "hmget", -3, READONLY | FAST, hmget)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "2.0.0",
            "O(N) with N the number of fields",
            "key field [field ...]",
            "Returns the values of several fields.",
        )
        .looking_at(|_| Part::elements(Type::Hash)),
    row(255, "hgetall", 2, READONLY, hgetall)
        .answering(Answer::Unordered(2))
        .using(&["RO access"])
        .visiting_all()
        .tips(&["nondeterministic_output_order"])
        .doc("2.0.0", "O(N) with N the size of the hash", "key", "Returns all fields with their values."),
    row(256, "hdel", -3, WRITE | FAST, hdel).using(&["RW delete"]).doc(
        "2.0.0",
        "O(N) with N the number of fields",
        "key field [field ...]",
        "Deletes fields, and the key with the last of them.",
    ),
    row(257, "hexists", 3, READONLY | FAST, hexists)
        .answering(Answer::Ordered)
        .using(&["RO"])
        .doc("2.0.0", "O(1)", "key field", "Tells whether a field exists.")
        .looking_at(|_| Part::Elements { of: Type::Hash, from: 2, with_values: false }),
    row(258, "hlen", 2, READONLY | FAST, hlen)
        .answering(Answer::Ordered)
        .using(&["RO"])
        .doc("2.0.0", "O(1)", "key", "Returns the number of fields.")
        .looking_at(|_| Part::names(Type::Hash)),
    row(259, "hkeys", 2, READONLY, hkeys)
        .answering(Answer::Unordered(1))
        .using(&["RO access"])
        .visiting_all()
        .tips(&["nondeterministic_output_order"])
        .doc("2.0.0", "O(N) with N the size of the hash", "key", "Returns all fields without their values.")
        .looking_at(|_| Part::names(Type::Hash)),
    row(260, "hvals", 2, READONLY, hvals)
        .answering(Answer::Unordered(1))
        .using(&["RO access"])
        .visiting_all()
        .tips(&["nondeterministic_output_order"])
        .doc("2.0.0", "O(N) with N the size of the hash", "key", "Returns the values of all fields."),
    row(261, "hstrlen", 3, READONLY | FAST, hstrlen)
        .answering(Answer::Ordered)
        .using(&["RO"])
        .doc("3.2.0", "O(1)", "key field", "Returns the length of a field's value in bytes.")
        .looking_at(|_| Part::elements(Type::Hash)),
    row(262, "hincrby", 4, GROWS, hincrby).using(&["RW access update"]).doc(
        "2.0.0",
        "O(1)",
        "key field increment",
        "Adds to the integer value of a field, which starts at 0.",
    ),
    row(263, "hincrbyfloat", 4, GROWS, hincrbyfloat).using(&["RW access update"]).doc(
        "2.6.0",
        "O(1)",
        "key field increment",
        "Adds to the floating-point value of a field, which starts at 0.",
    ),
    row(264, "hrandfield", -2, READONLY, hrandfield)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .tips(&["nondeterministic_output"])
        .doc(
            "6.2.0",
            "O(N) with N the number of fields returned",
            "key [count [WITHVALUES]]",
            "Returns fields at random: different ones, or with a negative count with repeats.",
        ),
    row(265, "hscan", -3, READONLY, hscan)
        .answering(Answer::Iterated(2))
        .using(&["RO access"])
        .tips(&["nondeterministic_output"])
        .doc(
            "2.8.0",
            "O(1) for every call, O(N) for a complete iteration with N the size of the hash",
            "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
            "Iterates over the fields of a hash and, without NOVALUES, their values.",
        )
        .looking_at(|args| Part::scan(Type::Hash, args)),
];

/// Sets the fields of HSET and HMSET. Returns the number of new fields.
fn set_fields(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    command: &'static str,
) -> Result<usize, CommandError> {
    let (pairs, rest) = args[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(CommandError::Arity(command.into()));
    }
    args[2..].iter().try_for_each(|arg| check_length(arg.len()))?;
    let added = ctx.keys.upsert(args[1], |hash: &mut Hash| {
        pairs.iter().filter(|[field, value]| hash.set(field, value)).count()
    })?;
    ctx.keys.changed_in(args[1], "hset", || Touched::pairs(&args[2..], added == 0));
    Ok(added)
}

fn hset(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let added = set_fields(ctx, args, "hset")?;
    ctx.reply.count(added);
    Ok(())
}

fn hmset(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    set_fields(ctx, args, "hmset")?;
    ctx.reply.ok();
    Ok(())
}

fn hsetnx(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    args[2..].iter().try_for_each(|arg| check_length(arg.len()))?;
    let absent = ctx.keys.read::<Hash>(args[1])?.is_none_or(|hash| !hash.contains(args[2]));
    if absent {
        ctx.keys.upsert(args[1], |hash: &mut Hash| hash.set(args[2], args[3]))?;
        ctx.keys.changed_in(args[1], "hset", || Touched::fields(&args[2..3], false));
    }
    ctx.reply.integer(i64::from(absent));
    Ok(())
}

fn hget(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let hash = ctx.keys.read::<Hash>(args[1])?;
    ctx.reply.bulk_or_null(hash.and_then(|hash| hash.get(args[2])));
    Ok(())
}

fn hmget(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let hash = ctx.keys.read::<Hash>(args[1])?;
    ctx.reply.array(args.len() - 2);
    for field in &args[2..] {
        ctx.reply.bulk_or_null(hash.and_then(|hash| hash.get(field)));
    }
    Ok(())
}

fn hgetall(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let hash = ctx.keys.read::<Hash>(args[1])?;
    ctx.reply.map(hash.map_or(0, Hash::len));
    for (field, value) in hash.into_iter().flat_map(Hash::iter) {
        ctx.reply.bulk(field);
        ctx.reply.bulk(value);
    }
    Ok(())
}

fn hdel(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    members::remove(ctx, args, "hdel", |hash: &mut Hash, field| hash.remove(field))
}

fn hexists(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let exists = ctx.keys.read::<Hash>(args[1])?.is_some_and(|hash| hash.contains(args[2]));
    ctx.reply.integer(i64::from(exists));
    Ok(())
}

fn hlen(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let len = ctx.keys.read::<Hash>(args[1])?.map_or(0, Hash::len);
    ctx.reply.count(len);
    Ok(())
}

fn hkeys(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let hash = ctx.keys.read::<Hash>(args[1])?;
    ctx.reply.array(hash.map_or(0, Hash::len));
    hash.into_iter().flat_map(Hash::iter).for_each(|(field, _)| ctx.reply.bulk(field));
    Ok(())
}

fn hvals(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let hash = ctx.keys.read::<Hash>(args[1])?;
    ctx.reply.array(hash.map_or(0, Hash::len));
    hash.into_iter().flat_map(Hash::iter).for_each(|(_, value)| ctx.reply.bulk(value));
    Ok(())
}

fn hstrlen(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let value = ctx.keys.read::<Hash>(args[1])?.and_then(|hash| hash.get(args[2]));
    ctx.reply.count(value.map_or(0, <[u8]>::len));
    Ok(())
}

fn hincrby(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, field, delta) = (args[1], args[2], parse::integer(args[3])?);
    check_length(field.len())?;
    let (new, is_new) = ctx.keys.upsert(key, |hash: &mut Hash| {
        let old = match hash.get(field) {
            Some(value) => parse::canonical_integer(value)
                .ok_or(CommandError::text("ERR hash value is not an integer"))?,
            None => 0,
        };
        let new = old.checked_add(delta).ok_or(CommandError::Overflow)?;
        Ok((new, hash.set_keeping_time(field, itoa::Buffer::new().format(new).as_bytes())))
    })??;
    ctx.keys.changed_in(key, "hincrby", || Touched::fields(&args[2..3], !is_new));
    ctx.reply.integer(new);
    Ok(())
}

fn hincrbyfloat(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, field, delta) = (args[1], args[2], LongDouble::parse(args[3])?);
    check_length(field.len())?;
    if delta.is_none() {
        return Err(CommandError::text("ERR value is NaN or Infinity"));
    }
    let (text, is_new) = ctx.keys.upsert(key, |hash: &mut Hash| {
        let old = match hash.get(field) {
            Some(value) => {
                LongDouble::parse(value).map_err(|_| CommandError::text("ERR hash value is not a float"))?
            }
            None => Some(LongDouble::ZERO),
        };
        let text = sum(old, delta)?;
        let is_new = hash.set_keeping_time(field, text.as_bytes());
        Ok::<_, CommandError>((text, is_new))
    })??;
    ctx.keys.changed_in(key, "hincrbyfloat", || Touched::fields(&args[2..3], !is_new));
    ctx.reply.bulk(text.as_bytes());
    Ok(())
}

fn hrandfield(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let mut random = Random::new(ctx.keys.random());
    let (wanted, with_values) = match args {
        [_, _] => {
            let hash = ctx.keys.read::<Hash>(key)?;
            let field = hash.and_then(|hash| hash.random(&mut random)).map(|(field, _)| field);
            ctx.reply.bulk_or_null(field);
            return Ok(());
        }
        [_, _, count] => (Wanted::parse(count)?, false),
        [_, _, count, option] if is(option, "WITHVALUES") => (Wanted::parse_pairs(count)?, true),
        _ => {
            Wanted::parse(args[2])?;
            return Err(CommandError::Syntax);
        }
    };
    let Some(hash) = ctx.keys.read::<Hash>(key)? else {
        ctx.reply.array(0);
        return Ok(());
    };
    let nested = with_values && ctx.reply.protocol() == Protocol::Resp3;
    let start = ctx.reply.len();
    let width = if with_values && !nested { 2 } else { 1 };
    let show = |reply: &mut Reply, field: &[u8], value: &[u8]| {
        if nested {
            reply.array(2);
        }
        reply.bulk(field);
        if with_values {
            reply.bulk(value);
        }
        check_answer(reply, start)
    };
    match wanted {
        Wanted::Repeated(count) => {
            ctx.reply.array(count * width);
            hash.draw(count, &mut random, |field, value| show(ctx.reply, field, value))
        }
        Wanted::Different(count) => {
            let sample = hash.sample(count, &mut random);
            ctx.reply.array(sample.len() * width);
            sample.into_iter().try_for_each(|(field, value)| show(ctx.reply, field, value))
        }
    }
}

fn hscan(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let cursor = keyspace_wide::cursor(args[2])?;
    let Some(hash) = ctx.keys.read::<Hash>(args[1])? else {
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        ctx.reply.array(0);
        return Ok(());
    };
    let (options, without_values) = without_values(&args[3..]);
    let options = ScanOptions::parse(&options, false)?;
    let mut found = Vec::new();
    let next = hash.scan(cursor, options.count, |field, value| {
        if options.matches(field) {
            found.push((field, value));
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    ctx.reply.array(found.len() * if without_values { 1 } else { 2 });
    for (field, value) in found {
        ctx.reply.bulk(field);
        if !without_values {
            ctx.reply.bulk(value);
        }
    }
    Ok(())
}

/// Takes `NOVALUES` out of the options of HSCAN. Returns the others, and whether it was there.
fn without_values<'a>(options: &[&'a [u8]]) -> (Vec<&'a [u8]>, bool) {
    let (mut others, mut is_there, mut rest) = (Vec::with_capacity(options.len()), false, options);
    while let [option, after @ ..] = rest {
        if is(option, "NOVALUES") {
            is_there = true;
            rest = after;
        } else {
            let width = rest.len().min(2);
            others.extend(&rest[..width]);
            rest = &rest[width..];
        }
    }
    (others, is_there)
}
