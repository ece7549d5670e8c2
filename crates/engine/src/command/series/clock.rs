//! Times relative to the time of a command: `now`, `-5m`, `-1h30m`; and the steps in which a watched range
//! with such a time moves.

use crate::command::parse::{canonical_integer, is};
use crate::value::Unit;

/// The time of a command in the unit of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    now: i64,
    unit: Unit,
}

impl Clock {
    /// Makes the clock of a command that runs at `now_us`, in microseconds since 1970.
    pub(crate) fn new(now_us: u64, unit: Unit) -> Self {
        Self { now: unit.of_micros(now_us), unit }
    }

    /// Returns the unit.
    pub(super) fn unit(self) -> Unit {
        self.unit
    }

    /// Makes a clock that stands at a time of the series.
    pub(super) fn at(now: i64, unit: Unit) -> Self {
        Self { now, unit }
    }

    /// Returns a time that is given relative to this clock's, `now` or a minus and a duration with units,
    /// at least 0; `None` if it is given otherwise.
    pub(super) fn relative(self, word: &[u8]) -> Option<i64> {
        Some(self.now.saturating_sub(age(word, self.unit)?).max(0))
    }
}

/// Returns how long before now a relative time is, in a unit; `None` if it is none.
fn age(word: &[u8], unit: Unit) -> Option<i64> {
    if !is_relative_time(word) {
        return None;
    }
    if is(word, "NOW") { Some(0) } else { unit.duration(&word[1..]) }
}

/// Whether a time is to be relative to now, if it is one.
fn is_relative_time(word: &[u8]) -> bool {
    is(word, "NOW") || (word.first() == Some(&b'-') && word.iter().any(u8::is_ascii_alphabetic))
}

/// Whether a read of a range has a time that is relative to its own. `args` begin with the command's
/// name.
pub(in crate::command) fn is_relative(args: &[&[u8]]) -> bool {
    ends(args).iter().any(|word| is_relative_time(word))
}

/// Returns the two ends of a range; none if the command reads none, or they are missing.
fn ends<'a>(args: &'a [&'a [u8]]) -> &'a [&'a [u8]] {
    let name = args.first().copied().unwrap_or_default();
    let from = if is(name, "TS.RANGE") || is(name, "TS.REVRANGE") {
        2
    } else if is(name, "TS.MRANGE") || is(name, "TS.MREVRANGE") {
        1
    } else if is(name, "TS.NRANGE") || is(name, "TS.NREVRANGE") {
        let keys = args.get(1).and_then(|count| canonical_integer(count));
        keys.and_then(|keys| usize::try_from(keys).ok()).map_or(usize::MAX, |keys| keys.saturating_add(2))
    } else {
        return &[];
    };
    args.get(from..from.saturating_add(2)).unwrap_or_default()
}

/// Step of a range that is not aggregated, in microseconds.
const STEP_US: u64 = 1_000_000;

/// Least step of a range that is aggregated, in microseconds.
const LEAST_STEP_US: u64 = 100_000;

/// Returns in which steps time moves for a watched range of series with this unit, in microseconds: by
/// a bucket, so that no bucket is cut, if the range is longer than one; by a second, if it is not
/// aggregated.
pub(in crate::command) fn step_us(args: &[&[u8]], unit: Unit) -> u64 {
    let mut options = args.iter().skip_while(|word| !is(word, "AGGREGATION"));
    let Some(bucket) = options.find_map(|word| canonical_integer(word)) else { return STEP_US };
    let ages = ends(args).iter().filter_map(|word| age(word, unit)).filter(|age| *age > 0);
    let step = ages.fold(bucket, i64::min);
    let step_us = i128::from(step) * i128::from(unit.nanoseconds()) / 1_000;
    u64::try_from(step_us).unwrap_or(0).max(LEAST_STEP_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_numbers_with_units() {
        for (word, age) in [
            ("now", Some(0)),
            ("NOW", Some(0)),
            ("-5m", Some(300_000_000)),
            ("-1h30m", Some(5_400_000_000)),
            ("-2w1d", Some(15 * 86_400_000_000)),
            ("-250ms", Some(250_000)),
            ("-1s1us", Some(1_000_001)),
            ("-0s", Some(0)),
            ("-", None),
            ("-5", None),
            ("5m", None),
            ("+5m", None),
            ("-m", None),
            ("-5m5m", None),
            ("-30m1h", None),
            ("-5x", None),
            ("-5M", None),
            ("--5m", None),
            ("-5m ", None),
            ("-99999999999999999999s", None),
            ("-9999999999999999w", None),
            ("*", None),
        ] {
            let time = Clock::at(i64::MAX, Unit::Microseconds).relative(word.as_bytes());
            assert_eq!(time.map(|time| i64::MAX - time), age, "{word}");
        }
    }

    #[test]
    fn a_relative_time_is_in_the_unit_of_the_series_and_not_negative() {
        let time = |unit, word: &str| Clock::new(7_200_500_000, unit).relative(word.as_bytes());
        assert_eq!(time(Unit::Milliseconds, "-1h"), Some(3_600_500));
        assert_eq!(time(Unit::Seconds, "-1h"), Some(3_600));
        assert_eq!(time(Unit::Nanoseconds, "-1h"), Some(3_600_500_000_000));
        assert_eq!(time(Unit::Microseconds, "now"), Some(7_200_500_000));
        assert_eq!(time(Unit::Milliseconds, "-1d"), Some(0));
        assert_eq!(time(Unit::Milliseconds, "-5"), None);
    }

    #[test]
    fn a_watched_range_moves_by_its_buckets_or_by_a_second() {
        let step = |line: &str, unit| step_us(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>(), unit);
        let ms = |line: &str| step(line, Unit::Milliseconds);
        assert_eq!(ms("ts.range k -5m +"), 1_000_000);
        assert_eq!(ms("ts.revrange k -5m + COUNT 7"), 1_000_000);
        assert_eq!(ms("ts.range k -5m + COUNT 7 aggregation avg,max 60000 EMPTY"), 60_000_000);
        assert_eq!(step("ts.range k -5m + AGGREGATION avg 60", Unit::Seconds), 60_000_000);
        assert_eq!(ms("ts.mrange -1h now AGGREGATION avg 250 FILTER a=b"), 250_000);
        assert_eq!(ms("ts.nrange 2 a b -1h + AGGREGATION avg max 30000"), 30_000_000);
        assert_eq!(ms("ts.range k -5m + AGGREGATION avg 1"), 100_000, "buckets may be too short");
        assert_eq!(step("ts.range k -1s + AGGREGATION avg 1", Unit::Nanoseconds), 100_000);
        assert_eq!(ms("ts.range k -1m + AGGREGATION avg 86400000"), 60_000_000, "longer than the range");
        assert_eq!(step("ts.range k 0 now AGGREGATION avg 9223372036854775807", Unit::Seconds), 100_000);
    }

    #[test]
    fn only_the_ends_of_a_range_are_relative() {
        let is = |line: &str| is_relative(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        assert!(is("ts.range k -5m +") && is("TS.REVRANGE k 0 now") && is("ts.mrange -1h now FILTER a=b"));
        assert!(is("ts.nrange 2 a b -1h +") && is("ts.nrevrange 1 a 0 now"));
        assert!(!is("ts.range now - +") && !is("ts.nrange 2 a now - +") && !is("ts.get now now"));
        assert!(!is("ts.mrange - + SELECTED_LABELS now FILTER a=b") && !is("ts.nrange x now now"));
    }
}
