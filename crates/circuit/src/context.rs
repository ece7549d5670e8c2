//! What the running code can ask about the circuit in whose context it runs.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds on a clock that only grows. Inside a circuit it stands still while one input and all that it causes are
/// handled, so that every operator reads the same time.
pub(crate) fn now_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
