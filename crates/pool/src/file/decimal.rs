//! Exact decimal numbers.

use crate::catalogue::item::AMOUNT_MAX;
use std::fmt;

/// Maximum distance of a number's last digit from the point, to either side. Far beyond what
/// weights need, and small enough that sums of exponents never overflow.
const EXPONENT_MAX: i64 = 9_999;

/// `digits` × 10^`exponent`, exactly. Normalised: the last digit is not 0, and zero has exponent 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) digits: u64,
    pub(super) exponent: i32,
}

/// Reason why a text is not a usable number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    /// It is not a decimal number.
    #[error("is not a decimal number: write it like 10, 0.5 or 1e-3")]
    NotANumber,
    /// It is infinite or not a number, such as "inf" or "nan".
    #[error("is not finite: write a decimal number")]
    NotFinite,
    /// It is less than 0.
    #[error("is negative: write 0 or more")]
    Negative,
    /// It has too many significant digits.
    #[error("has {digits} digits, of which at most 19 can be kept apart: use fewer")]
    TooManyDigits {
        /// Number of digits, from the first to the last that is not 0.
        digits: usize,
    },
    /// It has a digit too far from the point.
    #[error("is too large or too small by far: use a number closer to 1")]
    TooFar,
    /// It must be an integer, and is not.
    #[error("is not a whole number: write one from 0 to 9223372036854775807")]
    NotWhole,
    /// It is above [`AMOUNT_MAX`](crate::AMOUNT_MAX).
    #[error("is too large: at most 9223372036854775807 is possible")]
    TooLarge,
}

impl Decimal {
    /// Parses a number: digits, with an optional point and exponent.
    pub(super) fn parse(text: &str) -> Result<Self, NumberError> {
        let Spelling { negative, whole, fraction, exponent } =
            Spelling::of(text).ok_or_else(|| other(text))?;
        let (mut digits, mut zeros, mut significant) = (Some(0_u64), 0_u32, 0_usize);
        for digit in whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0') {
            if digit == 0 {
                // Zeros count once another digit follows; leading zeros do not count.
                zeros = if significant == 0 { 0 } else { zeros.saturating_add(1) };
                continue;
            }
            digits = digits
                .zip(10_u64.checked_pow(if significant == 0 { 0 } else { zeros + 1 }))
                .and_then(|(digits, shift)| digits.checked_mul(shift)?.checked_add(u64::from(digit)));
            significant += zeros as usize + 1;
            zeros = 0;
        }
        if significant == 0 {
            return Ok(Self { digits: 0, exponent: 0 });
        }
        if negative {
            return Err(NumberError::Negative);
        }
        let digits = digits.ok_or(NumberError::TooManyDigits { digits: significant })?;
        let exponent = exponent + i64::from(zeros) - fraction.len() as i64;
        if exponent.abs() > EXPONENT_MAX {
            return Err(NumberError::TooFar);
        }
        debug_assert!(!digits.is_multiple_of(10), "zeros at the end belong to the exponent");
        Ok(Self { digits, exponent: exponent as i32 })
    }

    /// Returns whether a text has the syntax of a decimal number, of any size and sign.
    pub(super) fn is_spelled(text: &str) -> bool {
        Spelling::of(text).is_some()
    }

    /// Returns the number of digits after the point.
    pub(super) fn digits_behind_point(self) -> u32 {
        (-self.exponent).max(0) as u32
    }

    /// Returns the number times 10^`shift`, if that is an integer of at most [`AMOUNT_MAX`].
    pub(super) fn shifted(self, shift: u32) -> Option<u64> {
        let power = u32::try_from(i64::from(self.exponent) + i64::from(shift)).ok()?;
        if self.digits == 0 {
            return Some(0);
        }
        self.digits.checked_mul(10_u64.checked_pow(power)?).filter(|&amount| amount <= AMOUNT_MAX)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// With more zeros, an exponent is easier to read.
        const ZEROS_MAX: usize = 18;
        let digits = self.digits.to_string();
        let behind = self.digits_behind_point() as usize;
        match self.exponent {
            0.. if self.exponent as usize <= ZEROS_MAX => {
                write!(formatter, "{digits}{:0<zeros$}", "", zeros = self.exponent as usize)
            }
            ..0 if behind < digits.len() => {
                let (whole, fraction) = digits.split_at(digits.len() - behind);
                write!(formatter, "{whole}.{fraction}")
            }
            ..0 if behind <= ZEROS_MAX => write!(formatter, "0.{digits:0>behind$}"),
            _ => write!(formatter, "{digits}e{}", self.exponent),
        }
    }
}

