//! Leases of concurrency limits: acquire, renew, release and list.

use super::answer::{invalid, millis, no_leases, signed};
use super::options::{Accepts, Options};
use super::rates::{self, Request, now};
use super::verdict::Verdict;
use crate::command::parse::{self, is};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::value::Limit;
use crate::value::limit::{Algorithm, Leases};
use tidemark_counter::limiter::Lease;

/// Default number of leases that are listed.
const SHOWN: usize = 100;

/// Answers as `LIMIT.CHECK`, followed by the lease, 0 if there is none.
pub(super) fn acquire(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let accepts = Accepts { amounts: 1, definitions: 1, ttl: true, ..Accepts::default() };
    let options = Options::parse(&args[2..], accepts)?;
    let request = Request {
        key: args[1],
        amount: options.amount_of(0),
        policy: options.policy_of(0),
        ttl_ms: options.ttl_ms,
    };
    let answer = rates::take(ctx, &request, with_leases)?;
    ctx.reply.array(6);
    Verdict::Limiter(answer).answer(ctx.reply);
    ctx.reply.integer(signed(answer.lease));
    Ok(())
}

/// Answers how long the lease lasts from now, 0 if there is none or it has ended.
pub(super) fn renew(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, id) = (args[1], id(args[2])?);
    let ttl_ms = Options::parse(&args[3..], Accepts { ttl: true, ..Accepts::default() })?.ttl_ms;
    let now = now(ctx.keys);
    let Some((limit, leases)) = read(ctx.keys, key)? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let policy = limit.policy();
    let policy = ttl_ms.map_or(Ok(policy), |ttl_ms| policy.with_period(ttl_ms)).map_err(invalid)?;
    let Some(before) = leases.live(now).find(|lease| lease.id == id).copied() else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let renewed = ctx.keys.update(key, |limit: &mut Limit| {
        let after = limit.renew(policy, now, id);
        (after.unwrap_or(before), limit.deadline())
    })?;
    let (after, deadline) = renewed.unwrap_or((before, None));
    if after != before {
        has_changed(ctx.keys, key, deadline, "limit_renew");
    }
    ctx.reply.integer(millis(after.left(now)));
    Ok(())
}

/// Answers how many of the leases had not ended.
pub(super) fn release(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let mut ids: Vec<u64> = args[2..].iter().map(|arg| id(arg)).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    let now = now(ctx.keys);
    let is_held = |lease: &Lease| ids.binary_search(&lease.id).is_ok();
    let is_there = read(ctx.keys, key)?.is_some_and(|(_, leases)| leases.live(now).any(is_held));
    if !is_there {
        ctx.reply.integer(0);
        return Ok(());
    }
    let left = ctx.keys.update(key, |limit: &mut Limit| (limit.release(now, &ids), limit.deadline()))?;
    let (released, deadline) = left.expect("the limiter was found before");
    assert!(released > 0, "a lease that was found before is released");
    if deadline.is_some_and(|at| at <= ctx.keys.now_ms()) {
        // The limiter is unused.
        ctx.keys.remove(key);
        ctx.keys.changed(key, "del");
    } else {
        has_changed(ctx.keys, key, deadline, "limit_release");
    }
    ctx.reply.integer(signed(released as u64));
    Ok(())
}

/// Answers the units and end of each lease, in the order of their ends. A watched read includes
/// leases that have ended since the limiter last changed, because the end of a lease is not logged.
pub(super) fn leases(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let count = match args[2..] {
        [] => SHOWN,
        [word, count] if is(word, "COUNT") => {
            parse::at_least(1, count, "ERR COUNT should be greater than 0")?
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some((_, leases)) = read(ctx.keys, args[1])? else {
        ctx.reply.null_array();
        return Ok(());
    };
    let noted = leases.noted();
    let skipped = if ctx.keys.sees_logged() { 0 } else { noted.len() - leases.live(now(ctx.keys)).len() };
    let shown = noted.skip(skipped).take(count);
    ctx.reply.map(shown.len());
    for lease in shown {
        ctx.reply.integer(signed(lease.id));
        ctx.reply.array(2);
        ctx.reply.integer(signed(lease.units));
        ctx.reply.integer(signed(lease.end_ns.div_ceil(1_000_000)));
    }
    Ok(())
}

/// Returns a limiter with its leases; `None` if the key does not exist.
fn read<'k>(keys: &'k Keys<'_>, key: &[u8]) -> Result<Option<(&'k Limit, &'k Leases)>, CommandError> {
    let Some(limit) = keys.read::<Limit>(key)? else { return Ok(None) };
    let leases = limit.leases().ok_or_else(|| no_leases(limit.policy().algorithm()))?;
    Ok(Some((limit, leases)))
}

/// Reports the change of a limiter, and updates its key's deadline if it has one.
fn has_changed(keys: &mut Keys<'_>, key: &[u8], deadline: Option<u64>, event: &'static str) {
    if deadline.is_some() {
        keys.set_deadline(key, deadline);
    }
    keys.changed(key, event);
}

fn with_leases(algorithm: Algorithm) -> Result<(), CommandError> {
    if algorithm.has_leases() { Ok(()) } else { Err(no_leases(algorithm)) }
}

fn id(arg: &[u8]) -> Result<u64, CommandError> {
    parse::positive(arg).map_err(|_| {
        CommandError::Text(format!("ERR a lease is a number of at least 0, not {}", parse::shown(arg)).into())
    })
}
