//! Sorting of answers in hash-table order, so that their bytes depend only on their elements.

use crate::command::parse;
use crate::watch::watchable::Watchable;
use crate::wire::encoded;

/// Sorts the elements of an encoded answer by content, if `how` says that their order is arbitrary.
/// O(n log n) for n elements. Errors are left unchanged.
pub(super) fn bring_into_order(answer: &mut [u8], how: Watchable) {
    match how {
        Watchable::Ordered | Watchable::Rows { .. } | Watchable::RowsOfSeveral { .. } => {}
        Watchable::Unordered(together) => sort(answer, 0, together),
        Watchable::Iterated(together) => {
            // An array of two: the next cursor, and the elements.
            let Some(list) = encoded::elements(answer, 0).and_then(|elements| elements.get(1).copied())
            else {
                return;
            };
            sort(answer, list.0, together);
        }
    }
}

/// Sorts the elements of the answer at `start`, in groups of `together`.
fn sort(answer: &mut [u8], start: usize, together: usize) {
    let Some(elements) = encoded::elements(answer, start) else { return };
    let (Some(first), Some(last)) = (elements.first(), elements.last()) else { return };
    let (from, to) = (first.0, last.1);
    let mut units: Vec<&[u8]> =
        elements.chunks(together).map(|unit| &answer[unit[0].0..unit[unit.len() - 1].1]).collect();
    if units.is_sorted_by_key(|unit| content(unit)) {
        return;
    }
    units.sort_unstable_by_key(|unit| content(unit));
    let sorted = units.concat();
    answer[from..to].copy_from_slice(&sorted);
}

/// Returns the sort key of a group: its first element; for a string, its bytes alone. The length
/// before them must not count, nor the CRLF after them, which is greater than some bytes that may
/// continue a longer string.
pub(super) fn content(unit: &[u8]) -> &[u8] {
    if unit.first() != Some(&b'$') {
        return unit;
    }
    let line_end = unit.windows(2).position(|pair| pair == b"\r\n").unwrap_or(unit.len());
    let length = unit
        .get(1..line_end)
        .and_then(parse::canonical_integer)
        .and_then(|length| usize::try_from(length).ok());
    let start = line_end.saturating_add(2);
    let string = length.and_then(|length| unit.get(start..start.saturating_add(length)));
    string.unwrap_or(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(answer: &str, how: Watchable) -> String {
        let mut bytes = answer.replace(' ', "\r\n").into_bytes();
        bring_into_order(&mut bytes, how);
        String::from_utf8(bytes).expect("text").replace("\r\n", " ")
    }

    #[test]
    fn elements_come_in_the_order_of_their_bytes() {
        assert_eq!(ordered("~3 $1 c $1 a $1 b ", Watchable::Unordered(1)), "~3 $1 a $1 b $1 c ");
        assert_eq!(ordered("%2 $1 c $1 1 $1 a $1 2 ", Watchable::Unordered(2)), "%2 $1 a $1 2 $1 c $1 1 ");
        assert_eq!(ordered("*4 $1 c $1 1 $1 a $1 2 ", Watchable::Unordered(2)), "*4 $1 a $1 2 $1 c $1 1 ");
        assert_eq!(ordered("*2 $1 0 *2 $1 b $1 a ", Watchable::Iterated(1)), "*2 $1 0 *2 $1 a $1 b ");
        assert_eq!(
            ordered("~3 $1 b $2 aa $10 cccccccccc ", Watchable::Unordered(1)),
            "~3 $2 aa $1 b $10 cccccccccc "
        );
        assert_eq!(
            ordered("~3 $2 a\u{e} $2 a\u{0} $1 a ", Watchable::Unordered(1)),
            "~3 $1 a $2 a\u{0} $2 a\u{e} ",
            "what begins another comes before it"
        );
    }

    #[test]
    fn what_has_an_order_or_no_elements_stays() {
        assert_eq!(ordered("*2 $1 b $1 a ", Watchable::Ordered), "*2 $1 b $1 a ");
        for answer in ["-WRONGTYPE ", "*0 ", "_ ", "~0 ", "*-1 "] {
            assert_eq!(ordered(answer, Watchable::Unordered(1)), answer);
            assert_eq!(ordered(answer, Watchable::Iterated(2)), answer);
        }
    }
}
