//! Navigation in encoded replies, without decoding their content.
//!
//! The bytes may come from anywhere: lengths and counts in them are not trusted.

use crate::command::parse;

/// Returns the byte range of each element of the array, set, map or push that begins at `start`;
/// keys and values of a map alternate. `None` if no aggregate begins there or it is incomplete.
/// O(bytes), without recursion.
///
/// ```
/// use tidemark_engine::encoded;
/// assert_eq!(encoded::elements(b"*2\r\n:1\r\n$1\r\na\r\n", 0), Some(vec![(4, 8), (8, 15)]));
/// assert_eq!(encoded::elements(b"*-1\r\n", 0), None);
/// assert_eq!(encoded::elements(b"+OK\r\n", 0), None);
/// ```
pub fn elements(bytes: &[u8], start: usize) -> Option<Vec<(usize, usize)>> {
    let (kind, number, mut position) = head(bytes, start)?;
    let count = children(kind, number?)?;
    let mut elements = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        let end = skip(bytes, position)?;
        elements.push((position, end));
        position = end;
    }
    Some(elements)
}

/// Returns the offset after the reply that begins at `position`; `None` if it is incomplete.
/// O(bytes), without recursion.
pub fn skip(bytes: &[u8], position: usize) -> Option<usize> {
    // Replies still to skip. An aggregate adds its elements instead of a recursion.
    let (mut position, mut missing) = (position, 1_usize);
    while missing > 0 {
        let (kind, number, line_end) = head(bytes, position)?;
        missing -= 1;
        position = line_end;
        if let Some(number) = number {
            if matches!(kind, b'$' | b'=') {
                // The content and its CRLF. A null has a negative length and no content.
                let length = usize::try_from(number).ok().map(|length| length.saturating_add(2));
                position = position.saturating_add(length.unwrap_or(0));
            } else if let Some(count) = children(kind, number) {
                missing = missing.saturating_add(count);
            }
        }
    }
    // The content of the last string may be incomplete.
    (position <= bytes.len()).then_some(position)
}

/// Returns the number of elements that follow a head; `None` if it does not begin an aggregate, or
/// begins a null one.
fn children(kind: u8, number: i64) -> Option<usize> {
    let count = usize::try_from(number).ok()?;
    match kind {
        b'*' | b'~' | b'>' => Some(count),
        b'%' => count.checked_mul(2),
        _ => None,
    }
}

/// Reads the first line of a reply. Returns its first byte, the number after that byte, if it is
/// one, and the offset after the line; `None` if the line is incomplete.
fn head(bytes: &[u8], position: usize) -> Option<(u8, Option<i64>, usize)> {
    let kind = *bytes.get(position)?;
    let line_end = position + bytes.get(position..)?.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let number = bytes.get(position + 1..line_end - 2).and_then(parse::canonical_integer);
    Some((kind, number, line_end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn elements_of_an_aggregate_are_separated() {
        let answers = b"*5\r\n+OK\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n*-1\r\n%1\r\n$-1\r\n,1.5\r\n_\r\n";
        let lengths: Option<Vec<usize>> =
            elements(answers, 0).map(|found| found.iter().map(|(from, to)| to - from).collect());
        assert_eq!(lengths, Some(vec![5, 9, 13, 15, 3]));
        assert_eq!(elements(b"*0\r\n", 0), Some(vec![]));
        for other in
            [b"*-1\r\n".as_slice(), b"-MISCONF no\r\n", b"_\r\n", b"", b"*1\r\n", b"*1\r\n$5\r\nab\r\n"]
        {
            assert_eq!(elements(other, 0), None, "{}", String::from_utf8_lossy(other));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn elements_of_arbitrary_bytes_are_within_them(
            bytes in proptest::collection::vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'9'), Just(b'\r'), Just(b'\n'), any::<u8>()], 0..60),
            start in 0_usize..70,
        ) {
            for (from, to) in elements(&bytes, start).unwrap_or_default() {
                prop_assert!(from < to && to <= bytes.len());
            }
        }
    }
}
