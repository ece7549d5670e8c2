//! Commands on all keys of a database, or on all databases.

use super::parse::{self, glob, is};
use super::{Answer, Command, Group, Handler, KeySpec, Run, WriteReach, flags::*};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{self, DATABASES, Entry, SLOTS, Table, reclaim};
use crate::random::Random;
use crate::value::Type;
use crate::wire::reply::Reply;

const fn row(group: Group, id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    Command::new(group, id, name, arity, flags, KeySpec::All, Run::Keys(run))
}

/// Row of a command that locks one shard at a time.
const fn visit(id: u16, name: &'static str, arity: i16, run: Handler) -> Command {
    Command::new(Group::Generic, id, name, arity, READONLY, KeySpec::Each, Run::Keys(run))
}

pub(super) const COMMANDS: &[Command] = &[
    visit(140, "keys", 2, keys)
        .answering(Answer::Unordered(1))
        .visiting_all()
        .in_categories(&["@dangerous"], &[])
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .doc(
            "1.0.0",
            "O(N) with N the number of keys in the database",
            "pattern",
            "Returns all keys that match a pattern.",
        ),
    visit(141, "scan", -2, scan)
        .answering(Answer::Iterated(1))
        .tips(&["nondeterministic_output", "request_policy:special"])
        .doc(
            "2.8.0",
            "O(1) for every call, O(N) for a complete iteration with N the number of keys in the database",
            "cursor [MATCH pattern] [COUNT count] [TYPE type]",
            "Iterates over the keys of the database.",
        ),
    visit(142, "randomkey", 1, randomkey)
        .answering(Answer::Unrepeatable)
        .tips(&["request_policy:all_shards", "nondeterministic_output"])
        .doc(
            "1.0.0",
            "O(1), and O(N) with N the number of keys in the database if nearly all of them have expired",
            "",
            "Returns a random key.",
        ),
    row(Group::Server, 143, "dbsize", 1, READONLY | FAST, dbsize)
        .answering(Answer::Ordered)
        .in_categories(&["@keyspace"], &[])
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
        .doc("1.0.0", "O(1)", "", "Returns the number of keys in the database."),
    row(Group::Server, 144, "flushdb", -1, WRITE, flushdb)
        .reaching(WriteReach::Database)
        .in_categories(&["@keyspace", "@dangerous"], &[])
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc(
            "1.0.0",
            "O(N) with N the number of keys in the database, in the background unless SYNC is given",
            "[ASYNC | SYNC]",
            "Removes all keys of the database.",
        ),
    row(Group::Server, 145, "flushall", -1, WRITE, flushall)
        .reaching(WriteReach::Databases)
        .in_categories(&["@keyspace", "@dangerous"], &[])
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc(
            "1.0.0",
            "O(N) with N the number of keys, in the background unless SYNC is given",
            "[ASYNC | SYNC]",
            "Removes all keys of all databases.",
        ),
    row(Group::Server, 146, "swapdb", 3, WRITE | FAST, swapdb)
        .reaching(WriteReach::Databases)
        .in_categories(&["@keyspace", "@dangerous"], &[])
        .doc("4.0.0", "O(S) with S the number of shards", "index1 index2", "Exchanges two databases."),
];

/// Row of a command about one slot, which the server has among the subcommands of `CLUSTER`.
const fn of_slot(id: u16, name: &'static str, arity: i16, run: Handler) -> Command {
    Command::new(Group::Cluster, id, name, arity, READONLY | STALE, KeySpec::Each, Run::Keys(run))
        .answering(Answer::Unordered(1))
        .visiting_all()
        .in_categories(&[], &["@read"])
}

/// Row of `CLUSTER COUNTKEYSINSLOT`.
pub const COUNT_KEYS_IN_SLOT: Command = of_slot(1053, "countkeysinslot", 3, count_keys_in_slot).doc(
    "3.0.0",
    "O(N) with N the keys of the slot's shard, one of 64",
    "slot",
    "Returns the number of the database's keys in a slot.",
);

/// Row of `CLUSTER GETKEYSINSLOT`.
pub const KEYS_IN_SLOT: Command =
    of_slot(1054, "getkeysinslot", 4, keys_in_slot).tips(&["nondeterministic_output"]).doc(
        "3.0.0",
        "O(N) with N the keys of the slot's shard, one of 64",
        "slot count",
        "Returns keys of the database in a slot.",
    );

fn count_keys_in_slot(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let slot = parse::integer(args[2])?;
    let slot = slot_of(slot).ok_or(CommandError::text("ERR Invalid slot"))?;
    let mut count = 0;
    visit_slot(ctx, slot, |_| count += 1);
    ctx.reply.count(count);
    Ok(())
}

fn keys_in_slot(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (slot, most) = (parse::integer(args[2])?, parse::integer(args[3])?);
    let (Some(slot), Ok(most)) = (slot_of(slot), usize::try_from(most)) else {
        return Err(CommandError::text("ERR Invalid slot or number of keys"));
    };
    let (mut count, mut found) = (0, ctx.reply.apart());
    visit_slot(ctx, slot, |key| {
        if count < most {
            found.bulk(key);
            count += 1;
        }
    });
    reply_found(ctx, count, &found);
    Ok(())
}

