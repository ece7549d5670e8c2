//! Numbers of INCRBYFLOAT and HINCRBYFLOAT as Redis adds them: with the 64-bit mantissa of an x87
//! register, each sum rounded to nearest, and 17 digits after the point. Computed in integers, so
//! every machine produces the digits that Redis does: `0.1` and `0.2` give `0.3`.

use crate::error::CommandError;
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Maximum length of a number's text in bytes, as in Redis.
const MAX_TEXT_BYTES: usize = 5 * 1024 - 1;
/// Exponent of the smallest numbers' unit.
const MIN_EXPONENT: i32 = -16445;
/// Exponent of the largest numbers' unit.
const MAX_EXPONENT: i32 = 16320;
/// Digits after the point of a printed number.
const DECIMALS: usize = 17;

/// Number of decimal digits that always fit in 64 bits.
const SHORT_DIGITS: usize = 19;
/// Maximum digits after the point for which the quotient of a 128-bit number by their power of five
/// keeps the 66 bits that rounding needs.
const SHORT_DECIMALS: i64 = 26;
const _: () = assert!(5_u128.pow(SHORT_DECIMALS as u32) < 1 << 61);

/// `mantissa` × 2^`exponent`, with a sign. The mantissa's highest bit is set, or `exponent` is
/// [`MIN_EXPONENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongDouble {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

impl LongDouble {
    pub(crate) const ZERO: Self = Self { negative: false, mantissa: 0, exponent: MIN_EXPONENT };

    /// Reads a decimal or hexadecimal number, with an optional exponent. `Ok(None)` is an infinity,
    /// spelled as a name. Refuses numbers that overflow or underflow to zero, `nan` and the empty
    /// text.
    pub(crate) fn parse(text: &[u8]) -> Result<Option<Self>, CommandError> {
        let (negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] | digits => (false, digits),
        };
        if text.len() > MAX_TEXT_BYTES {
            return Err(CommandError::NotAFloat);
        }
        if digits.eq_ignore_ascii_case(b"inf") || digits.eq_ignore_ascii_case(b"infinity") {
            return Ok(None);
        }
        let number = match digits {
            [b'0', b'x' | b'X', digits @ ..] => Numeral::parse::<16>(digits).and_then(Numeral::hexadecimal),
            digits => Numeral::parse::<10>(digits).and_then(Numeral::decimal),
        };
        number.map(|number| Some(Self { negative, ..number })).ok_or(CommandError::NotAFloat)
    }

    /// Returns the sum, rounded to nearest with ties to even; `None` if it overflows.
    pub(crate) fn add(self, other: Self) -> Option<Self> {
        /// Left shift of both mantissas: leaves room for the carry and keeps enough bits to round.
        const GUARD: i32 = 62;
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let distance = high.exponent.abs_diff(low.exponent);
        let wide = u128::from(low.mantissa) << GUARD;
        let kept = wide.checked_shr(distance).unwrap_or(0);
        // Bits that are shifted out only decide on which side of a tie the sum is.
        let lost = kept.checked_shl(distance).unwrap_or(0) != wide;
        let (high_bits, low_bits) = (u128::from(high.mantissa) << GUARD, kept | u128::from(lost));
        let (negative, sum) = if high.negative == low.negative {
            (high.negative, high_bits + low_bits)
        } else if high_bits >= low_bits {
            (high.negative, high_bits - low_bits)
        } else {
            (low.negative, low_bits - high_bits)
        };
        // The guard bits' unit may be below the smallest one, but then nothing was shifted out.
        let rounded = Self::round(sum, false, high.exponent - GUARD)?;
        Some(Self { negative: negative && sum != 0, ..rounded })
    }

    /// Returns the positive number nearest to `bits` × 2^`exponent`, where `more` says that the
    /// exact value is slightly greater; `None` if it overflows. With `more`, `bits` must have at
    /// least 66 bits.
    fn round(bits: u128, more: bool, exponent: i32) -> Option<Self> {
        let width = 128 - bits.leading_zeros() as i32;
        debug_assert!(!more || width >= 66);
        let drop = (width - 64).max(MIN_EXPONENT.saturating_sub(exponent));
        if drop <= 0 {
            let up = (64 - width).min(exponent - MIN_EXPONENT);
            return Self::positive((bits as u64).checked_shl(up as u32).unwrap_or(0), exponent - up);
        }
        let kept = bits.checked_shr(drop as u32).unwrap_or(0);
        let rest = bits ^ kept.checked_shl(drop as u32).unwrap_or(0);
        let half = 1_u128.checked_shl(drop as u32 - 1);
        let up = match half.map_or(Ordering::Less, |half| rest.cmp(&half)) {
            Ordering::Less => false,
            Ordering::Equal => more || kept & 1 == 1,
            Ordering::Greater => true,
        };
        let (kept, exponent) = (kept + u128::from(up), exponent + drop);
        match u64::try_from(kept) {
            Ok(mantissa) => Self::positive(mantissa, exponent),
            Err(_) => Self::positive(1 << 63, exponent + 1),
        }
    }

    fn positive(mantissa: u64, exponent: i32) -> Option<Self> {
        if mantissa == 0 {
            return Some(Self::ZERO);
        }
        (exponent <= MAX_EXPONENT).then_some(Self { negative: false, mantissa, exponent })
    }
}

