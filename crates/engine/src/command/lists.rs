//! Lists: sequences with pushes and pops at both ends, optionally blocking.

use super::first_of::FirstOf;
use super::parse::{self, is};
use super::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::blocking::waiter::Block;
use crate::context::Context;
use crate::error::CommandError;
use crate::value::{End, List, Type, TypedValue};
use crate::watch::part::Part;
use crate::watch::touched::{Splice, Touched};

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::List, id, name, arity, flags, keys, Run::Keys(run))
}

const GROWS: u32 = WRITE | DENYOOM;
const WAITS: u32 = WRITE | NOSCRIPT | BLOCKING;
/// Keys, then a timeout.
const KEYS_TIMEOUT: KeySpec = KeySpec::Range { first: 1, last: -2, step: 1 };

pub(super) const COMMANDS: &[Command] = &[
    row(200, "lpush", -3, GROWS | FAST, KeySpec::ONE, lpush).using(&["RW insert"]).doc(
        "1.0.0",
        "O(1) for each element",
        "key element [element ...]",
        "Puts elements one after the other at the front of a list, which is created if needed.",
    ),
    row(201, "rpush", -3, GROWS | FAST, KeySpec::ONE, rpush).using(&["RW insert"]).doc(
        "1.0.0",
        "O(1) for each element",
        "key element [element ...]",
        "Appends elements to a list, which is created if needed.",
    ),
    row(202, "lpushx", -3, GROWS | FAST, KeySpec::ONE, lpushx).using(&["RW insert"]).doc(
        "2.2.0",
        "O(1) for each element",
        "key element [element ...]",
        "Puts elements one after the other at the front of a list if the list exists.",
    ),
    row(203, "rpushx", -3, GROWS | FAST, KeySpec::ONE, rpushx).using(&["RW insert"]).doc(
        "2.2.0",
        "O(1) for each element",
        "key element [element ...]",
        "Appends elements to a list if the list exists.",
    ),
    row(204, "lpop", -2, WRITE | FAST, KeySpec::ONE, lpop).using(&["RW access delete"]).doc(
        "1.0.0",
        "O(N) with N the number of elements returned",
        "key [count]",
        "Removes and returns the first elements of a list.",
    ),
    row(205, "rpop", -2, WRITE | FAST, KeySpec::ONE, rpop).using(&["RW access delete"]).doc(
        "1.0.0",
        "O(N) with N the number of elements returned",
        "key [count]",
        "Removes and returns the last elements of a list, the last one first.",
    ),
    row(206, "llen", 2, READONLY | FAST, KeySpec::ONE, llen).answering(Answer::Ordered).using(&["RO"]).doc(
        "1.0.0",
        "O(1)",
        "key",
        "Returns the length of a list.",
    )
    .looking_at(|_| Part::Length { of: Type::List }),
    row(207, "lindex", 3, READONLY, KeySpec::ONE, lindex)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "1.0.0",
            "O(N) with N the distance from the nearer end, in chunks of about 8 KiB",
            "key index",
            "Returns an element of a list by its index.",
        )
    .looking_at(|args| Part::span(Type::List, args, 2, 2)),
    row(208, "lset", 4, GROWS, KeySpec::ONE, lset).using(&["RW update"]).doc(
        "1.0.0",
        "O(N) with N the distance from the nearer end, in chunks of about 8 KiB",
        "key index element",
        "Replaces the element of a list at an index.",
    ),
    row(209, "lrange", 4, READONLY, KeySpec::ONE, lrange)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "1.0.0",
            "O(S+N) with S the distance of start from the nearer end and N the number of elements returned",
            "key start stop",
            "Returns a range of a list's elements.",
        )
    .looking_at(|args| Part::span(Type::List, args, 2, 3)),
    row(210, "ltrim", 4, WRITE, KeySpec::ONE, ltrim).using(&["RW delete"]).doc(
        "1.0.0",
        "O(N) with N the number of elements removed",
        "key start stop",
        "Removes all elements of a list outside a range.",
    ),
    row(211, "linsert", 5, GROWS, KeySpec::ONE, linsert).using(&["RW insert"]).visiting_all().doc(
        "2.2.0",
        "O(N) with N the number of elements in front of the pivot",
        "key <BEFORE | AFTER> pivot element",
        "Inserts an element before or behind the first element that equals the pivot.",
    ),
    row(212, "lrem", 4, WRITE, KeySpec::ONE, lrem).using(&["RW delete"]).visiting_all().doc(
        "1.0.0",
        "O(N) with N the length of the list",
        "key count element",
        "Removes the first count elements equal to the one given: the last ones if count is negative, all if it is 0.",
    ),
    row(213, "lpos", -3, READONLY, KeySpec::ONE, lpos)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "6.0.6",
            "O(N) with N the number of elements compared",
            "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
            "Returns the indices of elements equal to the one given.",
        ),
    row(214, "lmove", 5, GROWS, KeySpec::TWO, lmove).using(&["RW access delete", "RW insert"]).doc(
        "6.2.0",
        "O(1)",
        "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
        "Moves an element from an end of one list to an end of another and returns it.",
    ),
    row(215, "rpoplpush", 3, GROWS, KeySpec::TWO, rpoplpush).using(&["RW access delete", "RW insert"]).doc(
        "1.2.0",
        "O(1)",
        "source destination",
        "Moves the last element of one list to the front of another: the older form of LMOVE.",
    ),
    row(216, "lmpop", -4, WRITE | MOVABLE_KEYS, KeySpec::Counted { at: 1 }, lmpop)
        .using(&["RW access delete"])
        .doc(
            "7.0.0",
            "O(N+M) with N the number of keys and M the number of elements returned",
            "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
            "Removes and returns elements of the first of several lists that exists.",
        ),
    row(217, "blpop", -3, WAITS, KEYS_TIMEOUT, blpop).using(&["RW access delete"]).doc(
        "2.0.0",
        "O(N) with N the number of keys",
        "key [key ...] timeout",
        "Removes and returns the first element of the first of several lists that exists; waits if there is none.",
    )
    .serving(|ctx, key, _| pop_named(ctx, key, End::Front).map(drop)),
    row(218, "brpop", -3, WAITS, KEYS_TIMEOUT, brpop).using(&["RW access delete"]).doc(
        "2.0.0",
        "O(N) with N the number of keys",
        "key [key ...] timeout",
        "Removes and returns the last element of the first of several lists that exists; waits if there is none.",
    )
    .serving(|ctx, key, _| pop_named(ctx, key, End::Back).map(drop)),
    row(219, "blmove", 6, WAITS | DENYOOM, KeySpec::TWO, blmove)
        .using(&["RW access delete", "RW insert"])
        .doc(
            "6.2.0",
            "O(1)",
            "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
            "Moves an element from an end of one list to an end of another; waits if there is none.",
        )
    .serving(serve_blmove),
    row(220, "brpoplpush", 4, WAITS | DENYOOM, KeySpec::TWO, brpoplpush)
        .using(&["RW access delete", "RW insert"])
        .doc(
            "2.2.0",
            "O(1)",
            "source destination timeout",
            "Moves the last element of one list to the front of another; waits if there is none.",
        )
    .serving(|ctx, _, args| move_logged(ctx, args, BACK_TO_FRONT).map(drop)),
    row(221, "blmpop", -5, WRITE | BLOCKING | MOVABLE_KEYS, KeySpec::Counted { at: 2 }, blmpop)
        .using(&["RW access delete"])
        .doc(
            "7.0.0",
            "O(N+M) with N the number of keys and M the number of elements returned",
            "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
            "Removes and returns elements of the first of several lists that exists; waits if there is none.",
        )
    .serving(serve_blmpop),
];

