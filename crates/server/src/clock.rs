//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock in microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    // A clock before 1970 is as good as one that stands still there.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}
