//! What the commands answer: five integers, whichever limiter it is.

use crate::context::Context;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::value::limit::OtherAlgorithm;
use std::time::Duration;
use tidemark_counter::limiter::{Decision, Invalid};

/// Answers allowed (1 or 0), limit, remaining, the milliseconds until a retry (-1 if there is nothing to wait for: it is
/// allowed, or never will be) and those until nothing counts any more. Who waits so long is not early: both are rounded up.
pub(super) fn five_integers(reply: &mut Reply, decision: &Decision) {
    reply.integer(i64::from(decision.is_allowed));
    reply.integer(signed(decision.limit));
    reply.integer(signed(decision.remaining));
    reply.integer(match decision.retry_after {
        Some(wait) if !decision.is_allowed => millis(wait),
        _ => -1,
    });
    reply.integer(millis(decision.reset_after));
}

/// Answers a decision.
pub(super) fn decision(ctx: &mut Context<'_, '_>, decision: &Decision) {
    ctx.reply.array(5);
    five_integers(ctx.reply, decision);
}

/// A number of units as an integer; what does not fit is more than anybody has.
pub(super) fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Why there is no such limiter.
pub(super) fn invalid(reason: Invalid) -> CommandError {
    CommandError::Text(format!("ERR {reason}").into())
}

/// There is no limiter, and the call does not say what it would be.
pub(super) const NO_LIMITER: CommandError =
    CommandError::text("ERR no such limiter: define it by LIMIT.CREATE, or in the call");

/// The call speaks of another algorithm than its key's limiter has.
pub(super) fn other_algorithm(OtherAlgorithm(algorithm): OtherAlgorithm) -> CommandError {
    let name = algorithm.name().to_ascii_uppercase();
    CommandError::Text(
        format!("ERR the limiter is of the algorithm {name}: LIMIT.CREATE can change that").into(),
    )
}