impl std::fmt::Display for LongDouble {
    /// Writes all digits before the point and at most [`DECIMALS`] after it, without exponent or
    /// trailing zeros.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = if self.exponent >= 0 {
            let mut whole = Natural::from(self.mantissa);
            whole.shift_up(self.exponent as usize);
            whole.into_decimal()
        } else {
            let scaled = u128::from(self.mantissa) * 10_u128.pow(DECIMALS as u32);
            let shift = self.exponent.unsigned_abs();
            let kept = scaled.checked_shr(shift).unwrap_or(0);
            let rest = scaled ^ kept.checked_shl(shift).unwrap_or(0);
            let half = 1_u128.checked_shl(shift - 1);
            let up = half.is_some_and(|half| rest > half || (rest == half && kept & 1 == 1));
            format!("{:0>1$}", kept + u128::from(up), DECIMALS + 1)
        };
        let decimals = if self.exponent >= 0 { 0 } else { DECIMALS };
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let fraction = fraction.trim_end_matches('0');
        let is_zero = whole == "0" && fraction.is_empty();
        f.write_str(if self.negative && !is_zero { "-" } else { "" })?;
        f.write_str(whole)?;
        if fraction.is_empty() { Ok(()) } else { write!(f, ".{fraction}") }
    }
}

/// A parsed non-negative number: digits, position of the point, and exponent.
struct Numeral {
    /// Values of the digits, without leading zeros.
    digits: Vec<u8>,
    /// Number of digits after the point, including zeros not in `digits`.
    behind_point: i64,
    /// Exponent of ten for decimal numbers, of two for hexadecimal ones.
    exponent: i64,
}

impl Numeral {
    /// Parses text with digits of this base, 10 or 16; `None` if it is not a number.
    fn parse<const BASE: u32>(text: &[u8]) -> Option<Self> {
        let mark = if BASE == 16 { b'p' } else { b'e' };
        let end = text.iter().position(|byte| byte.to_ascii_lowercase() == mark);
        let (number, exponent) = text.split_at(end.unwrap_or(text.len()));
        let mut parsed = Self { digits: Vec::new(), behind_point: 0, exponent: 0 };
        let (mut has_digits, mut has_point) = (false, false);
        for &byte in number {
            if byte == b'.' && !has_point {
                has_point = true;
                continue;
            }
            let digit = char::from(byte).to_digit(BASE)? as u8;
            has_digits = true;
            parsed.behind_point += i64::from(has_point);
            if digit > 0 || !parsed.digits.is_empty() {
                parsed.digits.push(digit);
            }
        }
        if let [_, exponent @ ..] = exponent {
            parsed.exponent = parse_exponent(exponent)?;
        }
        has_digits.then_some(parsed)
    }

    /// Converts hexadecimal digits; `None` if the value overflows or underflows to zero.
    fn hexadecimal(self) -> Option<LongDouble> {
        let (mut bits, mut more, mut exponent) = (0_u128, false, self.exponent - 4 * self.behind_point);
        for digit in self.digits {
            if bits >> 120 == 0 {
                bits = bits << 4 | u128::from(digit);
            } else {
                more |= digit > 0;
                exponent += 4;
            }
        }
        if bits == 0 {
            return Some(LongDouble::ZERO);
        }
        // Far outside the range of all numbers on both sides, and far inside that of the integer.
        let exponent = exponent.clamp(-100_000, 100_000) as i32;
        LongDouble::round(bits, more, exponent).filter(|number| number.mantissa > 0)
    }