/// Replies with elements that were collected apart, because their number comes first.
fn reply_found(ctx: &mut Context<'_, '_>, count: usize, found: &Reply) {
    ctx.reply.array(count);
    ctx.reply.encoded(found.bytes());
    if found.was_refused() {
        ctx.reply.refuse();
    } else if found.has_overflowed() {
        ctx.reply.overflow();
    }
}

fn slot_of(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|slot| *slot < SLOTS)
}

/// Calls `note` with each key of a slot that has not expired.
fn visit_slot(ctx: &Context<'_, '_>, slot: usize, mut note: impl FnMut(&[u8])) {
    let db = ctx.keys.db() as usize;
    // Where `Keyspace::shard_of` finds the slot's keys.
    let index = slot % ctx.keys.shard_count();
    ctx.keys.visit(index, |shard| {
        let live = shard.database(db).table().iter().filter(|entry| !ctx.keys.is_expired(entry));
        live.map(Entry::key).filter(|key| keyspace::slot(key) == slot).for_each(&mut note);
    });
}

fn keys(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let db = ctx.keys.db() as usize;
    let all = args[1] == b"*";
    let (mut count, mut found) = (0, ctx.reply.apart());
    for index in 0..ctx.keys.shard_count() {
        ctx.keys.visit(index, |shard| {
            let live = shard.database(db).table().iter().filter(|entry| !ctx.keys.is_expired(entry));
            for key in live.map(Entry::key).filter(|key| all || glob(args[1], key)) {
                found.bulk(key);
                count += 1;
            }
        });
    }
    reply_found(ctx, count, &found);
    Ok(())
}

/// The options of SCAN and its variants.
pub(super) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    /// Number of entries to visit.
    pub(super) count: usize,
    kind: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    /// Parses `[MATCH pattern] [COUNT count]`, and `[TYPE type]` if `with_type`.
    pub(super) fn parse(args: &[&'a [u8]], with_type: bool) -> Result<Self, CommandError> {
        let mut options = Self { pattern: None, count: 10, kind: None };
        let (pairs, rest) = args.as_chunks::<2>();
        for [keyword, value] in pairs {
            if is(keyword, "MATCH") {
                options.pattern = Some(value).filter(|pattern| **pattern != b"*").copied();
            } else if is(keyword, "COUNT") {
                let count = parse::integer(value)?;
                options.count =
                    usize::try_from(count).ok().filter(|&count| count > 0).ok_or(CommandError::Syntax)?;
            } else if is(keyword, "TYPE") && with_type {
                options.kind = Some(value);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if rest.is_empty() { Ok(options) } else { Err(CommandError::Syntax) }
    }

    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob(pattern, text))
    }
}