fn push(ctx: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<(), CommandError> {
    let (key, elements) = (args[1], &args[2..]);
    let len = ctx.keys.upsert(key, |list: &mut List| {
        elements.iter().for_each(|element| list.push(end, element));
        list.len()
    })?;
    ctx.keys.changed_in(key, push_event(end), || resized(end, len - elements.len(), len));
    ctx.reply.count(len);
    Ok(())
}

fn lpush(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    push(ctx, args, End::Front)
}

fn rpush(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    push(ctx, args, End::Back)
}

fn push_if_present(ctx: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<(), CommandError> {
    if ctx.keys.read::<List>(args[1])?.is_some() {
        return push(ctx, args, end);
    }
    ctx.reply.integer(0);
    Ok(())
}

fn lpushx(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    push_if_present(ctx, args, End::Front)
}

fn rpushx(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    push_if_present(ctx, args, End::Back)
}

/// Returns the change of a list by a push or pop at this end.
fn resized<'a>(end: End, old_len: usize, new_len: usize) -> Touched<'a> {
    let splice = match end {
        End::Front => Splice::front(old_len, new_len),
        End::Back => Splice::back(old_len, new_len),
    };
    Touched::Splice { of: Type::List, splice }
}

fn push_event(end: End) -> &'static str {
    if end == End::Front { "lpush" } else { "rpush" }
}

fn pop_event(end: End) -> &'static str {
    if end == End::Front { "lpop" } else { "rpop" }
}