    /// Converts decimal digits; `None` if the value overflows or underflows to zero.
    fn decimal(self) -> Option<LongDouble> {
        if self.digits.is_empty() {
            return Some(LongDouble::ZERO);
        }
        let exponent = self.exponent - self.behind_point;
        if self.digits.len() <= SHORT_DIGITS && (-SHORT_DECIMALS..=0).contains(&exponent) {
            return self.short_decimal(exponent as i32);
        }
        // Outside these powers of ten, every number overflows or underflows; the rest is small
        // enough to compute.
        let magnitude = exponent + self.digits.len() as i64;
        if !(-4960..=4940).contains(&magnitude) {
            return None;
        }
        let mut value = Natural::from_decimal(&self.digits);
        let (bits, more, unit) = if exponent >= 0 {
            value.multiply_by_power_of_5(exponent as usize);
            let (bits, more, unit) = value.leading_bits();
            (bits, more, unit as i64)
        } else {
            let mut divisor = Natural::from(1);
            divisor.multiply_by_power_of_5(exponent.unsigned_abs() as usize);
            let (bits, more, unit) = value.divide(divisor);
            (bits, more, unit)
        };
        let unit = i32::try_from(unit + exponent).ok()?;
        LongDouble::round(bits, more, unit).filter(|number| number.mantissa > 0)
    }

    /// As [`Numeral::decimal`], for short numbers whose quotient by a power of five fits in a
    /// machine word.
    fn short_decimal(&self, exponent: i32) -> Option<LongDouble> {
        let value = self.digits.iter().fold(0, |value: u128, digit| value * 10 + u128::from(*digit));
        let divisor = 5_u128.pow(exponent.unsigned_abs());
        let up = value.leading_zeros();
        let value = value << up;
        LongDouble::round(value / divisor, value % divisor > 0, exponent - up as i32)
    }
}

/// Reads a decimal exponent. Long ones are capped far outside the range of all numbers.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    let mut value = 0_i64;
    for byte in digits {
        value = (value * 10 + i64::from(char::from(*byte).to_digit(10)?)).min(1_000_000_000);
    }
    (!digits.is_empty()).then_some(sign * value)
}

/// A non-negative integer of any size: 32-bit limbs, lowest first, without zero limbs at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Natural(Vec<u32>);

impl From<u64> for Natural {
    fn from(value: u64) -> Self {
        let mut natural = Self(vec![value as u32, (value >> 32) as u32]);
        natural.trim();
        natural
    }
}

impl Natural {
    fn from_decimal(digits: &[u8]) -> Self {
        let mut value = Self(Vec::new());
        for chunk in digits.chunks(9) {
            let number = chunk.iter().fold(0, |number, digit| number * 10 + u32::from(*digit));
            value.multiply_and_add(10_u32.pow(chunk.len() as u32), number);
        }
        value
    }

