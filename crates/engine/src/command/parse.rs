//! Parsing of arguments.

use crate::error::CommandError;
use crate::keyspace::DATABASES;

/// Parses an integer whose decimal form is exactly these bytes: no plus sign, no leading zero, no
/// space.
#[inline]
pub fn canonical_integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let &first = digits.first()?;
    if digits.len() > 19 || (first == b'0' && (negative || digits.len() > 1)) {
        return None;
    }
    let mut value = 0_u64;
    let (words, rest) = digits.as_chunks::<8>();
    for word in words {
        value = value * 100_000_000 + eight_digits(*word)?;
    }
    for &digit in rest {
        // 19 digits stay below 10^19, which fits in 64 bits.
        value = value * 10 + u64::from(Some(digit.wrapping_sub(b'0')).filter(|digit| *digit < 10)?);
    }
    if negative { 0_i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Returns the number that eight digits stand for, the first of the highest value; `None` if one of
/// the bytes is no digit. All digits together: neighbours are joined to pairs, to fours, to eight.
#[inline]
pub(super) fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0xf0; 8]);
    const SIX: u64 = u64::from_ne_bytes([6; 8]);
    let word = u64::from_le_bytes(digits);
    // From '0' to '?' by the first condition; 6 more leaves only digits there.
    if word & HIGH != ZEROS || word.wrapping_add(SIX) & HIGH != ZEROS {
        return None;
    }
    let ones = word - ZEROS;
    // A pair stands in the higher of its two bytes, and likewise below.
    let pairs = (ones.wrapping_mul(10 * (1 << 8) + 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 * (1 << 16) + 1) >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000 * (1 << 32) + 1) >> 32)
}

/// Parses an integer.
#[inline]
pub fn integer(arg: &[u8]) -> Result<i64, CommandError> {
    canonical_integer(arg).ok_or(CommandError::NotAnInteger)
}

/// Parses an integer in a range.
pub fn integer_in(arg: &[u8], range: std::ops::RangeInclusive<i64>) -> Result<i64, CommandError> {
    integer(arg)
        .ok()
        .filter(|value| range.contains(value))
        .ok_or(CommandError::text("ERR value is out of range"))
}

/// Parses the number of a database.
pub fn database(arg: &[u8]) -> Result<u8, CommandError> {
    let index = i32::try_from(integer(arg)?).map_err(|_| {
        CommandError::text("ERR value is out of range, value must between -2147483648 and 2147483647")
    })?;
    existing_database(index)
}

/// Checks the number of a database.
pub fn existing_database(index: i32) -> Result<u8, CommandError> {
    let index = u8::try_from(index).ok().filter(|&index| usize::from(index) < DATABASES);
    index.ok_or(CommandError::text("ERR DB index is out of range"))
}

/// Redis's error for a negative number, and in places for text that is not a number.
pub const NOT_POSITIVE: &str = "ERR value is out of range, must be positive";

/// Parses a non-negative integer.
pub fn positive(arg: &[u8]) -> Result<u64, CommandError> {
    let value = integer(arg)?;
    u64::try_from(value).map_err(|_| CommandError::text(NOT_POSITIVE))
}

/// Parses an integer of at least `low`; anything else is the error `otherwise`.
pub fn at_least(low: usize, arg: &[u8], otherwise: &'static str) -> Result<usize, CommandError> {
    let value = canonical_integer(arg).and_then(|value| usize::try_from(value).ok());
    value.filter(|&value| value >= low).ok_or(CommandError::text(otherwise))
}

/// Parses an integer that can be negated, which the smallest cannot.
pub fn negatable(arg: &[u8]) -> Result<i64, CommandError> {
    let value = integer(arg)?;
    if value == i64::MIN {
        return Err(CommandError::text(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ));
    }
    Ok(value)
}

/// Parses a floating-point number: decimal or hexadecimal (`0x1.8p1`), with or without an exponent,
/// `inf`, `+inf` or `-inf`; not `nan`. A number out of range becomes an infinity or zero.
pub fn float(arg: &[u8]) -> Result<f64, CommandError> {
    let (sign, digits) = match arg {
        [b'-', digits @ ..] => (-1.0, digits),
        [b'+', digits @ ..] | digits => (1.0, digits),
    };
    if let [b'0', b'x' | b'X', digits @ ..] = digits {
        return super::hexadecimal::parse(digits).map(|value| sign * value).ok_or(CommandError::NotAFloat);
    }
    let text = std::str::from_utf8(arg).map_err(|_| CommandError::NotAFloat)?;
    let value: f64 = text.parse().map_err(|_| CommandError::NotAFloat)?;
    if value.is_nan() { Err(CommandError::NotAFloat) } else { Ok(value) }
}

