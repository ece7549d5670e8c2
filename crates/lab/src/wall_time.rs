//! Dates for reports and for what is exported.

use std::time::{Duration, SystemTime};

const SECONDS_PER_DAY: u64 = 86_400;

/// `2026-11-21T03:29:18Z`. Times before 1970 read as its first second.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (year, month, day) = civil_date(seconds / SECONDS_PER_DAY);
    let second_of_day = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `2026-11-21T03:29:18.000250Z`, of microseconds since 1970.
#[must_use]
pub fn rfc3339_us(time_us: u64) -> String {
    let whole = rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(time_us / 1_000_000));
    format!("{}.{:06}Z", whole.trim_end_matches('Z'), time_us % 1_000_000)
}

/// Reads a time in UTC as microseconds since 1970: `2026-11-21`, `2026-11-21T03:29:18Z` or with a fraction of a second.
#[must_use]
pub fn parse_rfc3339_us(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time.strip_suffix(['Z', 'z'])?),
        None => (text, "00:00:00"),
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let day_number = day_number(year, month, day)?;
    if hour > 23 || minute > 59 || second > 59 || fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    let micros: u64 = fraction
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| format!("{fraction:0<6}").parse().ok())??;
    Some((day_number * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second) * 1_000_000 + micros)
}

/// Three numbers of so many digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut next = |digits: usize| {
        let part = parts
            .next()
            .filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        part.parse().ok()
    };
    let read = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(read)
}

/// The day of a date, counted from 1970-01-01: the inverse of [`civil_date`], which says whether there is such a date.
fn day_number(year: u64, month: u64, day: u64) -> Option<u64> {
    let from = (year.checked_sub(1970)? * 365).checked_add(month.checked_sub(1)? * 28)?;
    // Leap days and the months' lengths put the day a little further on.
    let (first, last) = (from, from + (year - 1970) / 4 + 3 * month + 31);
    (first..=last).find(|&number| civil_date(number) == (year, month, day))
}

/// The Gregorian date of a day counted from 1970-01-01.
///
/// Years are counted from March, so that the leap day is a year's last: month lengths are then one linear pattern of
/// 153 days per five months.
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_FROM_MARCH_0000: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let day = days + DAYS_FROM_MARCH_0000;
    let (era, day_of_era) = (day / DAYS_PER_ERA, day % DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day_of_month)
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