    fn into_decimal(mut self) -> String {
        const CHUNK: u32 = 1_000_000_000;
        let mut chunks = Vec::new();
        while !self.0.is_empty() {
            let mut rest = 0_u64;
            for limb in self.0.iter_mut().rev() {
                let value = rest << 32 | u64::from(*limb);
                *limb = (value / u64::from(CHUNK)) as u32;
                rest = value % u64::from(CHUNK);
            }
            self.trim();
            chunks.push(rest);
        }
        let mut chunks = chunks.into_iter().rev();
        let mut text = chunks.next().unwrap_or(0).to_string();
        for chunk in chunks {
            // Writing to a string cannot fail.
            let _ = write!(text, "{chunk:09}");
        }
        text
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn bits(&self) -> usize {
        self.0.last().map_or(0, |last| self.0.len() * 32 - last.leading_zeros() as usize)
    }

    fn multiply_and_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for limb in &mut self.0 {
            let value = u64::from(*limb) * u64::from(factor) + carry;
            *limb = value as u32;
            carry = value >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn multiply_by_power_of_5(&mut self, power: usize) {
        /// The highest power of 5 that fits in a limb.
        const STEP: usize = 13;
        for _ in 0..power / STEP {
            self.multiply_and_add(5_u32.pow(STEP as u32), 0);
        }
        self.multiply_and_add(5_u32.pow((power % STEP) as u32), 0);
    }

    fn shift_up(&mut self, bits: usize) {
        self.multiply_and_add(1 << (bits % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, bits / 32));
        self.trim();
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for limb in self.0.iter_mut().rev() {
            let value = *limb;
            *limb = value >> 1 | carry;
            carry = value << 31;
        }
        self.trim();
    }

    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (index, limb) in self.0.iter_mut().enumerate() {
            let (value, first) = limb.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (value, second) = value.overflowing_sub(u32::from(borrow));
            *limb = value;
            borrow = first || second;
        }
        debug_assert!(!borrow, "the smaller is subtracted");
        self.trim();
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Returns at most the highest 128 bits, whether any bit below them is set, and how many bits
    /// are below them.
    fn leading_bits(&self) -> (u128, bool, usize) {
        let below = self.bits().saturating_sub(128);
        let (skipped, shift) = (below / 32, below % 32);
        // 128 bits that are not aligned to a limb span five limbs.
        let mut bits = 0_u128;
        for (position, limb) in self.0.iter().skip(skipped).enumerate() {
            let at = position as i32 * 32 - shift as i32;
            let limb = u128::from(*limb);
            bits |= if at < 0 { limb >> -at } else { limb << at };
        }
        let more = self.0.iter().take(skipped).any(|limb| *limb > 0)
            || self.0.get(skipped).is_some_and(|limb| limb & ((1 << shift) - 1) > 0);
        (bits, more, below)
    }

    /// Returns the quotient's highest 66 or 67 bits, whether it is inexact, and the exponent of
    /// their unit. Neither number may be zero.
    fn divide(mut self, mut divisor: Self) -> (u128, bool, i64) {
        let up = divisor.bits() as i64 + 66 - self.bits() as i64;
        if up >= 0 {
            self.shift_up(up as usize);
        } else {
            divisor.shift_up(up.unsigned_abs() as usize);
        }
        // 2^65 ≤ quotient < 2^67
        divisor.shift_up(66);
        let mut quotient = 0_u128;
        for _ in 0..67 {
            quotient <<= 1;
            if self.compare(&divisor).is_ge() {
                self.subtract(&divisor);
                quotient |= 1;
            }
            divisor.halve();
        }
        (quotient, !self.0.is_empty(), -up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The value that Redis stores, or its reason to refuse.
    fn sum(one: &str, other: &str) -> String {
        match (LongDouble::parse(one.as_bytes()), LongDouble::parse(other.as_bytes())) {
            (Ok(Some(one)), Ok(Some(other))) => one.add(other).map_or("inf".into(), |sum| sum.to_string()),
            (Ok(_), Ok(_)) => "inf".into(),
            _ => "refused".into(),
        }
    }

    #[test]
    fn sums_are_those_of_an_x87() {
        for (one, other, expected) in [
            ("0.1", "0.2", "0.3"),
            ("3.0", "1.1", "4.1"),
            ("1e20", "0.5", "100000000000000000000"),
            ("18446744073709551615", "0.5", "18446744073709551616"),
            ("18446744073709551614", "0.5", "18446744073709551614"),
            ("9223372036854775807", "0.5", "9223372036854775807.5"),
            ("36893488147419103235", "0", "36893488147419103236"),
            ("36893488147419103235", "-1", "36893488147419103236"),
            ("1.5", "-1.5", "0"),
            ("-0", "-0", "0"),
            ("1e-18", "0", "0"),
            ("-5e-18", "-0.1e-18", "-0.00000000000000001"),
            ("0x10", "0X.8p1", "17"),
            (".5", "1.", "1.5"),
            ("1e5000", "0", "refused"),
            ("1e-5000", "0", "refused"),
            ("0e5000", "0", "0"),
            ("1.2e4932", "0", "refused"),
            ("1.1e4932", "1.1e4932", "inf"),
            ("inf", "-Infinity", "inf"),
        ] {
            assert_eq!(sum(one, other), expected, "{one} + {other}");
            assert_eq!(sum(other, one), expected, "{other} + {one}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let long = "1".repeat(MAX_TEXT_BYTES + 1);
        for text in [
            "", "-", ".", "nan", "1e", "1e+", " 1", "1 ", "1\0", "+-1", "--1", "0x", "0x.p1", "0xp1", "1_0",
            "1.2.3", &long,
        ] {
            assert!(LongDouble::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(LongDouble::parse(&long.as_bytes()[1..]).is_err(), "beyond 10^4932");
        let fraction = format!("0.{}", "3".repeat(MAX_TEXT_BYTES - 2));
        assert_eq!(sum(&fraction, "0"), "0.33333333333333333");
    }

    #[test]
    fn the_ends_of_the_range_are_exact() {
        let largest = LongDouble { negative: false, mantissa: u64::MAX, exponent: MAX_EXPONENT };
        assert_eq!(LongDouble::parse(b"0x.ffffffffffffffffp16384"), Ok(Some(largest)));
        assert_eq!(LongDouble::parse(largest.to_string().as_bytes()), Ok(Some(largest)));
        assert!(LongDouble::parse(b"0x.ffffffffffffffff8p16384").is_err());
        assert_eq!(largest.add(LongDouble { exponent: MAX_EXPONENT - 64, ..largest }), None);
        assert_eq!(largest.add(LongDouble { exponent: MAX_EXPONENT - 65, ..largest }), Some(largest));
        let smallest = LongDouble { negative: false, mantissa: 1, exponent: MIN_EXPONENT };
        assert_eq!(LongDouble::parse(b"3.6451995318824746025e-4951"), Ok(Some(smallest)));
        assert_eq!(LongDouble::parse(b"0x1.8p-16446"), Ok(Some(smallest)));
        assert!(LongDouble::parse(b"0x1p-16446").is_err(), "half of it rounds to zero");
        let negative = LongDouble { negative: true, ..smallest };
        assert_eq!(smallest.add(negative), Some(LongDouble::ZERO));
        assert_eq!(smallest.add(smallest), Some(LongDouble { mantissa: 2, ..smallest }));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_double_is_read_and_printed_exactly(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            // A double has at most 1074 digits after the point.
            let number = LongDouble::parse(format!("{value:.1074}").as_bytes()).expect("a number").expect("finite");
            let text = format!("{value:.17}");
            let expected = text.trim_end_matches('0').trim_end_matches('.');
            prop_assert_eq!(number.to_string(), if expected == "-0" { "0" } else { expected });
        }

        #[test]
        fn whole_numbers_are_added_exactly_where_they_fit(one: i64, other: i64) {
            let expected = i128::from(one) + i128::from(other);
            prop_assert_eq!(sum(&one.to_string(), &other.to_string()), expected.to_string());
        }

        #[test]
        fn sums_are_rounded_to_even(one: u64, other: u64, shift in 0_i32..63) {
            let exact = (u128::from(one) << shift) + u128::from(other);
            let place = |mantissa: u64, exponent| LongDouble::round(u128::from(mantissa), false, exponent).expect("in range");
            let sum = place(one, shift).add(place(other, 0)).expect("in range");
            let drop = (128 - exact.leading_zeros()).saturating_sub(64);
            let (kept, rest) = (exact >> drop, exact & ((1 << drop) - 1));
            let half = if drop == 0 { 1 } else { 1 << (drop - 1) };
            let expected = kept + u128::from(rest > half || (drop > 0 && rest == half && kept % 2 == 1));
            prop_assert_eq!(sum.to_string(), (expected << drop).to_string());
        }

        #[test]
        fn any_text_is_a_number_or_refused(text in "[-+0-9.eExXpPinfa]{0,40}", other in "[0-9]{1,30}\\.[0-9]{0,30}") {
            let added = sum(&text, &other);
            prop_assert_eq!(LongDouble::parse(text.as_bytes()).is_err(), added == "refused");
            prop_assert_eq!(&sum(&other, &text), &added);
            let number = LongDouble::parse(other.as_bytes()).expect("a number").expect("finite");
            prop_assert_eq!(number.add(LongDouble::ZERO), Some(number));
        }
    }
}
