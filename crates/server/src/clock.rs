//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the wall clock in microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    // A clock before 1970 reads as 0.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}
