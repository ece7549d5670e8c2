//! Definition, inspection and reset of limiters.

use super::answer::signed;
use super::options::{Accepts, Condition, Options};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Limit;

/// Answers `OK`, or null if the condition does not hold. A new definition of the same algorithm
/// keeps what was used; another algorithm starts empty. The key's time to live is removed, as by
/// `SET`.
pub(super) fn create(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let accepts = Accepts { definitions: 1, condition: true, ..Accepts::default() };
    let options = Options::parse(&args[2..], accepts)?;
    let policy = options.policy_of(0).ok_or(CommandError::Syntax)?;
    let key = args[1];
    let present = ctx.keys.read::<Limit>(key)?;
    let is_wanted = match options.condition {
        Some(Condition::Absent) => present.is_none(),
        Some(Condition::Present) => present.is_some(),
        None => true,
    };
    if !is_wanted {
        ctx.reply.null();
        return Ok(());
    }
    let limit = match present {
        Some(present) if present.policy().algorithm() == policy.algorithm() => {
            let mut changed = present.clone();
            changed.follow(policy);
            changed.keep();
            changed
        }
        _ => Limit::new(policy, true),
    };
    let has_deadline = ctx.keys.peek(key).is_some_and(|entry| entry.deadline().is_some());
    if has_deadline || ctx.keys.read::<Limit>(key)? != Some(&limit) {
        ctx.keys.put(key, limit);
        ctx.keys.changed(key, "limit_create");
    }
    ctx.reply.ok();
    Ok(())
}

/// Answers only what changes by records; what depends on the current time is in `LIMIT.PEEK`.
pub(super) fn state(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let Some(limit) = ctx.keys.read::<Limit>(args[1])? else {
        ctx.reply.null_array();
        return Ok(());
    };
    let policy = limit.policy();
    let noted = limit.noted();
    ctx.reply.map(6 + noted.len());
    ctx.reply.bulk(b"algorithm");
    ctx.reply.bulk(policy.algorithm().name().as_bytes());
    let numbers = [
        ("limit", signed(policy.limit())),
        ("period", signed(policy.period_ms())),
        ("burst", signed(policy.burst())),
        ("kept", i64::from(limit.is_kept())),
        ("idle-at", signed(limit.idle_at_ms())),
    ];
    for (name, number) in numbers.into_iter().chain(noted) {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.integer(number);
    }
    Ok(())
}

/// Resets a limiter that `LIMIT.CREATE` has defined; removes one that a call has defined.
pub(super) fn reset(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let Some(limit) = ctx.keys.read::<Limit>(key)? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let mut fresh = limit.clone();
    fresh.reset();
    let (has_forgotten, deadline) = (*limit != fresh, fresh.deadline());
    if deadline.is_some_and(|at| at <= ctx.keys.now_ms()) {
        ctx.keys.remove(key);
        ctx.keys.changed(key, "del");
    } else if has_forgotten {
        ctx.keys.update(key, |limit: &mut Limit| *limit = fresh)?;
        if deadline.is_some() {
            ctx.keys.set_deadline(key, deadline);
        }
        ctx.keys.changed(key, "limit_reset");
    }
    ctx.reply.integer(1);
    Ok(())
}
