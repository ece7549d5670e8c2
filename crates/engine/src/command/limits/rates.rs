//! Taking units of limiters of a rate: of one, or of several at once.

use super::answer::{self, other_algorithm, signed};
use super::options::{Accepts, Options};
use crate::command::parse;
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::keyspace::{Deadline, Payload};
use crate::value::limit::Policy;
use crate::value::{Collection, Limit};
use std::cmp::Ordering;
use tidemark_counter::limiter::{Decision, Time};

/// What is wanted of one limiter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) key: &'a [u8],
    /// Units; none is a question.
    pub(super) amount: u64,
    /// What the limiter is if there is none.
    pub(super) policy: Option<Policy>,
}

/// The time of a command as limiters take it.
pub(super) fn now(keys: &Keys<'_>) -> Time {
    Time::from_micros(keys.now_us())
}

/// Asks one limiter, and changes nothing.
fn ask(keys: &Keys<'_>, request: &Request<'_>) -> Result<Decision, CommandError> {
    let now = now(keys);
    match keys.read::<Limit>(request.key)? {
        Some(limit) => {
            let policy = limit.in_force(request.policy).map_err(other_algorithm)?;
            Ok(limit.peek(policy, now, request.amount))
        }
        None => {
            let policy = request.policy.ok_or(answer::NO_LIMITER)?;
            Ok(Limit::new(policy, false).peek(policy, now, request.amount))
        }
    }
}

/// Takes what [`ask`] has allowed.
fn take_allowed(keys: &mut Keys<'_>, request: &Request<'_>) -> Result<Decision, CommandError> {
    debug_assert!(request.amount > 0, "a question takes nothing");
    let now = now(keys);
    let taken = keys.update(request.key, |limit: &mut Limit| {
        // It was asked whether there is one; this is the answer.
        if let Ok(policy) = limit.in_force(request.policy) {
            limit.follow(policy);
        }
        (limit.take(now, request.amount), limit.deadline())
    })?;
    let decision = match (taken, request.policy) {
        (Some((decision, deadline)), _) => {
            if deadline.is_some() {
                keys.set_deadline(request.key, deadline);
            }
            decision
        }
        (None, Some(policy)) => {
            let mut limit = Limit::new(policy, false);
            let decision = limit.take(now, request.amount);
            let deadline = limit.deadline().map_or(Deadline::Clear, Deadline::At);
            keys.set(request.key, Payload::Object(Box::new(limit.into_object())), deadline);
            decision
        }
        (None, None) => return Err(answer::NO_LIMITER),
    };
    debug_assert!(decision.is_allowed, "it was asked before");
    keys.changed(request.key, "limit_check");
    Ok(decision)
}

/// Takes units of one limiter, if it allows it.
pub(super) fn take(ctx: &mut Context<'_, '_>, request: &Request<'_>) -> Result<Decision, CommandError> {
    let asked = ask(ctx.keys, request)?;
    if !asked.is_allowed || request.amount == 0 {
        return Ok(asked);
    }
    take_allowed(ctx.keys, request)
}

/// The key, amount and definition of `LIMIT.CHECK` and `LIMIT.PEEK`.
fn request<'a>(args: &[&'a [u8]]) -> Result<Request<'a>, CommandError> {
    let options = Options::parse(&args[2..], Accepts { amounts: 1, rates: 1, ..Accepts::default() })?;
    Ok(Request { key: args[1], amount: options.amount_of(0), policy: options.policy_of(0) })
}

pub(super) fn check(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let decision = take(ctx, &request(args)?)?;
    answer::decision(ctx, &decision);
    Ok(())
}

pub(super) fn peek(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let decision = ask(ctx.keys, &request(args)?)?;
    answer::decision(ctx, &decision);
    Ok(())
}

/// Takes of all, or of none. The limiter that decides is the one that has its client wait longest; if none refuses, the one
/// of which least is left; of equals the first.
pub(super) fn check_all(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let number = parse::at_least(1, args[1], "ERR numkeys should be greater than 0")?;
    let (keys, rest) = args[2..].split_at_checked(number).ok_or(CommandError::Syntax)?;
    let accepts = Accepts { amounts: number, rates: number, ..Accepts::default() };
    let options = Options::parse(rest, accepts)?;
    if !options.fit(number) {
        return Err(CommandError::text("ERR there must be one amount or definition, or one for each key"));
    }
    if has_repeats(keys) {
        return Err(CommandError::text("ERR a key can be checked only once in a call"));
    }
    let requests = (0..).zip(keys).map(|(at, key)| Request {
        key,
        amount: options.amount_of(at),
        policy: options.policy_of(at),
    });
    let asked: Vec<(Request<'_>, Decision)> = requests
        .map(|request| ask(ctx.keys, &request).map(|decision| (request, decision)))
        .collect::<Result<_, _>>()?;
    let all_allow = asked.iter().all(|(_, decision)| decision.is_allowed);
    let mut decisions = Vec::with_capacity(asked.len());
    for (request, decision) in asked {
        let taken =
            if all_allow && request.amount > 0 { take_allowed(ctx.keys, &request)? } else { decision };
        decisions.push((request.key, taken));
    }
    // Of equals the first: `max_by` would give the last.
    let deciding = decisions.iter().rev().max_by(|(_, one), (_, other)| weigh(one, other));
    let (key, decision) = deciding.ok_or(CommandError::Syntax)?;
    ctx.reply.array(6);
    answer::five_integers(ctx.reply, decision);
    ctx.reply.bulk(key);
    Ok(())
}

/// Which of two decisions weighs more with the client.
fn weigh(one: &Decision, other: &Decision) -> Ordering {
    // Never is longer than any wait.
    let wait = |decision: &Decision| (decision.retry_after.is_none(), decision.retry_after);
    other
        .is_allowed
        .cmp(&one.is_allowed)
        .then_with(|| if one.is_allowed { Ordering::Equal } else { wait(one).cmp(&wait(other)) })
        .then_with(|| other.remaining.cmp(&one.remaining))
}

fn has_repeats(keys: &[&[u8]]) -> bool {
    let mut sorted: Vec<&[u8]> = keys.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Gives units back. Those that no longer count are nobody's to give.
pub(super) fn refund(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(&args[2..], Accepts { amounts: 1, ..Accepts::default() })?;
    let (key, amount, now) = (args[1], options.amount_of(0), now(ctx.keys));
    let Some(limit) = ctx.keys.read::<Limit>(key)? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let policy = limit.policy();
    let Decision { remaining: before, limit: all, .. } = limit.peek(policy, now, 0);
    let mut refunded = limit.clone();
    refunded.refund(now, amount);
    if amount == 0 || before == all || refunded == *limit {
        ctx.reply.integer(0);
        return Ok(());
    }
    let given = refunded.peek(policy, now, 0).remaining.saturating_sub(before).min(amount);
    match refunded.deadline() {
        // It is as if nobody had used it.
        Some(at) if at <= ctx.keys.now_ms() => {
            ctx.keys.remove(key);
            ctx.keys.changed(key, "del");
        }
        deadline => {
            ctx.keys.update(key, |limit: &mut Limit| *limit = refunded)?;
            if deadline.is_some() {
                ctx.keys.set_deadline(key, deadline);
            }
            ctx.keys.changed(key, "limit_refund");
        }
    }
    ctx.reply.integer(signed(given));
    Ok(())
}
