//! Numbers as C's `printf` writes them.

/// The bits of `-0.0`, which keeps its sign.
const MINUS_ZERO: u64 = 1 << 63;

/// Formats a number as `%.<precision>g`.
pub(crate) fn general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    // An integer of at most as many digits is written with all of them, but for a negative zero.
    if value.fract() == 0.0 && value.abs() < 10_f64.powi(precision as i32) && value.to_bits() != MINUS_ZERO {
        return (value as i64).to_string();
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..precision as i32).contains(&exponent) {
        let decimals = (precision as i32 - 1 - exponent) as usize;
        return without_zeros(&format!("{value:.decimals$}")).into();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Converts to an integer as x86 does, which Redis relies on: what does not fit is the least integer.
pub(crate) fn truncated(value: f64) -> i64 {
    // 2^63, above the largest integer.
    const BOUND: f64 = -(i64::MIN as f64);
    if value.is_nan() || !(-BOUND..BOUND).contains(&value) {
        return i64::MIN;
    }
    value as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_c() {
        for (value, precision, text) in [
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (1e15, 14, "1e+15"),
            (1e15, 17, "1000000000000000"),
            (1e17, 17, "1e+17"),
            (-0.0, 17, "-0"),
            (123_456.75, 14, "123456.75"),
            (1e-5, 14, "1e-05"),
            (1e-4, 14, "0.0001"),
            (3.0, 14, "3"),
            (f64::INFINITY, 14, "inf"),
            (1e17 - 16.0, 17, "99999999999999984"),
            (-1e17, 17, "-1e+17"),
            (9.0, 1, "9"),
            (-10.0, 1, "-1e+01"),
            (-7.0, 17, "-7"),
            (f64::MAX, 17, "1.7976931348623157e+308"),
        ] {
            assert_eq!(general(value, precision), text);
        }
    }

    #[test]
    fn numbers_lose_their_fraction() {
        for (value, integer) in [(3.99, 3), (-3.99, -3), (1e30, i64::MIN), (f64::NAN, i64::MIN)] {
            assert_eq!(truncated(value), integer);
        }
    }
}