/// Pops one element and answers it. Returns whether there was one.
fn pop_one(ctx: &mut Context<'_, '_>, key: &[u8], end: End) -> Result<bool, CommandError> {
    let reply = &mut *ctx.reply;
    let left = ctx.keys.update(key, |list: &mut List| {
        list.pop(end, |element| reply.bulk(element));
        list.len()
    })?;
    if let Some(left) = left {
        ctx.keys.changed_in(key, pop_event(end), || resized(end, left + 1, left));
    }
    Ok(left.is_some())
}

/// Pops up to `count` elements, at least 1, and answers them as an array. Returns whether there
/// were any.
fn pop_many(ctx: &mut Context<'_, '_>, key: &[u8], end: End, count: usize) -> Result<bool, CommandError> {
    let reply = &mut *ctx.reply;
    let popped = ctx.keys.update(key, |list: &mut List| {
        let count = count.min(list.len());
        reply.array(count);
        for _ in 0..count {
            list.pop(end, |element| reply.bulk(element));
        }
        (count, list.len())
    })?;
    if let Some((count, left)) = popped {
        ctx.keys.changed_in(key, pop_event(end), || resized(end, left + count, left));
    }
    Ok(popped.is_some())
}

fn pop(ctx: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<(), CommandError> {
    match args[2..] {
        [] => {
            if !pop_one(ctx, args[1], end)? {
                ctx.reply.null();
            }
        }
        [count] => {
            let count = parse::at_least(0, count, parse::NOT_POSITIVE)?;
            if ctx.keys.read::<List>(args[1])?.is_none() {
                ctx.reply.null_array();
            } else if count == 0 {
                ctx.reply.array(0);
            } else {
                pop_many(ctx, args[1], end, count)?;
            }
        }
        _ => return Err(CommandError::Arity(pop_event(end).into())),
    }
    Ok(())
}

fn lpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    pop(ctx, args, End::Front)
}

fn rpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    pop(ctx, args, End::Back)
}

fn llen(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let len = ctx.keys.read::<List>(args[1])?.map_or(0, List::len);
    ctx.reply.count(len);
    Ok(())
}

fn lindex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let element = match ctx.keys.read::<List>(args[1])? {
        Some(list) => list.get(parse::integer(args[2])?),
        None => None,
    };
    ctx.reply.bulk_or_null(element);
    Ok(())
}

fn lset(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, element) = (args[1], args[3]);
    ctx.keys.read::<List>(key)?.ok_or(CommandError::NoSuchKey)?;
    let index = parse::integer(args[2])?;
    let set = ctx.keys.update(key, |list: &mut List| list.set(index, element).then(|| list.len()))?;
    let Some(len) = set.flatten() else { return Err(CommandError::IndexOutOfRange) };
    let at = if index < 0 { len.saturating_sub(index.unsigned_abs() as usize) } else { index as usize };
    let splice = Splice::over(len, at, at + 1);
    ctx.keys.changed_in(key, "lset", || Touched::Splice { of: Type::List, splice });
    ctx.reply.ok();
    Ok(())
}

fn lrange(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (start, stop) = (parse::integer(args[2])?, parse::integer(args[3])?);
    let list = ctx.keys.read::<List>(args[1])?;
    let Some((list, range)) = list.and_then(|list| Some((list, parse::range(start, stop, list.len())?)))
    else {
        ctx.reply.array(0);
        return Ok(());
    };
    ctx.reply.array(range.len());
    for element in list.iter_from(range.start).take(range.len()) {
        ctx.reply.bulk(element);
    }
    Ok(())
}

fn ltrim(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (start, stop) = (parse::integer(args[2])?, parse::integer(args[3])?);
    let removed = ctx.keys.update(args[1], |list: &mut List| {
        let before = list.len();
        list.trim(parse::range(start, stop, before).unwrap_or(0..0));
        before - list.len()
    })?;
    match removed {
        // As in Redis, this is an event nevertheless, and aborts transactions that watch the list.
        Some(0) => {
            ctx.keys.abort_watches(args[1]);
            ctx.keys.happened(args[1], "ltrim");
        }
        Some(_) => ctx.keys.changed(args[1], "ltrim"),
        None => {}
    }
    ctx.reply.ok();
    Ok(())
}

