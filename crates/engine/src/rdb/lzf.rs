//! LZF, the compression of strings in Redis's format.
//!
//! ```text
//! 000nnnnn                       n + 1 literal bytes follow
//! nnnooooo oooooooo              n + 2 bytes from o + 1 bytes before the end, n below 7
//! 111ooooo nnnnnnnn oooooooo     n + 9 bytes from there
//! ```

/// Longest run of literals. Bytes.
const LITERALS_MAX: usize = 32;
/// Shortest repetition that is worth its two bytes.
const MATCH_MIN: usize = 3;
/// Longest repetition. Bytes.
const MATCH_MAX: usize = 264;
/// Farthest distance of a repetition. Bytes.
const DISTANCE_MAX: usize = 1 << 13;
/// Entries of the table of places.
const TABLE: usize = 1 << 14;

/// Decompresses exactly `len` bytes; `None` if the input gives fewer or more, or refers to what is not
/// there. Memory grows with what is decompressed, whatever `len` says.
pub(super) fn decompress(mut input: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(len.min(input.len()));
    while let Some((&control, rest)) = input.split_first() {
        let control = usize::from(control);
        if control < LITERALS_MAX {
            let (literals, rest) = rest.split_at_checked(control + 1)?;
            output.extend_from_slice(literals);
            input = rest;
        } else {
            let (more, rest) = match (control >> 5, rest) {
                (7, [more, rest @ ..]) => (7 + usize::from(*more), rest),
                (7, []) => return None,
                (short, rest) => (short, rest),
            };
            let (&low, rest) = rest.split_first()?;
            let distance = ((control & 0x1f) << 8 | usize::from(low)) + 1;
            let start = output.len().checked_sub(distance)?;
            // What is repeated may include what it adds.
            if more + 2 <= distance {
                output.extend_from_within(start..start + more + 2);
            } else {
                (start..start + more + 2).for_each(|at| output.push(output[at]));
            }
            input = rest;
        }
        if output.len() > len {
            return None;
        }
    }
    (output.len() == len).then_some(output)
}

/// Compresses bytes; `None` if that saves fewer than four bytes. O(bytes).
pub(super) fn compress(input: &[u8]) -> Option<Vec<u8>> {
    let most = input.len().checked_sub(4)?;
    let mut output = Vec::with_capacity(most.min(4096));
    // Places behind which three bytes with this hash follow, plus one.
    let mut places = vec![0_u32; TABLE];
    let (mut at, mut literals) = (0, 0);
    while let Some(&[one, two, three]) = input[at..].first_chunk::<MATCH_MIN>() {
        let place = &mut places[hash(one, two, three)];
        let before = (*place as usize).checked_sub(1);
        *place = u32::try_from(at + 1).ok()?;
        let earlier = before
            .filter(|&before| at - before <= DISTANCE_MAX && input[before..].starts_with(&[one, two, three]));
        let Some(earlier) = earlier else {
            at += 1;
            continue;
        };
        let len =
            input[at..].iter().zip(&input[earlier..]).take(MATCH_MAX).take_while(|(a, b)| a == b).count();
        put_literals(&mut output, &input[literals..at]);
        put_match(&mut output, at - earlier - 1, len - 2);
        at += len;
        literals = at;
        if output.len() > most {
            return None;
        }
    }
    put_literals(&mut output, &input[literals..]);
    (output.len() <= most).then_some(output)
}

fn hash(one: u8, two: u8, three: u8) -> usize {
    let bytes = u32::from_le_bytes([one, two, three, 0]);
    (bytes.wrapping_mul(0x9e37_79b1) >> (32 - TABLE.ilog2())) as usize
}

fn put_literals(output: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERALS_MAX) {
        output.push(run.len() as u8 - 1);
        output.extend_from_slice(run);
    }
}

/// Appends a repetition, of which `distance` and `len` are as the format has them.
fn put_match(output: &mut Vec<u8>, distance: usize, len: usize) {
    let [high, low] = (distance as u16).to_be_bytes();
    if len < 7 {
        output.push((len as u8) << 5 | high);
    } else {
        output.extend_from_slice(&[7 << 5 | high, (len - 7) as u8]);
    }
    output.push(low);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes with repetitions, near and far.
    fn repetitive() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            (any::<u8>(), 0..600_usize).prop_map(|(byte, count)| vec![byte; count]),
            (0..9000_usize).prop_map(|count| (0..count).map(|at| (at % 251) as u8).collect()),
        ];
        proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_compressed_decompresses(bytes in repetitive()) {
            if let Some(compressed) = compress(&bytes) {
                prop_assert!(compressed.len() + 4 <= bytes.len());
                prop_assert_eq!(decompress(&compressed, bytes.len()), Some(bytes.clone()));
                prop_assert_eq!(decompress(&compressed, bytes.len() + 1), None);
                prop_assert_eq!(decompress(&compressed, bytes.len() - 1), None);
            }
        }

        #[test]
        fn any_bytes_decompress_or_are_refused(
            bytes in proptest::collection::vec(prop_oneof![0..40_u8, any::<u8>()], 0..60),
            len in 0..2000_usize,
        ) {
            if let Some(output) = decompress(&bytes, len) {
                prop_assert_eq!(output.len(), len);
            }
        }
    }

    #[test]
    fn repetitions_are_compressed() {
        let bytes = b"abc".repeat(1000);
        assert!(compress(&bytes).is_some_and(|compressed| compressed.len() < 60));
        assert_eq!(compress(b"abc"), None);
        assert_eq!(compress(b"every letter: pqz"), None);
    }

    #[test]
    fn a_claim_reserves_nothing() {
        assert_eq!(decompress(&[0, b'a'], usize::MAX), None);
    }

    #[test]
    fn a_repetition_before_the_start_is_refused() {
        assert_eq!(decompress(&[0, b'a', 0x20, 0], 4), Some(b"aaaa".to_vec()));
        assert_eq!(decompress(&[0, b'a', 0x20, 1], 4), None);
        assert_eq!(decompress(&[0x20, 0], 3), None);
    }
}
