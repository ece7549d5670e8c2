//! Counters: positions that change in memory, with the net change logged.

mod options;

use super::keyspace_wide::scan_of;
use super::parse::{self, is};
use super::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::context::{Context, out_of_range};
use crate::error::CommandError;
use crate::keyspace::{Deadline, Payload};
use crate::value::{Counter, Object, Terms, Type};
use options::Options;
use tidemark_counter::{Account, Kind, MAX, Promise, Refusal};

const SINCE: &str = "tidemark 0.1.0";

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    Command::new(Group::Counter, id, name, arity, flags, KeySpec::ONE, Run::Keys(run))
}

const MOVES: u32 = WRITE | FAST | VOLATILE;

pub(super) const COMMANDS: &[Command] = &[
    row(400, "counter.create", -2, WRITE | DENYOOM | FAST, create).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key [LIMIT <units | NONE>] [RELAXED cap | EXACT block] [HIGH units] [LOW units] [MAXAGE milliseconds] [IDLE milliseconds] [SETTLE milliseconds] [NX | XX]",
        "Creates a counter, or changes the terms of one, and returns whether it is new.",
    ),
    row(401, "counter.add", -3, MOVES | DENYOOM, add).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key delta [DURABLE [DOUBT units]]",
        "Moves a counter whatever its limit says, and returns its position; without the key it is created.",
    ),
    row(402, "counter.take", -2, MOVES, take).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key [units]",
        "Takes units, all or none, and returns 1 or 0 and how many are left, which is null without a limit.",
    ),
    row(403, "counter.refund", -2, MOVES, refund).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key [units]",
        "Gives units back, no more than were taken, and returns how many.",
    ),
    row(404, "counter.get", 2, READONLY | FAST, get).answering(Answer::Ordered).using(&["RO access"]).doc(
        SINCE,
        "O(1)",
        "key",
        "Returns the position of a counter; watched, the position that is committed.",
    ),
    row(405, "counter.state", 2, READONLY | FAST, state).answering(Answer::Ordered).using(&["RO access"]).doc(
        SINCE,
        "O(1)",
        "key",
        "Returns the terms, the limit and the books of a counter; watched, those that are committed.",
    ),
    row(406, "counter.limit", 3, WRITE | FAST, limit).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key <units | NONE>",
        "Changes the limit of a counter.",
    ),
    row(407, "counter.commit", 2, WRITE | FAST, commit).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key",
        "Commits what is uncommitted, or gives back what is reserved, and returns how far the committed position has moved.",
    ),
    row(411, "counter.settle", 2, WRITE | FAST, settle).using(&["RW access update"]).doc(
        SINCE,
        "O(1)",
        "key",
        "Gives back the units that crashes left in doubt, which are known not to be held, and returns how many.",
    ),
    row(408, "counter.drop", 2, WRITE | FAST, remove).using(&["RM delete"]).doc(
        SINCE,
        "O(1)",
        "key",
        "Deletes a counter, and nothing else, and returns whether there was one.",
    ),
    Command::new(Group::Counter, 409, "counter.list", -2, READONLY, KeySpec::Each, Run::Keys(list)).answering(Answer::Unrepeatable).doc(
        SINCE,
        "O(1) for every call, O(N) for a complete iteration with N the number of keys in the database",
        "cursor [MATCH pattern] [COUNT count]",
        "Iterates over the counters of the database.",
    ),
];

fn create(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let options = Options::parse(&args[2..])?;
    let existing = ctx.keys.counter(key)?.map(|(account, counter)| (account.kind(), counter.terms().clone()));
    if (options.only_if_absent && existing.is_some()) || (options.only_if_present && existing.is_none()) {
        ctx.reply.integer(0);
        return Ok(());
    }
    let is_new = existing.is_none();
    let (kind, terms) = options.resolve(existing, &ctx.keys.counter_defaults())?;
    if is_new {
        insert(ctx, key, kind, terms);
    } else {
        // With nothing uncommitted, any promise holds.
        ctx.keys.settle_counter(key, false)?;
        let had_idle =
            ctx.keys.set_counter(key, kind, Some(terms.clone()))?.is_some_and(|idle_ms| idle_ms > 0);
        if terms.idle_ms > 0 || had_idle {
            let deadline = ctx.keys.idle_deadline(terms.idle_ms);
            ctx.keys.set_deadline(key, deadline);
        }
        log_terms(ctx, key, kind, &terms);
        ctx.keys.changed(key, "counter_set");
    }
    ctx.reply.integer(i64::from(is_new));
    Ok(())
}