fn linsert(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, pivot, element) = (args[1], args[3], args[4]);
    let behind = is(args[2], "AFTER");
    if !behind && !is(args[2], "BEFORE") {
        return Err(CommandError::Syntax);
    }
    let len = ctx
        .keys
        .update(key, |list: &mut List| list.insert_beside(pivot, behind, element).then(|| list.len()))?;
    match len {
        None => ctx.reply.integer(0),
        Some(None) => ctx.reply.integer(-1),
        Some(Some(len)) => {
            ctx.keys.changed(key, "linsert");
            ctx.reply.count(len);
        }
    }
    Ok(())
}

fn lrem(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, count, element) = (args[1], parse::integer(args[2])?, args[3]);
    let removed = ctx.keys.update(key, |list: &mut List| list.remove(element, count))?.unwrap_or(0);
    if removed > 0 {
        ctx.keys.changed(key, "lrem");
    }
    ctx.reply.count(removed);
    Ok(())
}

/// Arguments of LPOS.
struct Search {
    /// First match to report, from 1; negative: counted from the back.
    rank: i64,
    /// Number of matches to report, 0 for all; `None` reports one index instead of an array.
    count: Option<usize>,
    /// Most elements to compare; 0 for all.
    max_len: usize,
}

impl Search {
    fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let mut search = Self { rank: 1, count: None, max_len: 0 };
        let mut rest = args.iter();
        while let Some(option) = rest.next() {
            let value = rest.next().ok_or(CommandError::Syntax)?;
            if is(option, "RANK") {
                search.rank = parse::negatable(value)?;
                if search.rank == 0 {
                    return Err(CommandError::text(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
                         or use negative to start from the end of the list",
                    ));
                }
            } else if is(option, "COUNT") {
                search.count = Some(parse::at_least(0, value, "ERR COUNT can't be negative")?);
            } else if is(option, "MAXLEN") {
                search.max_len = parse::at_least(0, value, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(search)
    }

    /// Returns the indices of matches, in the order in which they are found.
    fn find(&self, list: &List, element: &[u8]) -> Vec<usize> {
        let all_if_0 = |n: usize| if n == 0 { usize::MAX } else { n };
        let (limit, max_len) = (all_if_0(self.count.unwrap_or(1)), all_if_0(self.max_len));
        let skip = usize::try_from(self.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
        let matches = |(_, other): &(usize, &[u8])| *other == element;
        let index = |(index, _)| index;
        if self.rank > 0 {
            let elements = list.iter_from(0).enumerate().take(max_len);
            elements.filter(matches).skip(skip).take(limit).map(index).collect()
        } else {
            let elements = (0..list.len()).rev().zip(list.iter_back()).take(max_len);
            elements.filter(matches).skip(skip).take(limit).map(index).collect()
        }
    }
}

fn lpos(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let search = Search::parse(&args[3..])?;
    let list = ctx.keys.read::<List>(args[1])?;
    let found = list.map(|list| search.find(list, args[2])).unwrap_or_default();
    if search.count.is_some() {
        ctx.reply.array(found.len());
        found.into_iter().for_each(|index| ctx.reply.count(index));
    } else {
        match found.first() {
            Some(&index) => ctx.reply.count(index),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

fn end(arg: &[u8]) -> Result<End, CommandError> {
    if is(arg, "LEFT") {
        Ok(End::Front)
    } else if is(arg, "RIGHT") {
        Ok(End::Back)
    } else {
        Err(CommandError::Syntax)
    }
}

/// Moves an element and answers it. Returns whether there was one.
fn move_element(
    ctx: &mut Context<'_, '_>,
    source: &[u8],
    destination: &[u8],
    (from, to): (End, End),
) -> Result<bool, CommandError> {
    if ctx.keys.read::<List>(source)?.is_none() {
        return Ok(false);
    }
    ctx.keys.read::<List>(destination)?;
    let moved = if source == destination {
        ctx.keys.update(source, |list: &mut List| list.rotate(from, to))?.flatten()
    } else {
        let popped = ctx.keys.update(source, |list: &mut List| list.pop(from, <[u8]>::to_vec))?.flatten();
        if let Some(element) = &popped {
            ctx.keys.upsert(destination, |list: &mut List| list.push(to, element))?;
        }
        popped
    };
    let Some(element) = moved else { return Ok(false) };
    // As in Redis, the keyspace notification of the push comes first.
    ctx.keys.changed(destination, push_event(to));
    ctx.keys.changed(source, pop_event(from));
    ctx.reply.bulk(&element);
    Ok(true)
}

/// The ends of RPOPLPUSH.
const BACK_TO_FRONT: (End, End) = (End::Back, End::Front);

fn lmove(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let ends = (end(args[3])?, end(args[4])?);
    if !move_element(ctx, args[1], args[2], ends)? {
        ctx.reply.null();
    }
    Ok(())
}

fn rpoplpush(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    if !move_element(ctx, args[1], args[2], BACK_TO_FRONT)? {
        ctx.reply.null();
    }
    Ok(())
}

/// The arguments of LMPOP: `numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`.
type MultiPop<'a, 'b> = FirstOf<'a, 'b, End>;

impl<'b> MultiPop<'_, 'b> {
    /// Pops from the first key that exists, and answers. Returns the key.
    fn run(&self, ctx: &mut Context<'_, '_>) -> Result<Option<&'b [u8]>, CommandError> {
        for &key in self.keys {
            if ctx.keys.read::<List>(key)?.is_some() {
                ctx.reply.array(2);
                ctx.reply.bulk(key);
                pop_many(ctx, key, self.end, self.count)?;
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Logs the pop from `key` in its non-blocking form.
    fn log(&self, ctx: &mut Context<'_, '_>, key: &[u8]) {
        ctx.keys.log_instead(pop_event(self.end), &[key, self.count.to_string().as_bytes()]);
    }
}

fn lmpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    if MultiPop::parse(&args[1..], end)?.run(ctx)?.is_none() {
        ctx.reply.null_array();
    }
    Ok(())
}

/// Pops one element of `key` for a client that may have blocked. Returns whether there was one.
fn pop_named(ctx: &mut Context<'_, '_>, key: &[u8], end: End) -> Result<bool, CommandError> {
    if ctx.keys.read::<List>(key)?.is_none() {
        return Ok(false);
    }
    ctx.reply.array(2);
    ctx.reply.bulk(key);
    pop_one(ctx, key, end)?;
    ctx.keys.log_instead(pop_event(end), &[key]);
    Ok(true)
}

fn pop_or_wait(ctx: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<(), CommandError> {
    let [_, keys @ .., timeout] = args else { return Err(CommandError::Syntax) };
    let timeout_ms = parse::timeout_ms(timeout)?;
    for key in keys {
        if pop_named(ctx, key, end)? {
            return Ok(());
        }
    }
    ctx.keys.block(Block::new(List::TYPE, keys, timeout_ms));
    Ok(())
}

fn blpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    pop_or_wait(ctx, args, End::Front)
}

fn brpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    pop_or_wait(ctx, args, End::Back)
}

fn move_logged(ctx: &mut Context<'_, '_>, args: &[&[u8]], ends: (End, End)) -> Result<bool, CommandError> {
    let moved = move_element(ctx, args[1], args[2], ends)?;
    if moved {
        let name = |end| if end == End::Front { b"left".as_slice() } else { b"right" };
        ctx.keys.log_instead("lmove", &[args[1], args[2], name(ends.0), name(ends.1)]);
    }
    Ok(moved)
}

fn move_or_wait(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    ends: (End, End),
    timeout_ms: Option<u64>,
) -> Result<(), CommandError> {
    if move_logged(ctx, args, ends)? {
        return Ok(());
    }
    if ctx.keys.can_wait() {
        ctx.keys.block(Block::new(List::TYPE, &args[1..2], timeout_ms).touching(args[2]));
    } else {
        // Pops answer a null array here, moves a null element.
        ctx.reply.null();
    }
    Ok(())
}

fn blmove(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let ends = (end(args[3])?, end(args[4])?);
    let timeout_ms = parse::timeout_ms(args[5])?;
    move_or_wait(ctx, args, ends, timeout_ms)
}

fn serve_blmove(ctx: &mut Context<'_, '_>, _: &[u8], args: &[&[u8]]) -> Result<(), CommandError> {
    move_logged(ctx, args, (end(args[3])?, end(args[4])?)).map(drop)
}

fn brpoplpush(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let timeout_ms = parse::timeout_ms(args[3])?;
    move_or_wait(ctx, args, BACK_TO_FRONT, timeout_ms)
}

fn blmpop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let pop = MultiPop::parse(&args[2..], end)?;
    let timeout_ms = parse::timeout_ms(args[1])?;
    match pop.run(ctx)? {
        Some(key) => pop.log(ctx, key),
        None => ctx.keys.block(Block::new(List::TYPE, pop.keys, timeout_ms)),
    }
    Ok(())
}

fn serve_blmpop(ctx: &mut Context<'_, '_>, key: &[u8], args: &[&[u8]]) -> Result<(), CommandError> {
    let pop = MultiPop::parse(&args[2..], end)?;
    if (MultiPop { keys: &[key], ..pop }).run(ctx)?.is_some() {
        pop.log(ctx, key);
    }
    Ok(())
}
