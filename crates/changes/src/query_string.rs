//! Parses the query of a URL (the part after `?`); values may be any bytes.

use percent_encoding::percent_decode_str;

/// Returns the names and values in order, unescaped. Invalid escapes are kept as they are.
pub fn parse(query: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (unescape(name), unescape(value))
        })
        .collect()
}

/// Decodes percent escapes, and `+` as a space.
fn unescape(text: &str) -> Vec<u8> {
    percent_decode_str(&text.replace('+', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_bytes_and_plus_is_a_space() {
        let parsed = parse("command=GET&arg=a%20b+c&arg=%ff%FF&&empty=&alone&sum=1=2");
        let expected: Vec<(&[u8], &[u8])> = vec![
            (b"command", b"GET"),
            (b"arg", b"a b c"),
            (b"arg", b"\xff\xff"),
            (b"empty", b""),
            (b"alone", b""),
            (b"sum", b"1=2"),
        ];
        let parsed: Vec<(&[u8], &[u8])> = parsed.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(parsed, expected);
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        assert_eq!(parse("a=%&b=%4&c=%zz%+1"), parse("a=%25&b=%254&c=%25zz%25%201"));
        assert!(parse("").is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_survive_escaping(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let escaped: Vec<String> = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(parse(&format!("v={}", escaped.concat())), vec![(b"v".to_vec(), bytes)]);
        }

        #[test]
        fn any_text_is_parsed(text in ".*") {
            parse(&text);
        }
    }
}
