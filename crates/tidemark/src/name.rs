//! Names of keys, which may be any bytes, made readable.

use unicode_width::UnicodeWidthChar;

/// Returns the name on one line, with characters escaped that do not print, move the cursor or
/// reverse the line.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if matches!(character, '"' | '\'') {
                text.push(character);
            } else {
                text.extend(character.escape_debug());
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// Returns as much of a text as fits into `columns`; `…` stands for the rest.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    let width = |character: char| character.width().unwrap_or(0);
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut clipped: String = text
        .chars()
        .take_while(|&character| {
            let fits = width(character) <= left;
            left = left.saturating_sub(width(character));
            fits
        })
        .collect();
    if columns > 0 {
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::{clipped, printable};
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn a_name_cannot_reach_beyond_its_line() {
        assert_eq!(printable("läuft: \"a\" 'b'".as_bytes()), "läuft: \"a\" 'b'");
        assert_eq!(printable(b"\x1b[2J\r\n\xff\\"), r"\u{1b}[2J\r\n\xff\\");
        assert_eq!(printable("\u{202e}\u{9b}".as_bytes()), r"\u{202e}\u{9b}");
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_column() {
        assert_eq!(clipped("counter", 7), "counter");
        assert_eq!(clipped("counter", 6), "count…");
        assert_eq!(clipped("計数器", 6), "計数器");
        assert_eq!(clipped("計数器", 4), "計…");
        assert_eq!((clipped("c", 0), clipped("", 0)), (String::new(), String::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_make_one_line_of_the_width_asked_for(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            columns in 0..50_usize,
        ) {
            let text = printable(&bytes);
            prop_assert!(!text.chars().any(char::is_control));
            prop_assert!(clipped(&text, columns).width() <= columns);
        }
    }
}