/// Creates a counter at a key that does not exist.
fn insert(ctx: &mut Context<'_, '_>, key: &[u8], kind: Kind, terms: Terms) {
    let counter = Counter::new(kind, terms.clone());
    let deadline = ctx.keys.idle_deadline(terms.idle_ms).map_or(Deadline::Clear, Deadline::At);
    ctx.keys.set(key, Payload::Object(Box::new(Object::Counter(counter))), deadline);
    log_terms(ctx, key, kind, &terms);
    ctx.keys.changed(key, "counter_set");
}

/// Logs the definition in full, with the defaults of this process, so that other processes do the
/// same.
fn log_terms(ctx: &mut Context<'_, '_>, key: &[u8], kind: Kind, terms: &Terms) {
    let number = |number: u64| number.to_string().into_bytes();
    let limit = match kind {
        Kind::Plain => b"NONE".to_vec(),
        Kind::Quota { limit } => limit.to_string().into_bytes(),
    };
    let mut words: Vec<Vec<u8>> = vec![key.to_vec(), b"LIMIT".to_vec(), limit];
    match terms.promise {
        Promise::Relaxed { cap } => {
            words.extend([b"RELAXED".to_vec(), number(cap)]);
            words.extend([b"HIGH".to_vec(), number(terms.high), b"LOW".to_vec(), number(terms.low)]);
        }
        Promise::Exact { block } => words.extend([b"EXACT".to_vec(), number(block)]),
    }
    words.extend([b"MAXAGE".to_vec(), number(terms.max_age_ms)]);
    if terms.idle_ms > 0 {
        words.extend([b"IDLE".to_vec(), number(terms.idle_ms)]);
    }
    if terms.settle_ms > 0 {
        words.extend([b"SETTLE".to_vec(), number(terms.settle_ms)]);
    }
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    ctx.keys.log_instead("counter.create", &words);
}

fn add(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, delta) = (args[1], parse::integer(args[2])?);
    let (is_durable, doubt) = match &args[3..] {
        [] => (false, None),
        [durable] if is(durable, "DURABLE") => (true, ctx.keys.is_replayed().then_some(0)),
        // The form in the log and in the change stream, which a client may replay into another
        // server.
        [durable, word, units] if is(durable, "DURABLE") && is(word, "DOUBT") => {
            let units = parse::positive(units)?;
            (true, Some(Some(units).filter(|units| *units <= MAX.unsigned_abs()).ok_or_else(out_of_range)?))
        }
        _ => return Err(CommandError::Syntax),
    };
    if !is_durable && !(-MAX..=MAX).contains(&delta) {
        return Err(out_of_range());
    }
    if !is_durable && let Some(moved) = ctx.keys.move_counter(key, |account| account.add(delta))? {
        moved.outcome.map_err(|_| out_of_range())?;
        ctx.reply.integer(moved.account.position());
        return Ok(());
    }
    // Everything after this is logged.
    ctx.keys.check_admitted()?;
    let promise = ctx.keys.counter(key)?.map(|(_, counter)| counter.terms().promise);
    if doubt.is_some_and(|doubt| doubt > 0) && !matches!(promise, Some(Promise::Exact { .. })) {
        return Err(CommandError::text("ERR DOUBT is of exact counters only"));
    }
    if promise.is_none() {
        if !(-MAX..=MAX).contains(&delta) {
            return Err(out_of_range());
        }
        let terms = ctx.keys.counter_defaults().terms(None, None, None, None);
        ctx.keys.drop_expired(key);
        insert(ctx, key, Kind::Plain, terms);
    }
    let position = if is_durable {
        ctx.keys.add_durably(key, delta, doubt)?
    } else {
        ctx.keys.move_counter(key, |account| account.add(delta))?.map(|moved| moved.account.position())
    };
    ctx.reply.integer(position.unwrap_or(delta));
    Ok(())
}

/// Parses the number of units; 1 if there is none.
fn units(args: &[&[u8]]) -> Result<u64, CommandError> {
    match args.get(2..) {
        None | Some([]) => Ok(1),
        Some([units]) => {
            let units = parse::positive(units)?;
            if units > MAX.unsigned_abs() { Err(out_of_range()) } else { Ok(units) }
        }
        Some(_) => Err(CommandError::Syntax),
    }
}

fn no_counter() -> CommandError {
    CommandError::text("ERR no such counter, COUNTER.CREATE makes one")
}