/// Parses a cursor. As in Redis, an empty one is 0, and signs follow C's `strtoul`: negative
/// numbers count down from 2^64.
pub(super) fn cursor(arg: &[u8]) -> Result<u64, CommandError> {
    if arg.is_empty() {
        return Ok(0);
    }
    let (negative, digits) = match arg {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
    let number: Option<u64> = digits.and_then(|digits| digits.parse().ok());
    let number = number.ok_or(CommandError::text("ERR invalid cursor"))?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

/// Number of low bits of a cursor, which are the shard's index. Above them is the position in hash
/// order with its bits reversed. Only high bits of the position are ever set, so cursors stay about
/// as small as the tables, and fit in a double.
const SHARD_BITS: u32 = 14;
const _: () = assert!(crate::keyspace::SLOTS == 1 << SHARD_BITS);

fn scan(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    scan_of(ctx, args, None)
}

/// SCAN, over the keys of one type if `only` is given; then the options have no type.
pub(super) fn scan_of(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    only: Option<Type>,
) -> Result<(), CommandError> {
    let start = cursor(args[1])?;
    let mut options = ScanOptions::parse(&args[2..], only.is_none())?;
    options.kind = only.map(|kind| kind.name().as_bytes()).or(options.kind);
    let db = ctx.keys.db() as usize;
    let mut shard_index = (start & ((1 << SHARD_BITS) - 1)) as usize;
    let mut position = (start >> SHARD_BITS).reverse_bits();
    let mut found = Vec::new();
    let mut looked_at = 0;
    let shards = ctx.keys.shard_count();
    let mut next = 0;
    while shard_index < shards {
        let budget = options.count - looked_at;
        let look = |entry: &Entry| {
            looked_at += 1;
            let kind_fits =
                options.kind.is_none_or(|kind| kind.eq_ignore_ascii_case(entry.type_of().name().as_bytes()));
            if kind_fits && options.matches(entry.key()) && !ctx.keys.is_expired(entry) {
                found.push(entry.key().to_vec());
            }
        };
        position =
            ctx.keys.visit(shard_index, |shard| shard.database(db).table().scan(position, budget, look));
        if position == 0 {
            shard_index += 1;
        }
        if looked_at >= options.count || position != 0 {
            let at = position.reverse_bits() << SHARD_BITS | shard_index as u64;
            next = if shard_index < shards { at } else { 0 };
            break;
        }
    }
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    ctx.reply.array(found.len());
    found.iter().for_each(|key| ctx.reply.bulk(key));
    Ok(())
}

/// Draws of RANDOMKEY that find an expired key, before it walks over all keys.
const EXPIRED_DRAWS: usize = 100;

/// Draws a key uniformly from all keys, and draws again if it has expired.
fn randomkey(ctx: &mut Context<'_, '_>, _args: &[&[u8]]) -> Result<(), CommandError> {
    let db = ctx.keys.db() as usize;
    let mut random = Random::new(ctx.keys.random());
    let size = |index| ctx.keys.visit(index, |shard| shard.database(db).len());
    let sizes: Vec<usize> = (0..ctx.keys.shard_count()).map(size).collect();
    let total: usize = sizes.iter().sum();
    let draws = if total == 0 { 0 } else { EXPIRED_DRAWS };
    for _ in 0..draws {
        let mut chosen = random.below(total);
        let index = sizes.iter().position(|&size| {
            let is_here = chosen < size;
            chosen = chosen.saturating_sub(size);
            is_here
        });
        let found = index.and_then(|index| {
            ctx.keys.visit(index, |shard| {
                let entry = shard.database(db).table().random(|| random.next());
                entry.filter(|entry| !ctx.keys.is_expired(entry)).map(|entry| entry.key().to_vec())
            })
        });
        if let Some(key) = found {
            ctx.reply.bulk(&key);
            return Ok(());
        }
    }
    let found = if total == 0 { None } else { random_among_expired(ctx, db, &mut random) };
    ctx.reply.bulk_or_null(found.as_deref());
    Ok(())
}

/// Returns a random key that has not expired, by reservoir sampling in one pass over all keys: the
/// n-th replaces the key chosen so far with probability 1/n.
#[cold]
fn random_among_expired(ctx: &Context<'_, '_>, db: usize, random: &mut Random) -> Option<Vec<u8>> {
    let (mut seen, mut chosen) = (0, None);
    for index in 0..ctx.keys.shard_count() {
        ctx.keys.visit(index, |shard| {
            let mut chosen_here = None;
            for entry in shard.database(db).table().iter().filter(|entry| !ctx.keys.is_expired(entry)) {
                seen += 1;
                if random.below(seen) == 0 {
                    chosen_here = Some(entry);
                }
            }
            if let Some(entry) = chosen_here {
                chosen = Some(entry.key().to_vec());
            }
        });
    }
    chosen
}

/// Counts with every shard locked. One shard at a time would count a key that is renamed meanwhile
/// twice or not at all. The lengths are stored, so the locks are held for a microsecond.
fn dbsize(ctx: &mut Context<'_, '_>, _args: &[&[u8]]) -> Result<(), CommandError> {
    let db = ctx.keys.db() as usize;
    let total = ctx.keys.shards().map(|shard| shard.database(db).len()).sum();
    ctx.reply.count(total);
    Ok(())
}

/// Parses `[ASYNC | SYNC]`. Returns whether memory may be freed on another thread.
fn flush_mode(args: &[&[u8]]) -> Result<bool, CommandError> {
    match args {
        [_] => Ok(true),
        [_, mode] if is(mode, "ASYNC") => Ok(true),
        [_, mode] if is(mode, "SYNC") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}

fn flush(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    databases: std::ops::Range<usize>,
) -> Result<(), CommandError> {
    let is_beside = flush_mode(args)?;
    for db in databases.clone() {
        ctx.keys.changed_everything(db as u8, None);
    }
    let tables: Vec<_> = ctx
        .keys
        .shards_mut()
        .flat_map(|shard| {
            databases.clone().filter_map(|db| shard.database_mut(db).clear()).collect::<Vec<_>>()
        })
        .filter(|table| !table.is_empty())
        .collect();
    if is_beside && !tables.is_empty() {
        let keys: usize = tables.iter().map(Table::len).sum();
        reclaim(tables, keys as u64);
    }
    ctx.reply.ok();
    Ok(())
}

fn flushdb(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let db = ctx.keys.db() as usize;
    flush(ctx, args, db..db + 1)
}

fn flushall(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    flush(ctx, args, 0..DATABASES)
}

fn swapdb(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let number = |arg: &[u8], name| {
        let number = parse::integer(arg).ok().and_then(|number| i32::try_from(number).ok());
        number.ok_or(CommandError::Text(format!("ERR invalid {name} DB index").into()))
    };
    let index = |number| parse::existing_database(number).map(usize::from);
    let (one, other) = (number(args[1], "first")?, number(args[2], "second")?);
    let (one, other) = (index(one)?, index(other)?);
    if one != other {
        ctx.keys.shards_mut().for_each(|shard| shard.swap(one, other));
        ctx.keys.changed_everything(one as u8, Some(other as u8));
        ctx.keys.changed_everything(other as u8, Some(one as u8));
    }
    ctx.reply.ok();
    Ok(())
}
