//! Times and values as clients write them, and points as they read them.

use super::errors;
use crate::command::parse::canonical_integer;
use crate::error::CommandError;
use crate::value::Unit;
use crate::wire::reply::{Protocol, Reply};

/// Time of a point as the client gives it.
#[derive(Debug, Clone, Copy)]
pub(super) enum GivenTime {
    /// `*`: the command's time, in the unit of the series.
    Now,
    /// A number.
    At(i64),
}

impl GivenTime {
    /// Parses an argument.
    pub(super) fn parse(arg: &[u8]) -> Result<Self, CommandError> {
        if arg == b"*" {
            return Ok(Self::Now);
        }
        match canonical_integer(arg) {
            Some(time) if time >= 0 => Ok(Self::At(time)),
            Some(_) => Err(errors::NEGATIVE_TIMESTAMP),
            None => Err(errors::INVALID_TIMESTAMP),
        }
    }

    /// Returns the time in a unit.
    pub(super) fn in_unit(self, unit: Unit, now_us: u64) -> i64 {
        match self {
            Self::Now => unit.of_micros(now_us),
            Self::At(time) => time,
        }
    }
}

/// Parses a value: a number as JSON has it, or NaN.
pub(super) fn value(arg: &[u8]) -> Result<f64, CommandError> {
    if let Some(value) = short_decimal(arg) {
        return Ok(value);
    }
    if arg.eq_ignore_ascii_case(b"nan") {
        return Ok(f64::NAN);
    }
    let text = std::str::from_utf8(arg).ok().filter(|_| is_json_number(arg)).ok_or(errors::INVALID_VALUE)?;
    let value: f64 = text.parse().map_err(|_| errors::INVALID_VALUE)?;
    if value.is_finite() { Ok(value) } else { Err(errors::INVALID_VALUE) }
}

/// Most bytes of a [`short_decimal`] without its sign: most numbers of so many digits have 53 bits.
const SHORT_BYTES: usize = 16;

/// Powers of ten that an `f64` has exactly.
const POWERS: [f64; SHORT_BYTES] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Returns the number of a short decimal without an exponent, as JSON has it. `None` for anything else:
/// it may be a number nevertheless.
///
/// The digits and the power of ten are exact, so their quotient is rounded once, and is what any
/// correct reader finds.
#[inline]
fn short_decimal(bytes: &[u8]) -> Option<f64> {
    let (is_negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > SHORT_BYTES {
        return None;
    }
    let (mut number, mut whole) = (0_u64, None);
    for (at, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            number = number * 10 + u64::from(digit);
        } else if *byte == b'.' && whole.is_none() {
            whole = Some(at);
        } else {
            return None;
        }
    }
    let fraction = match whole {
        None => 0,
        Some(whole) => Some(digits.len() - whole - 1).filter(|count| *count > 0)?,
    };
    let is_canonical = match (digits, whole.unwrap_or(digits.len())) {
        ([], _) | (_, 0) => false,
        (_, 1) => true,
        ([first, ..], _) => *first != b'0',
    };
    if !is_canonical || number > 1 << f64::MANTISSA_DIGITS {
        return None;
    }
    let magnitude = number as f64 / POWERS[fraction];
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Whether bytes are a number by JSON's grammar.
fn is_json_number(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

/// Writes a value: a double, or in RESP2 a status line as Redis's time series have it.
pub(super) fn reply_value(reply: &mut Reply, value: f64) {
    match reply.protocol() {
        Protocol::Resp3 => reply.double(value),
        Protocol::Resp2 => reply.simple(&format_value(value)),
    }
}

/// Writes a time and its values.
pub(super) fn reply_row(reply: &mut Reply, time: i64, values: &[f64]) {
    reply.array(1 + values.len());
    reply.integer(time);
    values.iter().for_each(|value| reply_value(reply, *value));
}

/// Writes a row of several series: a time, and the values of all of them.
pub(super) fn reply_joined_row(reply: &mut Reply, time: i64, values: &[f64]) {
    reply.array(2);
    reply.integer(time);
    reply.array(values.len());
    values.iter().for_each(|value| reply_value(reply, *value));
}

/// Integers up to this magnitude are written with all their digits.
const INTEGER_MAX: f64 = 4_503_599_627_370_496.0;

/// Returns the shortest form that is read back as the same number, in the notation of Redis's time
/// series: `1E-1` for a tenth.
pub(super) fn format_value(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if value.fract() == 0.0 && value.abs() <= INTEGER_MAX {
        return itoa::Buffer::new().format(value as i64).to_owned();
    }
    // Digits and exponent of the shortest form: "1.2345e-7".
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("the form has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    if exponent >= 0 && digits > exponent { format!("{value}") } else { format!("{mantissa}E{exponent}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_written_as_redis_does() {
        for (value, text) in [
            (1.0, "1"),
            (-0.0, "-0"),
            (0.1, "1E-1"),
            (0.0125, "1.25E-2"),
            (-1e-7, "-1E-7"),
            (33.333_333_333_333_336, "33.333333333333336"),
            (99_999_999.125, "99999999.125"),
            (1e15, "1000000000000000"),
            (5e15, "5E15"),
            (4_503_599_627_370_500.0, "4.5035996273705E15"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (12_345_678_901_234_568.0, "12345678901234568"),
            (1_000_000_000_000_000.5, "1000000000000000.5"),
            (1.23e16, "1.23E16"),
            (1.234_567_890_123_456_7e19, "1.2345678901234567E19"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "5E-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(format_value(value), text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2048, ..ProptestConfig::default() })]
        #[test]
        fn short_decimals_have_the_bits_of_all_numbers(text in "-?(0|[1-9][0-9]{0,16})([.][0-9]{1,17})?|[-+.e0-9]{0,8}") {
            let is_value = |value: &f64| is_json_number(text.as_bytes()) && value.is_finite();
            let expected = text.parse::<f64>().ok().filter(is_value);
            prop_assert_eq!(value(text.as_bytes()).ok().map(f64::to_bits), expected.map(f64::to_bits));
            if text.len() <= 15 && !text.contains(['e', '+']) {
                prop_assert_eq!(short_decimal(text.as_bytes()).map(f64::to_bits), expected.map(f64::to_bits));
            }
        }
    }

    #[test]
    fn values_are_numbers_as_json_has_them() {
        for (text, number) in
            [("1", 1.0), ("-0", 0.0), ("1.5", 1.5), ("1e5", 1e5), ("1E+5", 1e5), ("1e-400", 0.0)]
        {
            assert_eq!(value(text.as_bytes()), Ok(number), "{text}");
        }
        assert!(value(b"NaN").unwrap().is_nan() && value(b"nan").unwrap().is_nan());
        for text in
            ["x", "", "-", "+1", ".5", "5.", "01", "-01.5", "1e", " 1", "1 ", "1x", "0x10", "1e400", "inf"]
        {
            assert_eq!(value(text.as_bytes()), Err(errors::INVALID_VALUE), "{text}");
        }
    }
}
