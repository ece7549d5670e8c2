//! Dates for reports and for what is exported.

use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::datetime;

/// The last second that RFC 3339 can write.
const LAST: OffsetDateTime = datetime!(9999-12-31 23:59:59 UTC);

/// A number that other runs do not have: the nanoseconds since 1970 at which this one began.
#[cfg(feature = "wire")]
pub(crate) fn run_number(start: SystemTime) -> u64 {
    start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// `2026-11-21T03:29:18Z`. Times before 1970 read as its first second, times after 9999 as its last.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let time =
        i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.unwrap_or(LAST).format(&Rfc3339).expect("a year of four digits")
}

/// `2026-11-21T03:29:18.000250Z`, of microseconds since 1970.
#[must_use]
pub fn rfc3339_us(time_us: u64) -> String {
    let whole = rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(time_us / 1_000_000));
    format!("{}.{:06}Z", whole.trim_end_matches('Z'), time_us % 1_000_000)
}

/// Reads an RFC 3339 time, or a date for its first moment in UTC, as microseconds since 1970, rounded down:
/// `2026-11-21`, `2026-11-21T03:29:18Z` or `2026-11-21 04:29:18.5+01:00`. `None` if it is invalid or before 1970.
#[must_use]
pub fn parse_rfc3339_us(text: &str) -> Option<u64> {
    let time = match text.split_once(['T', 't', ' ']) {
        Some((date, clock)) => OffsetDateTime::parse(&format!("{date}T{clock}"), &Rfc3339),
        None => OffsetDateTime::parse(&format!("{text}T00:00:00Z"), &Rfc3339),
    };
    u64::try_from(time.ok()?.unix_timestamp_nanos().div_euclid(1000)).ok()
}

#[cfg(test)]
mod tests {
    use super::{parse_rfc3339_us, rfc3339, rfc3339_us};
    use std::time::{Duration, SystemTime};

    #[test]
    fn dates_are_gregorian() {
        let at = |seconds| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_000_000_000), "2001-09-09T01:46:40Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z", "1900 and 2100 are no leap years");
        assert_eq!(rfc3339_us(u64::MAX), "9999-12-31T23:59:59.551615Z", "the last second");
    }

    #[test]
    fn a_time_that_is_written_is_read_back() {
        for time_us in
            [0, 1, 951_782_400_000_000, 1_732_575_953_123_456, 4_107_542_399_999_999, 99_999_999_999_000_000]
        {
            assert_eq!(parse_rfc3339_us(&rfc3339_us(time_us)), Some(time_us), "{}", rfc3339_us(time_us));
        }
        assert_eq!(parse_rfc3339_us("2026-11-21"), parse_rfc3339_us("2026-11-21 00:00:00Z"));
        assert_eq!(parse_rfc3339_us("1970-01-01T00:00:01.5Z"), Some(1_500_000));
        assert_eq!(parse_rfc3339_us("1970-01-01t01:00:01.5+01:00"), Some(1_500_000));
        for text in [
            "",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "1969-12-31",
            "2026-1-1",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
        ] {
            assert_eq!(parse_rfc3339_us(text), None, "{text}");
        }
    }
}
