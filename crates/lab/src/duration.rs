//! Durations as the benchmarks' flags and reports write them: `30s`, `100ms`, `1m30s`.

use serde::Serializer;
use std::time::Duration;

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid duration {0:?}; write a number and a unit, such as 30s, 100ms or 1m30s (ns, us, ms, s, m, h)"
)]
pub struct DurationError(String);

const UNITS: [(&str, f64); 7] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Reads a sequence of numbers with units; `0` needs no unit.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let invalid = || DurationError(text.to_owned());
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        seconds += number * scale;
        rest = tail;
    }
    if text.is_empty() {
        return Err(invalid());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

/// The shortest text that [`parse`] reads back, to the nanosecond: `1m30s`, `2.5s`, `100ms`.
#[must_use]
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}us", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{}ms", nanos as f64 / 1e6),
        _ => {
            let minutes = duration.as_secs() / 60;
            let seconds = duration.as_secs_f64() - (minutes * 60) as f64;
            // Rounding hides the error that the subtraction leaves.
            let seconds = (seconds * 1e9).round() / 1e9;
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Serializes a duration as [`format`] writes it.
pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

#[cfg(test)]
mod tests {
    use super::{DurationError, format, parse};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn numbers_with_units_add_up() {
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse("1h2m3.5s"), Ok(Duration::from_millis(3_723_500)));
        assert_eq!(parse("1.5us"), Ok(Duration::from_nanos(1_500)));
        assert_eq!(parse("2µs"), Ok(Duration::from_micros(2)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_has_no_unit_or_no_number_is_refused() {
        for text in ["", "30", "s", "-5s", "1d", "1.2.3s", "5 s", "99999999999999999999999h"] {
            assert!(parse(text).is_err(), "{text:?} is no duration");
        }
    }

    #[test]
    fn the_text_is_what_a_person_would_write() {
        assert_eq!(format(Duration::from_secs(5)), "5s");
        assert_eq!(format(Duration::from_secs(90)), "1m30s");
        assert_eq!(format(Duration::from_millis(2_500)), "2.5s");
        assert_eq!(format(Duration::from_hours(1)), "1h0m0s");
        assert_eq!(format(Duration::from_millis(100)), "100ms");
        assert_eq!(format(Duration::ZERO), "0s");
    }

    proptest! {
        #[test]
        fn a_formatted_duration_reads_back(millis in 0_u64..100_000_000) {
            let duration = Duration::from_millis(millis);
            let read = parse(&format(duration)).unwrap();
            prop_assert!(read.abs_diff(duration) <= Duration::from_micros(1));
        }

        #[test]
        fn numbers_with_units_are_read_written_and_read_again(
            text in "([0-9]{1,4}(\\.[0-9]{1,3})?(ns|us|µs|ms|s|m|h)){1,3}",
        ) {
            let duration = parse(&text).unwrap();
            let again = parse(&format(duration)).unwrap();
            prop_assert!(again.abs_diff(duration) <= Duration::from_micros(1), "{} and {}", text, format(duration));
        }

        #[test]
        fn a_number_without_a_known_unit_is_refused(text in "([0-9]{1,4}s)?[0-9]{2,4}(d|S|sec|µ)?") {
            prop_assert_eq!(parse(&text), Err(DurationError(text.clone())));
        }

        #[test]
        fn a_text_without_numbers_is_refused(text in "[^0-9]{0,20}") {
            prop_assert_eq!(parse(&text), Err(DurationError(text.clone())));
        }
    }
}
