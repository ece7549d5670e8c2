//! Hexadecimal floating-point numbers, which Redis accepts because C's `strtod` does.

/// Bits of a double's mantissa.
const PRECISION: i64 = f64::MANTISSA_DIGITS as i64;

/// Exponent of the smallest double, a power of two.
const LOWEST: i64 = f64::MIN_EXP as i64 - PRECISION;

/// Parses the text after `0x`: hexadecimal digits, optionally with a point among them, then
/// optionally `p` and a decimal exponent of two. Rounds to the nearest double, ties to even. Out of
/// range, returns an infinity or zero.
pub(super) fn parse(digits: &[u8]) -> Option<f64> {
    let (digits, exponent) = match digits.iter().position(|byte| matches!(byte, b'p' | b'P')) {
        Some(at) => (&digits[..at], decimal_exponent(&digits[at + 1..])?),
        None => (digits, 0),
    };
    let (mantissa, digits_exponent) = mantissa(digits)?;
    Some(scale(mantissa, digits_exponent.saturating_add(exponent)))
}

/// Returns the digits as an integer and an exponent of two. A double holds 53 bits, so digits after
/// the sixteenth only matter if they are not zero; the lowest bit records that.
fn mantissa(digits: &[u8]) -> Option<(u64, i64)> {
    let (mut mantissa, mut exponent, mut behind_point, mut any) = (0_u64, 0_i64, false, false);
    for &byte in digits {
        if byte == b'.' && !behind_point {
            behind_point = true;
            continue;
        }
        let digit = u64::from(char::from(byte).to_digit(16)?);
        any = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if behind_point { 4 } else { 0 };
        } else {
            mantissa |= u64::from(digit != 0);
            exponent += if behind_point { 0 } else { 4 };
        }
    }
    any.then_some((mantissa, exponent))
}

/// Parses a decimal exponent. Its absolute value is limited to `FAR`.
fn decimal_exponent(text: &[u8]) -> Option<i64> {
    /// Beyond what the digits of an argument and the range of a double could offset.
    const FAR: i64 = 1 << 40;
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, digit| (value * 10 + i64::from(digit - b'0')).min(FAR));
    Some(if negative { -value } else { value })
}

/// Returns `mantissa * 2^exponent` as a double.
fn scale(mantissa: u64, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let bits = 64 - i64::from(mantissa.leading_zeros());
    // Exponent of the last bit that the double can hold.
    let last = (exponent + bits - PRECISION).max(LOWEST);
    if last + PRECISION > i64::from(f64::MAX_EXP) {
        return f64::INFINITY;
    }
    let rounded = match last - exponent {
        ..=0 => return mantissa as f64 * power_of_two(exponent),
        dropped @ 1..64 => {
            let (kept, rest) = (mantissa >> dropped, mantissa & ((1 << dropped) - 1));
            let half = 1 << (dropped - 1);
            kept + u64::from(rest > half || (rest == half && kept % 2 == 1))
        }
        64 => u64::from(mantissa > 1 << 63),
        _ => 0,
    };
    // Exact: the integer has at most 53 bits, or is 2^53, and no bit of the product is below the
    // smallest that a double can hold.
    rounded as f64 * power_of_two(last)
}

/// Returns a power of two, with an exponent from -1074 to 1023.
fn power_of_two(power: i64) -> f64 {
    debug_assert!((LOWEST..i64::from(f64::MAX_EXP)).contains(&power));
    match u64::try_from(power + i64::from(f64::MAX_EXP) - 1) {
        Ok(biased @ 1..) => f64::from_bits(biased << (PRECISION - 1)),
        _ => f64::from_bits(1 << (power - LOWEST)),
    }
}