/// Parses a timeout in seconds, possibly with a fraction, to milliseconds, rounded up. `None`, from
/// 0, means no limit. As in Redis, less than a millisecond below zero is zero.
pub fn timeout_ms(arg: &[u8]) -> Result<Option<u64>, CommandError> {
    let seconds = float(arg).map_err(|_| CommandError::text("ERR timeout is not a float or out of range"))?;
    let millis = (seconds * 1000.0).ceil();
    if millis < 0.0 {
        return Err(CommandError::text("ERR timeout is negative"));
    }
    if millis >= i64::MAX as f64 {
        return Err(CommandError::text("ERR timeout is out of range"));
    }
    Ok(Some(millis as u64).filter(|&millis| millis > 0))
}

/// Returns an argument for error messages: its beginning, quoted and on one line.
pub(crate) fn shown(arg: &[u8]) -> String {
    const SHOWN_BYTES: usize = 40;
    let text = String::from_utf8_lossy(&arg[..arg.len().min(SHOWN_BYTES)]);
    let more = if arg.len() > SHOWN_BYTES { "…" } else { "" };
    format!("'{}{more}'", text.escape_debug())
}

/// Returns whether an argument is a keyword, ignoring case. `keyword` is upper-case.
#[inline]
pub fn is(arg: &[u8], keyword: &str) -> bool {
    arg.eq_ignore_ascii_case(keyword.as_bytes())
}

/// Resolves a range of indices against a length; negative indices count from the end. `None` if the
/// range is empty.
pub fn range(start: i64, stop: i64, len: usize) -> Option<std::ops::Range<usize>> {
    let len = i64::try_from(len).ok()?;
    let absolute = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
    let (start, stop) =
        (absolute(start), if stop < 0 { stop.saturating_add(len) } else { stop.min(len - 1) });
    (start <= stop && start < len).then(|| start as usize..stop as usize + 1)
}

/// Returns whether a string matches a glob pattern with `*`, `?`, `[a-z]`, `[^a]` and `\` escapes,
/// byte by byte as in Redis. O(pattern × text) at worst: `*` is resumed, never nested.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p + 1, t));
            p += 1;
            continue;
        }
        if t == text.len() {
            return pattern[p..].iter().all(|&byte| byte == b'*');
        }
        match one(&pattern[p..], text[t]) {
            Some(width) => {
                p += width;
                t += 1;
            }
            None => {
                let Some((resume, at)) = star else { return false };
                star = Some((resume, at + 1));
                (p, t) = (resume, at + 1);
            }
        }
    }
}

/// Returns how many bytes of the pattern match this byte of the text.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'[' => class(&pattern[1..], byte).map(|width| width + 1),
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        literal => (literal == byte).then_some(1),
    }
}

