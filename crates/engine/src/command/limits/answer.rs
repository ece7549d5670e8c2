//! Encoding of answers and errors of limiter commands.

use crate::error::CommandError;
use crate::value::limit::{Algorithm, OtherAlgorithm, Policy};
use std::time::Duration;
use tidemark_counter::limiter::Invalid;

/// Returns units as an integer; values that do not fit become the largest.
pub(super) fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// Returns whole milliseconds, rounded up.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Returns a definition in command syntax.
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

pub(super) fn invalid(reason: Invalid) -> CommandError {
    CommandError::Text(format!("ERR {reason}").into())
}

/// Error: there is no limiter, and the call does not define one.
pub(super) const NO_LIMITER: CommandError =
    CommandError::text("ERR no such limiter: define it by LIMIT.CREATE, or in the call");

/// Error: the call defines another algorithm than the limiter's.
pub(super) fn other_algorithm(OtherAlgorithm(algorithm): OtherAlgorithm) -> CommandError {
    let name = algorithm.name().to_ascii_uppercase();
    CommandError::Text(
        format!("ERR the limiter is of the algorithm {name}: LIMIT.CREATE can change that").into(),
    )
}

/// Error: the call takes or returns units without a lease, on a limiter of leases.
pub(super) const HAS_LEASES: CommandError = CommandError::text(
    "ERR the limiter is of the algorithm CONCURRENCY: LIMIT.ACQUIRE and LIMIT.RELEASE take and give back leases of it",
);

/// Error: the call needs leases, and the limiter's algorithm has none.
pub(super) fn no_leases(algorithm: Algorithm) -> CommandError {
    let name = algorithm.name().to_ascii_uppercase();
    CommandError::Text(format!("ERR the limiter is of the algorithm {name}, which has no leases").into())
}
