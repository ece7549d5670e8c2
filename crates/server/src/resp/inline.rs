//! Splits an inline command, such as a person types into `nc`, into arguments.
//!
//! ```text
//! set "my key" 'it''s'      an error: text directly after a closing quote
//! set "tab\there" '\x00'    set | tab<TAB>here | \x00     escapes work in double quotes only
//! ```

/// Error for an unclosed quote, or for text directly after a closing quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnbalancedQuotes;

/// Appends the arguments of `line` to `text` and their positions in `text` to `ranges`.
///
/// A NUL byte ends the line, as it does in Redis.
pub(super) fn split(
    line: &[u8],
    text: &mut Vec<u8>,
    ranges: &mut Vec<(u32, u32)>,
) -> Result<(), UnbalancedQuotes> {
    let mut rest = Bytes(line.split(|byte| *byte == 0).next().expect("a split has a first piece"));
    loop {
        while rest.first().is_some_and(is_space) {
            rest.advance();
        }
        if rest.first().is_none() {
            return Ok(());
        }
        let start = text.len() as u32;
        argument(&mut rest, text)?;
        ranges.push((start, text.len() as u32));
    }
}

/// Unread bytes.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn first(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn advance(&mut self) {
        self.0 = &self.0[1..];
    }

    fn next(&mut self) -> Option<u8> {
        let first = self.first()?;
        self.advance();
        Some(first)
    }
}

/// Parses one argument. A quote may start in its middle (`a"b c"` is `ab c`); closing it ends it.
fn argument(rest: &mut Bytes<'_>, text: &mut Vec<u8>) -> Result<(), UnbalancedQuotes> {
    while let Some(byte) = rest.next() {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => return Ok(()),
            b'"' => return double_quoted(rest, text),
            b'\'' => return single_quoted(rest, text),
            other => text.push(other),
        }
    }
    Ok(())
}

fn double_quoted(rest: &mut Bytes<'_>, text: &mut Vec<u8>) -> Result<(), UnbalancedQuotes> {
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return end_of_quoted(rest),
            b'\\' => text.push(escaped(rest)?),
            other => text.push(other),
        }
    }
    Err(UnbalancedQuotes)
}

fn single_quoted(rest: &mut Bytes<'_>, text: &mut Vec<u8>) -> Result<(), UnbalancedQuotes> {
    while let Some(byte) = rest.next() {
        match byte {
            b'\'' => return end_of_quoted(rest),
            b'\\' if rest.first() == Some(b'\'') => {
                rest.advance();
                text.push(b'\'');
            }
            other => text.push(other),
        }
    }
    Err(UnbalancedQuotes)
}

/// Parses an escape after a backslash in double quotes: `xHH`, one of `nrtba`, or a literal byte.
fn escaped(rest: &mut Bytes<'_>) -> Result<u8, UnbalancedQuotes> {
    if let [b'x', high, low, ..] = rest.0
        && let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low))
    {
        rest.0 = &rest.0[3..];
        return Ok(high * 16 + low);
    }
    match rest.next() {
        None => Err(UnbalancedQuotes),
        Some(b'n') => Ok(b'\n'),
        Some(b'r') => Ok(b'\r'),
        Some(b't') => Ok(b'\t'),
        Some(b'b') => Ok(8),
        Some(b'a') => Ok(7),
        Some(other) => Ok(other),
    }
}

fn end_of_quoted(rest: &Bytes<'_>) -> Result<(), UnbalancedQuotes> {
    match rest.first() {
        Some(byte) if !is_space(byte) => Err(UnbalancedQuotes),
        _ => Ok(()),
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
        let (mut text, mut ranges) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut text, &mut ranges)?;
        Ok(ranges.iter().map(|(start, end)| text[*start as usize..*end as usize].to_vec()).collect())
    }

    fn words(words: &[&str]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
        Ok(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    #[test]
    fn words_are_separated_by_any_white_space() {
        assert_eq!(arguments("  set\tkey   value "), words(&["set", "key", "value"]));
        assert_eq!(arguments(""), words(&[]));
        assert_eq!(arguments("   "), words(&[]));
    }

    #[test]
    fn double_quotes_know_escapes_and_single_quotes_only_their_own() {
        assert_eq!(arguments(r#"set "a b" 'c d'"#), words(&["set", "a b", "c d"]));
        assert_eq!(arguments(r#""\x41\n\r\t\b\a\q\"" '\n\''"#), words(&["A\n\r\t\x08\x07q\"", "\\n'"]));
        assert_eq!(arguments(r#""\xzz""#), words(&["xzz"]));
        assert_eq!(arguments(r#""""#), words(&[""]));
    }

    #[test]
    fn a_quote_may_begin_within_a_word_but_must_end_it() {
        assert_eq!(arguments(r#"a"b c""#), words(&["ab c"]));
        assert_eq!(arguments(r#""a"b"#), Err(UnbalancedQuotes));
        assert_eq!(arguments(r"'a'b"), Err(UnbalancedQuotes));
    }

    #[test]
    fn an_open_quote_is_an_error() {
        for line in [r#"set "a"#, "set 'a", r#"set "a\"#, r#"set "a\""#, r"set 'a\'"] {
            assert_eq!(arguments(line), Err(UnbalancedQuotes), "{line}");
        }
    }

    #[test]
    fn a_nul_ends_the_line() {
        assert_eq!(arguments("get a\0b c"), words(&["get", "a"]));
        assert_eq!(arguments("get \"a\0b\""), Err(UnbalancedQuotes));
    }
}
