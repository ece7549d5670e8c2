//! Parsing of flags and variables, with their limits.

use super::target::Target;
use crate::duration;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Maximum number of threads.
const WORKERS_MAX: u64 = 4_096;
/// Maximum number of keys: their names and the workers' ledgers are in memory.
const KEYS_MAX: u64 = 50_000_000;
/// Maximum number of operations.
const OPERATIONS_MAX: u64 = 1_000_000_000_000_000;
/// Maximum number of kept latencies, 8 bytes each.
const SAMPLES_MAX: u64 = 100_000_000;
/// Maximum number of replicas: each stores an entry of each, for every key.
const REPLICAS_MAX: u64 = 16;
/// Maximum number of operations in a batch.
const BATCH_MAX: u64 = 1_000_000;
/// Maximum of limits and thresholds. Units.
const UNITS_MAX: u64 = 1 << 62;
/// Maximum rate, in units per second: one unit per nanosecond.
const RATE_MAX: u64 = 1_000_000_000;
/// Longest duration of a run, and of a call in one.
const DURATION_MAX: Duration = Duration::from_hours(24);

pub(super) fn count(text: &str) -> Result<u64, String> {
    within(text, 0..=u64::MAX)
}

pub(super) fn operations(text: &str) -> Result<u64, String> {
    within(text, 1..=OPERATIONS_MAX)
}

pub(super) fn workers(text: &str) -> Result<usize, String> {
    within(text, 1..=WORKERS_MAX).map(|count| count as usize)
}

pub(super) fn keys(text: &str) -> Result<usize, String> {
    within(text, 1..=KEYS_MAX).map(|count| count as usize)
}

pub(super) fn samples(text: &str) -> Result<usize, String> {
    within(text, 0..=SAMPLES_MAX).map(|count| count as usize)
}

pub(super) fn replicas(text: &str) -> Result<usize, String> {
    within(text, 1..=REPLICAS_MAX).map(|count| count as usize)
}

/// The original serves its profiler over HTTP.
pub(super) fn pprof(text: &str) -> Result<bool, String> {
    match text {
        "false" => Ok(false),
        _ => Err("no profiler is served over HTTP: write profiles into a folder with --profile".to_owned()),
    }
}

pub(super) fn percentage(text: &str) -> Result<u32, String> {
    within(text, 0..=100).map(|share| share as u32)
}

pub(super) fn batch(text: &str) -> Result<u64, String> {
    within(text, 1..=BATCH_MAX)
}

pub(super) fn units(text: &str) -> Result<u64, String> {
    within(text, 1..=UNITS_MAX)
}

pub(super) fn units_or_zero(text: &str) -> Result<u64, String> {
    within(text, 0..=UNITS_MAX)
}

pub(super) fn rate(text: &str) -> Result<u64, String> {
    within(text, 1..=RATE_MAX)
}

pub(super) fn burst(text: &str) -> Result<u64, String> {
    within(text, 1..=u64::from(u32::MAX))
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text).map_err(|error| error.to_string())?;
    if duration > DURATION_MAX {
        return Err(format!("{text} is longer than {}", duration::format(DURATION_MAX)));
    }
    Ok(duration)
}

/// Parses the interval of a repeated action.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        interval => Ok(interval),
    }
}

pub(super) fn target(text: &str) -> Result<Target, String> {
    text.parse()
}

fn within(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let value: u64 = text.parse().map_err(|_| format!("{text:?} is no whole number from 0 up"))?;
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(format!("{value} is not in {} to {}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::{burst, duration, interval, keys, percentage, units};
    use std::time::Duration;

    #[test]
    fn what_is_out_of_bounds_is_refused_with_the_bounds() {
        assert_eq!(percentage("100"), Ok(100));
        assert_eq!(percentage("101"), Err("101 is not in 0 to 100".to_owned()));
        assert_eq!(keys("0"), Err("0 is not in 1 to 50000000".to_owned()));
        assert_eq!(keys("-1"), Err("\"-1\" is no whole number from 0 up".to_owned()));
        assert!(units("0").is_err() && units("").is_err() && burst("4294967296").is_err());
    }

    #[test]
    fn durations_have_units_and_intervals_are_not_zero() {
        assert_eq!(duration("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert!(interval("0").is_err());
        assert!(duration("25h").is_err() && duration("5").is_err());
    }
}
