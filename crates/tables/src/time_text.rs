//! Times as texts: RFC 3339, and what other programs make of it.

use crate::unit::Unit;
use time::{Date, Month};

/// Julian day of 1970-01-01.
const EPOCH_DAY: i64 = 2_440_588;
const DAY_NS: i128 = 86_400 * 1_000_000_000;
/// Most digits of a fraction that are read; digits behind the ninth must be 0.
const FRACTION_DIGITS: usize = 9;

/// Parses a date, or a date and a time with an offset, as nanoseconds since 1970: `2026-11-21`,
/// `2026-11-21T03:29:18.25Z`, `2026-11-21 04:29:18+01`. Without an offset it is in UTC. `None` if it is invalid.
#[must_use]
pub fn parse_nanoseconds(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let date = bytes.get(..10)?;
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    let month = Month::try_from(u8::try_from(number(&date[5..7])?).ok()?).ok()?;
    let day = u8::try_from(number(&date[8..])?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(number(&date[..4])?).ok()?, month, day).ok()?;
    let midnight = i128::from(i64::from(date.to_julian_day()) - EPOCH_DAY) * DAY_NS;
    let Some((separator, rest)) = bytes[10..].split_first() else { return Some(midnight) };
    if !matches!(separator, b'T' | b't' | b' ') {
        return None;
    }
    let (since_midnight, rest) = clock(rest)?;
    Some(midnight + since_midnight - offset(rest)?)
}

/// Parses digits.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses two digits of at most `max`; returns what follows them.
fn two(bytes: &[u8], max: i64) -> Option<(i64, &[u8])> {
    let number = number(bytes.get(..2)?)?;
    (number <= max).then_some((number, &bytes[2..]))
}

