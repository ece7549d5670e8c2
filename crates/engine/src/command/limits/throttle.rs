//! `CL.THROTTLE`, compatible with redis-cell.

use super::answer::invalid;
use super::rates::{self, Request};
use crate::command::parse;
use crate::context::Context;
use crate::error::CommandError;
use crate::value::limit::{Algorithm, Policy};
use tidemark_counter::limiter::Invalid;

/// `key max-burst count-per-period period [quantity]`, with the period in seconds. Allows a burst
/// of `max-burst` plus one unit; a quantity of 0 only asks.
pub(super) fn throttle(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (&[_, key, burst, count, period], quantity) = (match args {
        [one @ .., quantity] if args.len() == 6 => (one, Some(*quantity)),
        all => (all, None),
    }) else {
        return Err(CommandError::Arity("cl.throttle".into()));
    };
    let (burst, count, period) = (number(burst)?, number(count)?, number(period)?);
    let quantity = quantity.map_or(Ok(1), number)?;
    if count == 0 || period == 0 {
        return Err(zero_rate());
    }
    let period_ms = period.checked_mul(1000).ok_or(invalid(Invalid::Period))?;
    let policy = Policy::new(Algorithm::Gcra, count, period_ms, burst.saturating_add(1)).map_err(invalid)?;
    let request = Request { key, amount: quantity, policy: Some(policy), ttl_ms: None };
    let answer = rates::take(ctx, &request, rates::without_leases)?;
    let integers = answer.decision.throttle_reply();
    ctx.reply.array(integers.len());
    integers.into_iter().for_each(|integer| ctx.reply.integer(integer));
    Ok(())
}

/// Parses a number as redis-cell does, with a sign or leading zeros. Unlike redis-cell, refuses
/// negative numbers.
fn number(arg: &[u8]) -> Result<u64, CommandError> {
    let shown = || String::from_utf8_lossy(&arg[..arg.len().min(64)]).into_owned();
    let value: i64 = std::str::from_utf8(arg)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| CommandError::Text(format!("ERR Couldn't parse as integer: {}", shown()).into()))?;
    u64::try_from(value).map_err(|_| CommandError::text(parse::NOT_POSITIVE))
}

fn zero_rate() -> CommandError {
    CommandError::text("ERR Zero rates are not supported")
}