struct Spelling<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    exponent: i64,
}

impl<'t> Spelling<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let (negative, unsigned) = signed(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let only_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let any = !(whole.is_empty() && fraction.is_empty());
        (any && only_digits(whole) && only_digits(fraction)).then_some(Self {
            negative,
            whole,
            fraction,
            exponent,
        })
    }
}

/// Parses an exponent; one that is too large for any number stays too large.
fn exponent_of(text: &str) -> Option<i64> {
    let (negative, digits) = signed(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Far above any length of a text, and far below where sums overflow.
    let size = digits.parse().unwrap_or(i64::MAX).min(1 << 60);
    Some(if negative { -size } else { size })
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Returns the error of a text that is not a decimal number.
fn other(text: &str) -> NumberError {
    let (_, word) = signed(text);
    let not_finite = ["inf", ".inf", "infinity", "nan", ".nan"];
    if not_finite.iter().any(|name| word.eq_ignore_ascii_case(name)) {
        NumberError::NotFinite
    } else {
        NumberError::NotANumber
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> (u64, i32) {
        let number = Decimal::parse(text).expect(text);
        (number.digits, number.exponent)
    }

    #[test]
    fn the_spelling_is_the_number() {
        assert_eq!(parsed("0.1"), (1, -1));
        assert_eq!(parsed("12.25"), (1225, -2));
        assert_eq!(parsed("0100.00"), (1, 2));
        assert_eq!(parsed("1e-3"), (1, -3));
        assert_eq!(parsed("2.50E+1"), (25, 0));
        assert_eq!(parsed("+.5"), (5, -1));
        assert_eq!(parsed("5."), (5, 0));
        assert_eq!(parsed("1020"), (102, 1));
        assert_eq!(parsed("-0.00"), (0, 0));
        assert_eq!(parsed("0e99999999999999999999"), (0, 0));
        assert_eq!(parsed("18446744073709551615"), (u64::MAX, 0));
        assert_eq!(parsed("0.18446744073709551615000"), (u64::MAX, -20));
    }

    #[test]
    fn unusable_decimals_are_distinguished() {
        let refused = |text: &str| Decimal::parse(text).expect_err(text);
        for text in ["", "-", ".", "e1", "1e", "1e+", "1.2.3", "0x10", "1_000", " 1", "1 ", "٣", "1,5", "--1"]
        {
            assert_eq!(refused(text), NumberError::NotANumber, "{text:?}");
        }
        for text in ["inf", "-Infinity", ".nan", "NaN", "+.INF"] {
            assert_eq!(refused(text), NumberError::NotFinite, "{text:?}");
        }
        assert_eq!(refused("-0.5"), NumberError::Negative);
        assert_eq!(refused("18446744073709551616"), NumberError::TooManyDigits { digits: 20 });
        assert_eq!(refused(&format!("1.{}1", "0".repeat(100))), NumberError::TooManyDigits { digits: 102 });
        assert_eq!(refused("1e10000"), NumberError::TooFar);
        assert_eq!(refused("1e-99999999999999999999"), NumberError::TooFar);
        assert_eq!(refused(&format!("0.{}1", "0".repeat(20_000))), NumberError::TooFar);
    }

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        for text in ["0", "7", "1000", "0.5", "12.25", "0.000001", "1e30", "25e-40"] {
            assert_eq!(Decimal::parse(text).expect(text).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(digits: u64, exponent in -60_i32..60) {
            let number = Decimal::parse(&format!("{digits}e{exponent}")).expect("a number");
            prop_assert_eq!(Decimal::parse(&number.to_string()), Ok(number));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*", numeric in "[-+]?[0-9.eE+-]{0,40}") {
            for text in [text, numeric] {
                prop_assert_eq!(Decimal::parse(&text) == Err(NumberError::NotANumber)
                    || Decimal::parse(&text) == Err(NumberError::NotFinite), !Decimal::is_spelled(&text));
            }
        }

        #[test]
        fn shifting_is_multiplying(whole in 0_u64..1 << 40, shift in 0_u32..6) {
            let number = Decimal::parse(&format!("{whole}")).expect("a number");
            prop_assert_eq!(number.shifted(shift), Some(whole * 10_u64.pow(shift)));
        }
    }
}
