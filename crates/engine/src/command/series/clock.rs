//! Times relative to the time of a command: `now`, `-5m`, `-1h30m`.

use crate::command::parse::{canonical_integer, is};
use crate::value::Unit;

/// The time of a command in the unit of a series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    now: i64,
    unit: Unit,
}

impl Clock {
    /// Makes the clock of a command that runs at `now_us`, in microseconds since 1970.
    pub(super) fn new(now_us: u64, unit: Unit) -> Self {
        Self { now: unit.of_micros(now_us), unit }
    }

    /// Makes a clock that stands at a time of the series.
    pub(super) fn at(now: i64, unit: Unit) -> Self {
        Self { now, unit }
    }

    /// Returns a time that is given relative to this clock's, `now` or a minus and a duration with units,
    /// at least 0; `None` if it is given otherwise.
    pub(super) fn relative(self, word: &[u8]) -> Option<i64> {
        if !is_relative_time(word) {
            return None;
        }
        let age = if is(word, "NOW") { 0 } else { self.unit.duration(&word[1..])? };
        Some(self.now.saturating_sub(age).max(0))
    }
}

/// Whether a time is to be relative to now, if it is one.
fn is_relative_time(word: &[u8]) -> bool {
    is(word, "NOW") || (word.first() == Some(&b'-') && word.iter().any(u8::is_ascii_alphabetic))
}

/// Whether a read of a range has a time that is relative to its own. `args` begin with the command's
/// name.
pub(in crate::command) fn is_relative(args: &[&[u8]]) -> bool {
    let name = args.first().copied().unwrap_or_default();
    let from = if is(name, "TS.RANGE") || is(name, "TS.REVRANGE") {
        2
    } else if is(name, "TS.MRANGE") || is(name, "TS.MREVRANGE") {
        1
    } else if is(name, "TS.NRANGE") || is(name, "TS.NREVRANGE") {
        let keys = args.get(1).and_then(|count| canonical_integer(count));
        keys.and_then(|keys| usize::try_from(keys).ok()).map_or(usize::MAX, |keys| keys.saturating_add(2))
    } else {
        return false;
    };
    args.iter().skip(from).take(2).any(|word| is_relative_time(word))
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
    fn only_the_ends_of_a_range_are_relative() {
        let is = |line: &str| is_relative(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        assert!(is("ts.range k -5m +") && is("TS.REVRANGE k 0 now") && is("ts.mrange -1h now FILTER a=b"));
        assert!(is("ts.nrange 2 a b -1h +") && is("ts.nrevrange 1 a 0 now"));
        assert!(!is("ts.range now - +") && !is("ts.nrange 2 a now - +") && !is("ts.get now now"));
        assert!(!is("ts.mrange - + SELECTED_LABELS now FILTER a=b") && !is("ts.nrange x now now"));
    }
}
