//! Sets: distinct members, and intersections, unions and differences of sets.

use super::keyspace_wide::{self, ScanOptions};
use super::members::{self, Wanted};
use super::parse::{self, is};
use super::strings::{check_answer, check_length};
use super::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::random::Random;
use crate::value::{Set, Text, Type};
use crate::watch::part::Part;
use crate::watch::touched::Touched;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Set, id, name, arity, flags, keys, Run::Keys(run))
}

const ONE: KeySpec = KeySpec::ONE;
const REST: KeySpec = KeySpec::REST;

pub(super) const COMMANDS: &[Command] =
    &[
        row(300, "sadd", -3, WRITE | DENYOOM | FAST, ONE, sadd).using(&["RW insert"]).doc(
            "1.0.0",
            "O(N) with N the number of members",
            "key member [member ...]",
            "Adds members and returns how many of them are new.",
        ),
        row(301, "srem", -3, WRITE | FAST, ONE, srem).using(&["RW delete"]).doc(
            "1.0.0",
            "O(N) with N the number of members",
            "key member [member ...]",
            "Removes members, and the key with the last of them.",
        ),
        row(302, "sismember", 3, READONLY | FAST, ONE, sismember)
            .answering(Answer::Ordered)
            .using(&["RO"])
            .doc("1.0.0", "O(1)", "key member", "Tells whether something is a member.")
            .looking_at(|_| Part::elements(Type::Set)),
        row(303, "smismember", -3, READONLY | FAST, ONE, smismember)
            .answering(Answer::Ordered)
            .using(&["RO access"])
            .doc(
                "6.2.0",
                "O(N) with N the number of members asked for",
                "key member [member ...]",
                "Tells of several things whether each is a member.",
            )
            .looking_at(|_| Part::elements(Type::Set)),
        row(304, "smembers", 2, READONLY, ONE, smembers)
            .answering(Answer::Unordered(1))
            .using(&["RO access"])
            .visiting_all()
            .tips(&["nondeterministic_output_order"])
            .doc("1.0.0", "O(N) with N the size of the set", "key", "Returns all members."),
        row(305, "scard", 2, READONLY | FAST, ONE, scard).answering(Answer::Ordered).using(&["RO"]).doc(
            "1.0.0",
            "O(1)",
            "key",
            "Returns the number of members.",
        ),
        row(306, "spop", -2, WRITE | FAST, ONE, spop)
            .using(&["RW access delete"])
            .tips(&["nondeterministic_output"])
            .doc(
                "1.0.0",
                "O(1) without a count, otherwise O(N) with N the number of members removed",
                "key [count]",
                "Removes members at random and returns them.",
            ),
        row(307, "srandmember", -2, READONLY, ONE, srandmember)
            .answering(Answer::Unrepeatable)
            .using(&["RO access"])
            .tips(&["nondeterministic_output"])
            .doc(
                "1.0.0",
                "O(1) without a count, otherwise O(N) with N the number of members returned",
                "key [count]",
                "Returns members at random: different ones, or with a negative count with repeats.",
            ),
        row(308, "smove", 4, WRITE | FAST, KeySpec::TWO, smove)
            .using(&["RW access delete", "RW insert"])
            .doc("1.0.0", "O(1)", "source destination member", "Moves a member from one set to another."),
        row(309, "sinter", -2, READONLY, REST, sinter)
            .answering(Answer::Unordered(1))
            .using(&["RO access"])
            .visiting_all()
            .tips(&["nondeterministic_output_order"])
            .doc(
                "1.0.0",
                "O(N*M) with N the size of the smallest set and M the number of sets",
                "key [key ...]",
                "Returns the members that all of the sets have.",
            ),
        row(310, "sintercard", -3, READONLY | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, sintercard)
            .answering(Answer::Ordered)
            .using(&["RO access"])
            .visiting_all()
            .doc(
                "7.0.0",
                "O(N*M) with N the size of the smallest set and M the number of sets",
                "numkeys key [key ...] [LIMIT limit]",
                "Counts the members that all of the sets have, up to a limit.",
            ),
        row(311, "sinterstore", -3, WRITE | DENYOOM, REST, sinterstore)
            .using(&["RW update", "RO access"])
            .visiting_all()
            .doc(
                "1.0.0",
                "O(N*M) with N the size of the smallest set and M the number of sets",
                "destination key [key ...]",
                "Stores the members that all of the sets have in a key, whatever it held.",
            ),
        row(312, "sunion", -2, READONLY, REST, sunion)
            .answering(Answer::Unordered(1))
            .using(&["RO access"])
            .visiting_all()
            .tips(&["nondeterministic_output_order"])
            .doc(
                "1.0.0",
                "O(N) with N the members of all sets",
                "key [key ...]",
                "Returns the members that any of the sets has.",
            ),
        row(313, "sunionstore", -3, WRITE | DENYOOM, REST, sunionstore)
            .using(&["OW update", "RO access"])
            .visiting_all()
            .doc(
                "1.0.0",
                "O(N) with N the members of all sets",
                "destination key [key ...]",
                "Stores the members that any of the sets has in a key, whatever it held.",
            ),
        row(314, "sdiff", -2, READONLY, REST, sdiff)
            .answering(Answer::Unordered(1))
            .using(&["RO access"])
            .visiting_all()
            .tips(&["nondeterministic_output_order"])
            .doc(
                "1.0.0",
                "O(N) with N the members of all sets",
                "key [key ...]",
                "Returns the members that the first set has and no other.",
            ),
        row(315, "sdiffstore", -3, WRITE | DENYOOM, REST, sdiffstore)
            .using(&["OW update", "RO access"])
            .visiting_all()
            .doc(
                "1.0.0",
                "O(N) with N the members of all sets",
                "destination key [key ...]",
                "Stores the members that the first set has and no other in a key, whatever it held.",
            ),
        row(316, "sscan", -3, READONLY, ONE, sscan)
            .answering(Answer::Iterated(1))
            .using(&["RO access"])
            .tips(&["nondeterministic_output"])
            .doc(
                "2.8.0",
                "O(1) for every call, O(N) for a complete iteration with N the size of the set",
                "key cursor [MATCH pattern] [COUNT count]",
                "Iterates over the members of a set.",
            )
            .looking_at(|args| Part::scan(Type::Set, args)),
    ];

