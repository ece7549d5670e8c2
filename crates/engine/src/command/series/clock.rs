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

    /// Returns a time that is given relative to this clock's, at least 0; `None` if it is given
    /// otherwise.
    pub(super) fn relative(self, word: &[u8]) -> Option<i64> {
        let age = self.unit.of_micros(age_us(word)?);
        Some(self.now.saturating_sub(age).max(0))
    }
}

/// Units of an age, the longest first, in microseconds.
const UNITS: [(&[u8], u64); 7] = [
    (b"w", 7 * 86_400_000_000),
    (b"d", 86_400_000_000),
    (b"h", 3_600_000_000),
    (b"m", 60_000_000),
    (b"s", 1_000_000),
    (b"ms", 1_000),
    (b"us", 1),
];

/// Parses an age, in microseconds: `now`, or a minus and numbers with units, from the longest to the
/// shortest.
fn age_us(word: &[u8]) -> Option<u64> {
    if is(word, "NOW") {
        return Some(0);
    }
    let mut rest = word.strip_prefix(b"-")?;
    let (mut age, mut shortest) = (0_u64, u64::MAX);
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: u64 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.iter().take_while(|byte| !byte.is_ascii_digit()).count();
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..letters])?;
        if *unit >= shortest {
            return None;
        }
        shortest = *unit;
        age = age.checked_add(number.checked_mul(*unit)?)?;
        rest = &rest[letters..];
    }
    (shortest != u64::MAX).then_some(age)
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
    args.iter().skip(from).take(2).any(|word| age_us(word).is_some())
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
            assert_eq!(age_us(word.as_bytes()), age, "{word}");
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