fn take(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let units = units(args)?;
    let moved = ctx.keys.move_counter(args[1], |account| account.take(units))?.ok_or_else(no_counter)?;
    let is_granted = match moved.outcome {
        Ok(()) => true,
        Err(Refusal::OutOfRange) => return Err(out_of_range()),
        Err(_) => false,
    };
    ctx.reply.array(2);
    ctx.reply.integer(i64::from(is_granted));
    match moved.account.available() {
        Some(available) => ctx.reply.integer(available),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn refund(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let units = units(args)?;
    let moved = ctx.keys.move_counter(args[1], |account| account.refund(units))?.ok_or_else(no_counter)?;
    let given_back = moved.outcome.map_err(|_| out_of_range())?;
    ctx.reply.integer(given_back.cast_signed());
    Ok(())
}

fn get(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    match ctx.keys.counter(args[1])?.map(|(account, _)| account.position()) {
        Some(position) => ctx.reply.integer(position),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn state(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Some((account, counter)) = ctx.keys.counter(args[1])? else {
        ctx.reply.null();
        return Ok(());
    };
    let terms = counter.terms().clone();
    let since_ms = counter.listing().filter(|_| account.open() != 0).map(|listing| listing.since_ms);
    let age_ms = since_ms.map_or(0, |since| ctx.keys.now_ms().saturating_sub(since));
    let doubt = counter.doubt(ctx.keys.sees_logged());
    write_state(ctx, &account, &terms, doubt, age_ms);
    Ok(())
}

fn write_state(ctx: &mut Context<'_, '_>, account: &Account, terms: &Terms, doubt: u64, age_ms: u64) {
    let reply = &mut *ctx.reply;
    let is_exact = matches!(terms.promise, Promise::Exact { .. });
    let times = [(b"idle".as_slice(), terms.idle_ms), (b"settle", terms.settle_ms)];
    let times = times.iter().filter(|(_, time_ms)| *time_ms > 0);
    reply.map(if is_exact { 12 } else { 13 } + times.clone().count());
    let kind = if account.kind() == Kind::Plain { b"plain".as_slice() } else { b"quota" };
    reply.bulk(b"kind");
    reply.bulk(kind);
    let limit = if let Kind::Quota { limit } = account.kind() { Some(limit) } else { None };
    for (name, value) in [(b"limit".as_slice(), limit), (b"available", account.available())] {
        reply.bulk(name);
        match value {
            Some(value) => reply.integer(value),
            None => reply.null(),
        }
    }
    let (open, reserved) = if is_exact { (0, -account.open()) } else { (account.open(), 0) };
    let (promise, slack_name, slack) = match terms.promise {
        Promise::Relaxed { cap } => (b"relaxed".as_slice(), b"cap".as_slice(), cap),
        Promise::Exact { block } => (b"exact".as_slice(), b"block".as_slice(), block),
    };
    for (name, value) in [
        (b"position".as_slice(), account.position()),
        (b"committed", account.durable()),
        (b"open", open),
        (b"reserved", reserved),
    ] {
        reply.bulk(name);
        reply.integer(value);
    }
    reply.bulk(b"promise");
    reply.bulk(promise);
    let doubt = [(b"doubt".as_slice(), doubt)];
    let thresholds = [(b"high".as_slice(), terms.high), (b"low", terms.low)];
    let of_promise = if is_exact { &doubt[..] } else { &thresholds };
    let numbers = [(slack_name, slack), (b"maxage", terms.max_age_ms)];
    for (name, value) in numbers.iter().chain(times).chain(of_promise).chain(&[(b"age".as_slice(), age_ms)]) {
        reply.bulk(name);
        reply.integer(i64::try_from(*value).unwrap_or(i64::MAX));
    }
}

fn limit(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let kind = options::kind(args[2])?;
    let (account, _) = ctx.keys.counter(args[1])?.ok_or_else(no_counter)?;
    if account.kind() != kind {
        ctx.keys.set_counter(args[1], kind, None)?;
        ctx.keys.changed(args[1], "counter_limit");
    }
    ctx.reply.ok();
    Ok(())
}

fn commit(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let committed = ctx.keys.settle_counter(args[1], false)?.committed;
    ctx.reply.integer(committed);
    Ok(())
}

fn settle(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    ctx.keys.counter(args[1])?.ok_or_else(no_counter)?;
    let given_back = ctx.keys.settle_counter(args[1], true)?.given_back;
    ctx.reply.integer(given_back.cast_signed());
    Ok(())
}

fn remove(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let is_there = ctx.keys.counter(args[1])?.is_some() && ctx.keys.remove(args[1]);
    if is_there {
        ctx.keys.changed(args[1], "del");
    }
    ctx.reply.integer(i64::from(is_there));
    Ok(())
}

fn list(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    scan_of(ctx, args, Some(Type::Counter))
}
