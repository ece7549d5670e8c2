//! Regular expressions of filters, with limits on what they cost.

use super::errors;
use crate::error::CommandError;
use crate::value::Pattern;
use regex::bytes::{Regex, RegexBuilder};

/// Most patterns of one command.
pub(super) const PATTERNS_MAX: usize = 16;

/// Longest pattern.
const BYTES_MAX: usize = 1024;

/// Most memory of a compiled pattern, and of what a search keeps of it.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Parses a pattern. As in Prometheus, it is anchored at both ends, and `.` fits every character.
pub(super) fn parse(text: &[u8]) -> Result<Pattern, CommandError> {
    if text.len() > BYTES_MAX {
        return Err(errors::pattern(&format!(
            "it has {} bytes, at most {BYTES_MAX} are allowed",
            text.len()
        )));
    }
    let text = std::str::from_utf8(text).map_err(|_| errors::pattern("it is not UTF-8"))?;
    // Alone first: parentheses that do not match would undo the anchors.
    compile(text)?;
    compile(&format!("^(?:{text})$")).map(Pattern::new)
}

fn compile(text: &str) -> Result<Regex, CommandError> {
    let mut builder = RegexBuilder::new(text);
    builder.dot_matches_new_line(true).size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            errors::pattern(&format!("compiled, it takes more than {COMPILED_BYTES_MAX} bytes"))
        }
        // The parser draws the pattern with a mark below; its last line has the reason.
        error => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            errors::pattern(reason.trim_start_matches("error: "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &[u8]) -> String {
        match parse(text) {
            Err(CommandError::Text(text)) => text.into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pattern_fits_whole_values_of_any_bytes() {
        for (pattern, value, expected) in [
            ("a|ab", &b"ab"[..], true),
            ("a", b"ab", false),
            ("a.c", b"a\nc", true),
            ("a$|b", b"a\n", false),
            ("", b"", true),
            (r"\d{3}", b"123", true),
            (r"(?-u:a\xff)", b"a\xff", true),
            ("a.", b"a\xff", false),
        ] {
            assert_eq!(parse(pattern.as_bytes()).unwrap().fits(value), expected, "{pattern}");
        }
    }

    #[test]
    fn bad_and_costly_patterns_are_refused_with_the_reason() {
        let begin = "ERR TSDB: wrong regular expression in a filter: ";
        for (pattern, reason) in [
            ("a(", "unclosed group"),
            ("a)|(b", "unopened group"),
            ("[", "unclosed character class"),
            ("*", "repetition operator missing expression"),
            ("((a{100}){100}){100}", "compiled, it takes more than 1048576 bytes"),
        ] {
            assert_eq!(refusal(pattern.as_bytes()), format!("{begin}{reason}"), "{pattern}");
        }
        let long = vec![b'a'; BYTES_MAX + 1];
        assert_eq!(refusal(&long), format!("{begin}it has 1025 bytes, at most 1024 are allowed"));
        assert!(parse(&long[1..]).is_ok());
        assert_eq!(refusal(b"\xff"), format!("{begin}it is not UTF-8"));
    }
}