/// Matches a character class after its `[`. A class without `]` extends to the end of the pattern.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = pattern.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut matched = false;
    loop {
        match pattern.get(at..)? {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                matched |= *escaped == byte;
                at += 2;
            }
            [from, b'-', to, ..] => {
                let (low, high) = (from.min(to), from.max(to));
                matched |= (*low..=*high).contains(&byte);
                at += 3;
            }
            [single, ..] => {
                matched |= *single == byte;
                at += 1;
            }
        }
    }
    (matched != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_canonical_form_is_an_integer() {
        for (text, value) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(canonical_integer(text.as_bytes()), Some(value));
        }
        assert_eq!(canonical_integer(b"-9223372036854775808"), Some(i64::MIN));
        for text in
            ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "-9223372036854775809"]
        {
            assert_eq!(canonical_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_byte_that_is_no_digit_is_found_in_integers_of_any_length() {
        let digits = "1234567890123456789";
        for len in 1..=digits.len() {
            assert_eq!(canonical_integer(&digits.as_bytes()[..len]), digits[..len].parse().ok());
            for (at, byte) in (0..len).flat_map(|at| [b'/', b':', b' ', 0xb1].map(|byte| (at, byte))) {
                let mut text = digits.as_bytes()[..len].to_vec();
                text[at] = byte;
                assert_eq!(canonical_integer(&text), None, "{text:?}");
            }
        }
    }

    #[test]
    fn a_timeout_is_in_seconds_and_rounds_up() {
        for (text, millis) in [
            ("0", None),
            ("1", Some(1000)),
            ("0.0001", Some(1)),
            ("-0", None),
            ("1e3", Some(1_000_000)),
            ("-0.0001", None),
        ] {
            assert_eq!(timeout_ms(text.as_bytes()), Ok(millis), "{text}");
        }
        for text in ["-1", "-0.002", "inf", "-inf", "nan", "1e300", "", "x"] {
            assert!(timeout_ms(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn floats_are_read_as_c_reads_them() {
        for (text, value) in [
            ("1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("-Infinity", f64::NEG_INFINITY),
            ("+inf", f64::INFINITY),
            ("0x10", 16.0),
            ("-0X1.8p1", -3.0),
            ("+0x.8", 0.5),
            ("0x8.", 8.0),
            ("0x1P-4", 0.0625),
            ("0x1p+4", 16.0),
            ("0x0p9999999999999999999999", 0.0),
            ("0x1p99999999999999999999999", f64::INFINITY),
            ("0x1p-99999999999999999999999", 0.0),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1.fffffffffffff7p1023", f64::MAX),
            ("0x1.fffffffffffff8p1023", f64::INFINITY),
            ("0x1p-1074", 5e-324),
            ("0x1.8p-1074", 1e-323),
            ("0x1p-1075", 0.0),
            ("0x1.000001p-1075", 5e-324),
            ("0x20000000000001", 9_007_199_254_740_992.0),
            ("0x20000000000001.000000000000000000000000001", 9_007_199_254_740_994.0),
            ("0x20000000000003", 9_007_199_254_740_996.0),
        ] {
            assert_eq!(float(text.as_bytes()).map(f64::to_bits), Ok(value.to_bits()), "{text}");
        }
        for text in [
            "", "x", ".", "nan", "-nan", " 1", "1 ", "1e", "0x", "0x.", "0x1p", "0x1p+", "0xg", "0x1 ",
            "--0x1", "0x-1", "0b1", "1_0",
        ] {
            assert_eq!(float(text.as_bytes()), Err(CommandError::NotAFloat), "{text}");
        }
    }

    #[test]
    fn ranges_resolve_as_in_redis() {
        assert_eq!(range(0, -1, 3), Some(0..3));
        assert_eq!(range(-100, 100, 3), Some(0..3));
        assert_eq!(range(2, 1, 3), None);
        assert_eq!(range(3, 5, 3), None);
        assert_eq!(range(0, -4, 3), None);
        assert_eq!(range(-2, -2, 3), Some(1..2));
        assert_eq!(range(0, 0, 0), None);
    }

    #[test]
    fn globs_match_as_in_redis() {
        for (pattern, text, matches) in [
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hello", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZd", false),
            ("[abc", "b", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), matches, "{pattern} {text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn an_integer_is_canonical_exactly_if_it_prints_back(text in "[-+0-9]{0,21}|[-1-9][0-9/:!-]{0,19}") {
            let expected = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(canonical_integer(text.as_bytes()), expected);
        }

        #[test]
        fn a_hexadecimal_float_has_the_value_of_its_digits(mantissa in 0..1_u64 << 53, exponent in -1000..900_i32) {
            let expected = mantissa as f64 * 2_f64.powi(exponent);
            prop_assert_eq!(float(format!("0x{mantissa:x}p{exponent}").as_bytes()), Ok(expected));
        }

        #[test]
        fn any_bytes_are_a_float_or_refused(text in "[-+]?0x[0-9a-g.]{0,24}(p[-+]?[0-9]{0,6})?") {
            if let Ok(value) = float(text.as_bytes()) {
                prop_assert!(!value.is_nan());
                prop_assert_eq!(float(crate::wire::reply::format_double(value).as_bytes()), Ok(value));
            }
        }

        #[test]
        fn any_pattern_gives_an_answer(pattern in proptest::collection::vec(any::<u8>(), 0..30), text in proptest::collection::vec(any::<u8>(), 0..30)) {
            let (behind_any, longer) = ([b"*", &pattern[..]].concat(), [b"x", &text[..]].concat());
            let matches = glob(&pattern, &text);
            prop_assert!(!matches || (glob(&behind_any, &text) && glob(&behind_any, &longer)));
            let plain: Vec<u8> = text.iter().flat_map(|byte| [b'\\', *byte]).collect();
            prop_assert!(glob(&plain, &text) && !glob(&plain, &longer));
        }
    }
}
