//! How commands spell what they answer, and what they refuse.

use crate::error::CommandError;
use crate::value::limit::{Algorithm, OtherAlgorithm, Policy};
use std::time::Duration;
use tidemark_counter::limiter::Invalid;

/// A number of units as an integer; what does not fit is more than anybody has.
pub(super) fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// Whole milliseconds, rounded up.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A definition as a command is given it.
pub(super) fn definition(policy: Policy) -> Vec<String> {
    let algorithm = policy.algorithm();
    let mut words = vec![
        algorithm.name().to_ascii_uppercase(),
        policy.limit().to_string(),
        if algorithm.has_leases() { "TTL" } else { "PER" }.to_owned(),
        policy.period_ms().to_string(),
    ];
    if algorithm.has_burst() {
        words.extend(["BURST".to_owned(), policy.burst().to_string()]);
    }
    words
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

/// The call takes or gives back units without a name, which a limiter of leases has none of.
pub(super) const HAS_LEASES: CommandError = CommandError::text(
    "ERR the limiter is of the algorithm CONCURRENCY: LIMIT.ACQUIRE and LIMIT.RELEASE take and give back leases of it",
);

/// The call speaks of leases, and the limiter is of an algorithm that has none.
pub(super) fn no_leases(algorithm: Algorithm) -> CommandError {
    let name = algorithm.name().to_ascii_uppercase();
    CommandError::Text(format!("ERR the limiter is of the algorithm {name}, which has no leases").into())
}
