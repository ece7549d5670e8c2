//! The ends of a range of time, as flags give them.

use std::str::FromStr;
use tidemark_tables::{Unit, parse_nanoseconds};

/// An end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// `-`
    Earliest,
    /// `+`
    Latest,
    /// A number in the unit of the series.
    Number(i64),
    /// Nanoseconds since 1970.
    Date(i128),
    /// Nanoseconds before now.
    Ago(i128),
}

/// Units of durations, with their nanoseconds.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

/// Parses whole numbers with units, such as `1h30m`, as nanoseconds.
fn nanoseconds(text: &str) -> Option<i128> {
    let (mut sum, mut rest) = (0_i128, text);
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit())?);
        let (unit, behind) =
            behind.split_at(behind.find(|letter: char| letter.is_ascii_digit()).unwrap_or(behind.len()));
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum += i128::from(number.parse::<u32>().ok()?) * length;
        rest = behind;
    }
    (!text.is_empty()).then_some(sum)
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "it must be a number in the unit of the series, a date or time as RFC 3339 has it, -, +, now, or an age such as -1h30m";
        if let Ok(number) = text.parse() {
            return if number < 0 { Err(wrong) } else { Ok(Self::Number(number)) };
        }
        match (text, text.strip_prefix('-')) {
            ("-", _) => Some(Self::Earliest),
            ("+", _) => Some(Self::Latest),
            ("now", _) => Some(Self::Ago(0)),
            (_, Some(age)) => nanoseconds(age).map(Self::Ago),
            _ => parse_nanoseconds(text).map(Self::Date),
        }
        .ok_or(wrong)
    }
}

impl Moment {
    /// Returns the first time of the unit that is not before the moment, or, as an end, the last that is not after it.
    pub(super) fn in_unit(self, unit: Unit, now_ns: i128, is_end: bool) -> i64 {
        let nanoseconds = match self {
            Self::Earliest => return 0,
            Self::Latest => return i64::MAX,
            Self::Number(number) => return number,
            Self::Date(nanoseconds) => nanoseconds,
            Self::Ago(age) => now_ns - age,
        };
        let length = i128::from(unit.nanoseconds());
        let whole = nanoseconds.div_euclid(length);
        let is_between = nanoseconds.rem_euclid(length) != 0;
        // Before 1970 there is nothing: an end there is before the beginning of every range.
        let time = if is_between && !is_end { whole + 1 } else { whole };
        i64::try_from(if is_end { time } else { time.max(0) }).unwrap_or(i64::MAX)
    }
}

/// A duration: of buckets, and how far they are shifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// A number in the unit of the series.
    Number(i64),
    /// Nanoseconds.
    Nanoseconds(i128),
}

impl FromStr for Length {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(number) = text.parse() {
            return if number >= 0 { Ok(Self::Number(number)) } else { Err("it must not be negative") };
        }
        let wrong =
            "it must be a number in the unit of the series, or numbers with units such as 90s or 1h30m";
        nanoseconds(text).map(Self::Nanoseconds).ok_or(wrong)
    }
}

impl Length {
    /// Counts the duration in a unit; `None` if it is no whole number of it.
    pub(super) fn in_unit(self, unit: Unit) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Nanoseconds(nanoseconds) => unit.of_nanoseconds(nanoseconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_numbers_dates_or_ages() {
        for (text, expected) in [
            ("-", Some(Moment::Earliest)),
            ("+", Some(Moment::Latest)),
            ("0", Some(Moment::Number(0))),
            ("9223372036854775807", Some(Moment::Number(i64::MAX))),
            ("now", Some(Moment::Ago(0))),
            ("-1h30m", Some(Moment::Ago(5_400_000_000_000))),
            ("-2w1d5ns", Some(Moment::Ago(15 * 86_400_000_000_000 + 5))),
            ("1970-01-02", Some(Moment::Date(86_400_000_000_000))),
            ("-5", None),
            ("-5x", None),
            ("-m", None),
            ("yesterday", None),
            ("", None),
            ("-99999999999s", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_moment_between_two_times_of_a_unit_is_inside_the_range() {
        let date = Moment::Date(1_500_000_000);
        assert_eq!(date.in_unit(Unit::Seconds, 0, false), 2);
        assert_eq!(date.in_unit(Unit::Seconds, 0, true), 1);
        assert_eq!(date.in_unit(Unit::Milliseconds, 0, false), 1_500);
        assert_eq!(Moment::Ago(2_000_000_000).in_unit(Unit::Seconds, 1_500_000_000, false), 0);
        assert_eq!(Moment::Ago(2_000_000_000).in_unit(Unit::Seconds, 1_500_000_000, true), -1);
        assert_eq!(Moment::Date(i128::from(i64::MAX) * 2).in_unit(Unit::Nanoseconds, 0, true), i64::MAX);
    }

    #[test]
    fn a_length_is_a_whole_number_of_the_unit() {
        let length = |text: &str, unit| text.parse::<Length>().ok().and_then(|length| length.in_unit(unit));
        assert_eq!(length("90", Unit::Seconds), Some(90));
        assert_eq!(length("1m30s", Unit::Seconds), Some(90));
        assert_eq!(length("1500ms", Unit::Seconds), None);
        assert_eq!(length("x", Unit::Seconds), None);
        assert_eq!(length("-1", Unit::Seconds), None);
    }
}
