//! Durations as clients write them.

use super::Unit;

/// The suffixes of a duration, with their nanoseconds.
const SUFFIXES: [(&[u8], i64); 8] = [
    (b"ns", 1),
    (b"us", 1_000),
    (b"ms", 1_000_000),
    (b"s", 1_000_000_000),
    (b"m", 60 * 1_000_000_000),
    (b"h", 3_600 * 1_000_000_000),
    (b"d", 86_400 * 1_000_000_000),
    (b"w", 7 * 86_400 * 1_000_000_000),
];

impl Unit {
    /// Parses a duration, such as `90`, which counts this unit, `90s` or `1h30m`, longest unit first. `None` if it is none,
    /// if it is no whole number of this unit, or beyond the range of its times.
    pub(crate) fn duration(self, word: &[u8]) -> Option<i64> {
        if word.iter().all(u8::is_ascii_digit) {
            return std::str::from_utf8(word).ok()?.parse().ok();
        }
        let (mut nanoseconds, mut shortest, mut rest) = (0_i128, i64::MAX, word);
        while !rest.is_empty() {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let count: i64 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
            let letters = rest[digits..].iter().take_while(|byte| !byte.is_ascii_digit()).count();
            let suffix = &rest[digits..digits + letters];
            let (_, length) = SUFFIXES.iter().find(|(known, _)| *known == suffix)?;
            if *length >= shortest {
                return None;
            }
            shortest = *length;
            nanoseconds += i128::from(count) * i128::from(*length);
            rest = &rest[digits + letters..];
        }
        let unit = i128::from(self.nanoseconds());
        if nanoseconds % unit != 0 {
            return None;
        }
        i64::try_from(nanoseconds / unit).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_the_series_own_unit_or_says_another() {
        for (unit, word, expected) in [
            (Unit::Milliseconds, "90", Some(90)),
            (Unit::Milliseconds, "90s", Some(90_000)),
            (Unit::Seconds, "1h30m", Some(5_400)),
            (Unit::Nanoseconds, "2w", Some(14 * 86_400 * 1_000_000_000)),
            (Unit::Microseconds, "1ms5us", Some(1_005)),
            (Unit::Seconds, "1500ms", None),
            (Unit::Seconds, "2000ms", Some(2)),
            (Unit::Milliseconds, "", None),
            (Unit::Milliseconds, "s", None),
            (Unit::Milliseconds, "5x", None),
            (Unit::Milliseconds, "5m3", None),
            (Unit::Milliseconds, "5m1h", None),
            (Unit::Milliseconds, "5m5m", None),
            (Unit::Milliseconds, "-5m", None),
            (Unit::Milliseconds, "9223372036854775808", None),
            (Unit::Nanoseconds, "9223372036854775807w", None),
        ] {
            assert_eq!(unit.duration(word.as_bytes()), expected, "{word} in {}", unit.name());
        }
    }
}