fn sadd(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let members = &args[2..];
    members.iter().try_for_each(|member| check_length(member.len()))?;
    let added = ctx
        .keys
        .upsert(args[1], |set: &mut Set| members.iter().filter(|member| set.insert(member)).count())?;
    if added > 0 {
        ctx.keys.changed_in(args[1], "sadd", || Touched::names(Type::Set, members));
    }
    ctx.reply.count(added);
    Ok(())
}

fn srem(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    members::remove(ctx, args, "srem", |set: &mut Set, member| set.remove(member))
}

fn sismember(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let is_member = ctx.keys.read::<Set>(args[1])?.is_some_and(|set| set.contains(args[2]));
    ctx.reply.integer(i64::from(is_member));
    Ok(())
}

fn smismember(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let set = ctx.keys.read::<Set>(args[1])?;
    ctx.reply.array(args.len() - 2);
    for member in &args[2..] {
        ctx.reply.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

fn smembers(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let set = ctx.keys.read::<Set>(args[1])?;
    ctx.reply.set(set.map_or(0, Set::len));
    set.into_iter().flat_map(Set::iter).for_each(|member| ctx.reply.bulk(&member));
    Ok(())
}

fn scard(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let len = ctx.keys.read::<Set>(args[1])?.map_or(0, Set::len);
    ctx.reply.count(len);
    Ok(())
}

/// Removes random members; logs which ones.
fn spop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    match args {
        [_, key] => spop_one(ctx, key),
        [_, key, count] => {
            let count = parse::at_least(0, count, parse::NOT_POSITIVE)?;
            spop_many(ctx, key, count)
        }
        _ => Err(CommandError::Syntax),
    }
}

fn spop_one(ctx: &mut Context<'_, '_>, key: &[u8]) -> Result<(), CommandError> {
    let mut random = Random::new(ctx.keys.random());
    let popped = ctx.keys.update(key, |set: &mut Set| {
        let member = set.random(&mut random)?.to_vec();
        set.remove(&member).then_some(member)
    })?;
    match popped.flatten() {
        Some(member) => {
            let name = [member.as_slice()];
            ctx.keys.changed_in(key, "spop", || Touched::names(Type::Set, &name));
            ctx.keys.log_instead("srem", &[key, &member]);
            ctx.reply.bulk(&member);
        }
        None => ctx.reply.null(),
    }
    Ok(())
}

fn spop_many(ctx: &mut Context<'_, '_>, key: &[u8], count: usize) -> Result<(), CommandError> {
    let mut random = Random::new(ctx.keys.random());
    let Some(set) = ctx.keys.read::<Set>(key)?.filter(|_| count > 0) else {
        ctx.reply.set(0);
        return Ok(());
    };
    if count >= set.len() {
        ctx.reply.set(set.len());
        set.iter().for_each(|member| ctx.reply.bulk(&member));
        ctx.keys.remove(key);
        ctx.keys.changed(key, "spop");
        ctx.keys.log_instead("del", &[key]);
        return Ok(());
    }
    let chosen: Vec<Vec<u8>> = set.sample(count, &mut random).iter().map(|member| member.to_vec()).collect();
    // The members are logged in one record, whose size is limited.
    if !ctx.keys.may_log_instead(chosen.iter().map(Vec::len).sum()) {
        return Err(CommandError::text("ERR the members exceed 192 MiB together; pop fewer at a time"));
    }
    ctx.keys.update(key, |set: &mut Set| {
        for member in &chosen {
            let removed = set.remove(member);
            assert!(removed, "a sample consists of members");
        }
    })?;
    let logged: Vec<&[u8]> = std::iter::once(key).chain(chosen.iter().map(Vec::as_slice)).collect();
    ctx.keys.changed_in(key, "spop", || Touched::names(Type::Set, &logged[1..]));
    ctx.keys.log_instead("srem", &logged);
    ctx.reply.set(chosen.len());
    chosen.iter().for_each(|member| ctx.reply.bulk(member));
    Ok(())
}

fn srandmember(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let mut random = Random::new(ctx.keys.random());
    let wanted = match args {
        [_, key] => {
            match ctx.keys.read::<Set>(key)?.and_then(|set| set.random(&mut random)) {
                Some(member) => ctx.reply.bulk(&member),
                None => ctx.reply.null(),
            }
            return Ok(());
        }
        [_, _, count] => Wanted::parse(count)?,
        _ => return Err(CommandError::Syntax),
    };
    let Some(set) = ctx.keys.read::<Set>(args[1])? else {
        ctx.reply.array(0);
        return Ok(());
    };
    let start = ctx.reply.len();
    match wanted {
        Wanted::Repeated(count) => {
            ctx.reply.array(count);
            set.draw(count, &mut random, |member| {
                ctx.reply.bulk(&member);
                check_answer(ctx.reply, start)
            })
        }
        Wanted::Different(count) => {
            let sample = set.sample(count, &mut random);
            ctx.reply.array(sample.len());
            sample.iter().for_each(|member| ctx.reply.bulk(member));
            Ok(())
        }
    }
}

fn smove(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (source, destination, member) = (args[1], args[2], args[3]);
    let Some(set) = ctx.keys.read::<Set>(source)? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let is_member = set.contains(member);
    ctx.keys.read::<Set>(destination)?;
    if is_member && source != destination {
        ctx.keys.update(source, |set: &mut Set| set.remove(member))?;
        let touched = Touched::names(Type::Set, &args[3..]);
        ctx.keys.changed_in(source, "srem", || touched);
        if ctx.keys.upsert(destination, |set: &mut Set| set.insert(member))? {
            ctx.keys.changed_in(destination, "sadd", || touched);
        }
    }
    ctx.reply.integer(i64::from(is_member));
    Ok(())
}

/// Returns the sets of several keys; `None` for a key that does not exist.
fn read_sets<'a>(keys: &'a Keys<'_>, names: &[&[u8]]) -> Result<Vec<Option<&'a Set>>, CommandError> {
    names.iter().map(|name| keys.read::<Set>(name)).collect()
}

/// Returns the sets of several keys, or none if a key does not exist: the intersection is then
/// empty.
fn read_all_sets<'a>(keys: &'a Keys<'_>, names: &[&[u8]]) -> Result<Vec<&'a Set>, CommandError> {
    Ok(read_sets(keys, names)?.into_iter().collect::<Option<_>>().unwrap_or_default())
}

fn intersection(keys: &Keys<'_>, names: &[&[u8]]) -> Result<Set, CommandError> {
    Ok(Set::intersection(&read_all_sets(keys, names)?).collect())
}

fn union(keys: &Keys<'_>, names: &[&[u8]]) -> Result<Set, CommandError> {
    let sets: Vec<&Set> = read_sets(keys, names)?.into_iter().flatten().collect();
    Ok(Set::union(&sets))
}

fn difference(keys: &Keys<'_>, names: &[&[u8]]) -> Result<Set, CommandError> {
    match &*read_sets(keys, names)? {
        [Some(first), others @ ..] => {
            let others: Vec<&Set> = others.iter().copied().flatten().collect();
            Ok(first.difference(&others))
        }
        _ => Ok(Set::default()),
    }
}

fn reply_set(ctx: &mut Context<'_, '_>, set: &Set) {
    ctx.reply.set(set.len());
    set.iter().for_each(|member| ctx.reply.bulk(&member));
}

fn store(ctx: &mut Context<'_, '_>, destination: &[u8], result: Set, event: &'static str) {
    let len = result.len();
    members::store(ctx, destination, (result, len), event);
}

fn sinter(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let sets = read_all_sets(ctx.keys, &args[1..])?;
    let common: Vec<Text<'_>> = Set::intersection(&sets).collect();
    ctx.reply.set(common.len());
    common.iter().for_each(|member| ctx.reply.bulk(member));
    Ok(())
}

fn sintercard(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let count = parse::at_least(1, args[1], "ERR numkeys should be greater than 0")?;
    let (names, mut options) = args[2..]
        .split_at_checked(count)
        .ok_or(CommandError::text("ERR Number of keys can't be greater than number of args"))?;
    let mut limit = 0;
    while let [option, rest @ ..] = options {
        match rest {
            [value, after @ ..] if is(option, "LIMIT") => {
                limit = parse::at_least(0, value, "ERR LIMIT can't be negative")?;
                options = after;
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    let limit = if limit == 0 { usize::MAX } else { limit };
    let sets = read_all_sets(ctx.keys, names)?;
    ctx.reply.count(Set::intersection(&sets).take(limit).count());
    Ok(())
}

fn sinterstore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let result = intersection(ctx.keys, &args[2..])?;
    store(ctx, args[1], result, "sinterstore");
    Ok(())
}

fn sunion(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let result = union(ctx.keys, &args[1..])?;
    reply_set(ctx, &result);
    Ok(())
}

fn sunionstore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let result = union(ctx.keys, &args[2..])?;
    store(ctx, args[1], result, "sunionstore");
    Ok(())
}

fn sdiff(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let result = difference(ctx.keys, &args[1..])?;
    reply_set(ctx, &result);
    Ok(())
}

fn sdiffstore(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let result = difference(ctx.keys, &args[2..])?;
    store(ctx, args[1], result, "sdiffstore");
    Ok(())
}

fn sscan(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let cursor = keyspace_wide::cursor(args[2])?;
    let Some(set) = ctx.keys.read::<Set>(args[1])? else {
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        ctx.reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(&args[3..], false)?;
    let mut found = Vec::new();
    let next = set.scan(cursor, options.count, |member| {
        if options.matches(&member) {
            found.push(member);
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    ctx.reply.array(found.len());
    found.iter().for_each(|member| ctx.reply.bulk(member));
    Ok(())
}
