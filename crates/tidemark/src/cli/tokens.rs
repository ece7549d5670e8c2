//! Splits a line into arguments, with the quoting rules of the Redis command line.

/// Why a line cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    /// A quote that is not closed.
    #[error("a quote is not closed; write \\\" or \\' for a quote inside quotes")]
    Unbalanced,
    /// Text directly after a closing quote.
    #[error("a closing quote must be followed by a space")]
    TextAfterQuote,
}

/// Returns the arguments of a line. Double quotes understand escapes, single quotes only `\'`;
/// outside quotes no character is special.
pub(super) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, TokenError> {
    let mut arguments = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let (argument, tail) = next(rest)?;
        arguments.push(argument);
        rest = tail.trim_ascii_start();
    }
    Ok(arguments)
}

fn next(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), TokenError> {
    let mut argument = Vec::new();
    loop {
        match rest {
            [] => return Ok((argument, rest)),
            [space, ..] if space.is_ascii_whitespace() => return Ok((argument, rest)),
            [b'"', tail @ ..] => return closed(double_quoted(tail, argument)?),
            [b'\'', tail @ ..] => return closed(single_quoted(tail, argument)?),
            [byte, tail @ ..] => {
                argument.push(*byte);
                rest = tail;
            }
        }
    }
}

/// Checks that a quoted part ends its argument.
fn closed((argument, rest): (Vec<u8>, &[u8])) -> Result<(Vec<u8>, &[u8]), TokenError> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(TokenError::TextAfterQuote),
        _ => Ok((argument, rest)),
    }
}

fn double_quoted(mut rest: &[u8], mut argument: Vec<u8>) -> Result<(Vec<u8>, &[u8]), TokenError> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(TokenError::Unbalanced),
            [b'"', tail @ ..] => return Ok((argument, tail)),
            [b'\\', b'x', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hexadecimal(*high) * 16 + hexadecimal(*low), tail)
            }
            [b'\\', escaped, tail @ ..] => (unescaped(*escaped), tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        argument.push(byte);
        rest = tail;
    }
}

fn single_quoted(mut rest: &[u8], mut argument: Vec<u8>) -> Result<(Vec<u8>, &[u8]), TokenError> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(TokenError::Unbalanced),
            [b'\'', tail @ ..] => return Ok((argument, tail)),
            [b'\\', b'\'', tail @ ..] => (b'\'', tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        argument.push(byte);
        rest = tail;
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hexadecimal(digit: u8) -> u8 {
    char::from(digit).to_digit(16).expect("both digits were looked at") as u8
}

#[cfg(test)]
mod tests {
    use super::{TokenError, split};
    use proptest::prelude::*;

    fn words(line: &str) -> Vec<String> {
        split(line.as_bytes()).unwrap().into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn spaces_separate_and_quotes_join() {
        assert_eq!(words("  SET a  b\n"), ["SET", "a", "b"]);
        assert_eq!(words(r#"SET "a b" 'c d'"#), ["SET", "a b", "c d"]);
        assert_eq!(words(r#"GET """#), ["GET", ""]);
        assert_eq!(words("   "), Vec::<String>::new());
    }

    #[test]
    fn only_double_quotes_understand_escapes() {
        assert_eq!(split(br#"SET k "\x00\xff\n\"\q""#).unwrap()[2], b"\x00\xff\n\"q");
        assert_eq!(words(r"SET k 'a\nb\'c'"), ["SET", "k", r"a\nb'c"]);
        assert_eq!(words(r"SET k a\nb"), ["SET", "k", r"a\nb"]);
        assert_eq!(words(r#"SET k "\xzz""#), ["SET", "k", "xzz"]);
    }

    #[test]
    fn open_quotes_and_glued_text_are_refused() {
        assert_eq!(split(b"SET k \"a"), Err(TokenError::Unbalanced));
        assert_eq!(split(b"SET k 'a"), Err(TokenError::Unbalanced));
        assert_eq!(split(b"SET k \"a\"b"), Err(TokenError::TextAfterQuote));
    }

    proptest! {
        #[test]
        fn any_bytes_in_escaped_quotes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let escaped: Vec<String> = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            let escaped = escaped.concat();
            prop_assert_eq!(split(format!("SET \"{escaped}\"").as_bytes()).unwrap()[1].clone(), bytes);
        }

        /// Characters with a meaning, and any bytes.
        #[test]
        fn what_a_line_is_split_into_is_split_again_from_quotes(
            line in proptest::collection::vec(
                prop_oneof![proptest::sample::select(&b" \"'\\\\xn0a\n"[..]), any::<u8>()],
                0..60,
            ),
        ) {
            if let Ok(words) = split(&line) {
                let quoted = |word: &Vec<u8>| {
                    let escaped: Vec<String> = word.iter().map(|byte| format!("\\x{byte:02x}")).collect();
                    format!("\"{}\" ", escaped.concat())
                };
                let again: String = words.iter().map(quoted).collect();
                prop_assert_eq!(split(again.as_bytes()), Ok(words));
            } else {
                prop_assert!(line.contains(&b'"') || line.contains(&b'\''), "only quotes can be wrong");
            }
        }
    }
}
