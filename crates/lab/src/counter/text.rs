//! Numbers and times in reports.

use crate::duration;
use std::time::Duration;

/// Formats a duration with at most three decimals.
pub(super) fn time(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let unit = match nanos {
        0..1_000 => 1,
        1_000..1_000_000 => 1_000 / 100,
        1_000_000..1_000_000_000 => 1_000_000 / 100,
        _ => 1_000_000_000 / 1_000,
    };
    let rounded = (nanos + unit / 2) / unit * unit;
    duration::format(Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX)))
}

/// `12,345,678`
pub(super) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.3 MiB`
pub(super) fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut amount, mut unit) = (bytes as f64, 0);
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{amount:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::{bytes_text, grouped, time};
    use std::time::Duration;

    #[test]
    fn numbers_are_grouped_and_bytes_have_the_unit_that_fits() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        // The original prints 370 MiB for 370 KiB.
        assert_eq!([512, 370 << 10, 370 << 20].map(bytes_text), ["512 B", "370.0 KiB", "370.0 MiB"]);
    }

    #[test]
    fn times_are_rounded_to_what_says_something() {
        let text = |nanos| time(Duration::from_nanos(nanos));
        assert_eq!(text(120), "120ns");
        assert_eq!(text(1_234), "1.23us");
        assert_eq!(text(1_234_567), "1.23ms");
        assert_eq!(text(1_423_456_789), "1.423s");
        assert_eq!(text(0), "0s");
    }
}