/// Parses hours and minutes, and perhaps seconds and their fraction, as nanoseconds; returns what follows them.
fn clock(bytes: &[u8]) -> Option<(i128, &[u8])> {
    let (hours, rest) = two(bytes, 23)?;
    let (minutes, mut rest) = two(rest.strip_prefix(b":")?, 59)?;
    let (mut seconds, mut fraction) = (0, 0);
    if let Some(from) = rest.strip_prefix(b":") {
        (seconds, rest) = two(from, 59)?;
        if let Some(from) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) {
            let length = from.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, behind) = from.split_at(length);
            fraction = fraction_ns(digits)?;
            rest = behind;
        }
    }
    let whole = i128::from((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000;
    Some((whole + i128::from(fraction), rest))
}

/// Parses the digits of a fraction as nanoseconds.
fn fraction_ns(digits: &[u8]) -> Option<i64> {
    let (read, rest) = digits.split_at(digits.len().min(FRACTION_DIGITS));
    if !rest.iter().all(|digit| *digit == b'0') {
        return None;
    }
    Some(number(read)? * 10_i64.pow((FRACTION_DIGITS - read.len()) as u32))
}

/// Parses what is behind a time: nothing, `Z`, ` UTC`, `+01`, `+0100` or `+01:00`, as nanoseconds.
fn offset(bytes: &[u8]) -> Option<i128> {
    let (sign, rest) = match bytes {
        b"" | b"Z" | b"z" | b" UTC" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = two(rest, 23)?;
    let minutes = match rest.strip_prefix(b":").unwrap_or(rest) {
        b"" if rest.is_empty() => 0,
        minutes if minutes.len() == 2 => two(minutes, 59)?.0,
        _ => return None,
    };
    Some(i128::from(sign * (hours * 60 + minutes) * 60) * 1_000_000_000)
}

/// Parses a decimal number of a unit, such as `1700000000.25`, as nanoseconds. `None` if it is none, or has a fraction of
/// a nanosecond.
pub(crate) fn parse_decimal(text: &str, unit: Unit) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_negative = whole.starts_with('-');
    let whole: i64 = whole.parse().ok()?;
    let mut nanoseconds = i128::from(whole) * i128::from(unit.nanoseconds());
    if text.len() != fraction.len() && text.contains('.') {
        // The fraction of a second, for a second.
        let of_second = i128::from(fraction_ns(fraction.as_bytes())?) * i128::from(unit.nanoseconds());
        if of_second % 1_000_000_000 != 0 {
            return None;
        }
        let part = of_second / 1_000_000_000;
        nanoseconds += if is_negative { -part } else { part };
    }
    Some(nanoseconds)
}

/// Writes times as RFC 3339 in UTC, with as many digits as the unit has.
pub(crate) struct TimeWriter {
    unit: Unit,
    /// The day that was written last, and its text.
    day: Option<(i64, String)>,
}

impl TimeWriter {
    pub(crate) fn new(unit: Unit) -> Self {
        Self { unit, day: None }
    }

    /// Appends a time. `false` if its year has not four digits: then nothing is appended.
    pub(crate) fn append(&mut self, time: i64, into: &mut Vec<u8>) -> bool {
        let a_second = 1_000_000_000 / self.unit.nanoseconds();
        let (seconds, fraction) = (time.div_euclid(a_second), time.rem_euclid(a_second));
        let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        if self.day.as_ref().is_none_or(|(known, _)| *known != day) {
            let Some(date) =
                i32::try_from(day + EPOCH_DAY).ok().and_then(|day| Date::from_julian_day(day).ok())
            else {
                return false;
            };
            let (year, month, of_month) = date.to_calendar_date();
            if !(0..=9999).contains(&year) {
                return false;
            }
            self.day = Some((day, format!("{year:04}-{:02}-{of_month:02}T", u8::from(month))));
        }
        if let Some((_, text)) = &self.day {
            into.extend_from_slice(text.as_bytes());
        }
        for (at, part) in [second / 3600, second / 60 % 60, second % 60].into_iter().enumerate() {
            if at > 0 {
                into.push(b':');
            }
            into.extend_from_slice(&[b'0' + (part / 10) as u8, b'0' + (part % 10) as u8]);
        }
        if a_second > 1 {
            into.push(b'.');
            let mut place = a_second / 10;
            while place > 0 {
                into.push(b'0' + (fraction / place % 10) as u8);
                place /= 10;
            }
        }
        into.push(b'Z');
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i128 = 1_000_000_000;

    #[test]
    fn times_are_read_as_other_programs_write_them() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1970-01-01T00:00:01Z", Some(SECOND)),
            ("1970-01-01 00:00:01", Some(SECOND)),
            ("1970-01-01 00:00:01+00", Some(SECOND)),
            ("1970-01-01 00:00:01.500000 UTC", Some(3 * SECOND / 2)),
            ("1970-01-01t01:00:01.5+01:00", Some(3 * SECOND / 2)),
            ("1969-12-31T23:59:59.999999999Z", Some(-1)),
            ("1970-01-01T00:00-0030", Some(1800 * SECOND)),
            ("2000-02-29T00:00:00Z", Some(951_782_400 * SECOND)),
            ("1970-01-01T00:00:00.0000000010", Some(1)),
            ("1970-01-01T00:00:00.0000000001", None),
            ("2026-02-29", None),
            ("2026-13-01", None),
            ("2026-1-1", None),
            ("2026-01-01T24:00:00Z", None),
            ("2026-01-01T00:00:60Z", None),
            ("2026-01-01T", None),
            ("2026-01-01T00:00:00+1", None),
            ("2026-01-01T00:00:00+01:", None),
            ("2026-01-01T00:00:00+01:0", None),
            ("2026-01-01T00:00:00.Z", None),
            ("2026-01-01x00:00:00", None),
            ("２026-01-01", None),
            ("", None),
        ] {
            assert_eq!(parse_nanoseconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        for (text, unit, expected) in [
            ("1700000000", Unit::Seconds, Some(1_700_000_000 * SECOND)),
            ("1700000000.25", Unit::Seconds, Some(1_700_000_000 * SECOND + SECOND / 4)),
            ("-0.5", Unit::Seconds, Some(-SECOND / 2)),
            ("1.5", Unit::Milliseconds, Some(1_500_000)),
            ("1.5", Unit::Nanoseconds, None),
            ("1.0", Unit::Nanoseconds, Some(1)),
            ("1.", Unit::Seconds, None),
            (".5", Unit::Seconds, None),
            ("1e3", Unit::Seconds, None),
            ("", Unit::Seconds, None),
            ("9223372036854775808", Unit::Nanoseconds, None),
        ] {
            assert_eq!(parse_decimal(text, unit), expected, "{text:?} {unit}");
        }
    }

    proptest! {
        #[test]
        fn a_time_that_is_written_is_read_back(
            nanoseconds in any::<i64>(),
            unit in proptest::sample::select(Unit::ALL.to_vec()),
        ) {
            let (mut writer, mut text) = (TimeWriter::new(unit), Vec::new());
            let time = nanoseconds / unit.nanoseconds();
            prop_assert!(writer.append(time, &mut text));
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(unit.of_nanoseconds(parse_nanoseconds(&text).unwrap()), Some(time), "{}", text);
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:+. -]{0,40}|.{0,20}") {
            let _ = (parse_nanoseconds(&text), parse_decimal(&text, Unit::Milliseconds));
        }

        #[test]
        fn years_of_more_than_four_digits_are_refused(seconds in 253_402_300_800..i64::MAX) {
            let mut text = Vec::new();
            prop_assert!(!TimeWriter::new(Unit::Seconds).append(seconds, &mut text) && text.is_empty());
        }
    }
}
