//! CRC-32C (Castagnoli), the checksum of frames.

/// Longest input that is processed word by word. The library aligns longer inputs and computes
/// three parts in parallel; that is faster, but costs some 150 instructions up front, and most
/// frames are short.
#[cfg(target_arch = "x86_64")]
const SHORT_BYTES: usize = 256;

/// Continues the checksum `before` over `bytes`; a new checksum starts from 0. O(bytes), no
/// allocation.
#[inline]
pub(crate) fn append(before: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() <= SHORT_BYTES && std::arch::is_x86_feature_detected!("sse4.2") {
        #[expect(unsafe_code, reason = "the compiler cannot see that the processor has the instruction")]
        // SAFETY: the processor has SSE 4.2, as just checked.
        return unsafe { short(before, bytes) };
    }
    crc32c::crc32c_append(before, bytes)
}

/// Returns the start value from which `bytes` lead to the checksum `after`: the inverse of
/// [`append`]. O(bits).
pub(crate) fn before(after: u32, bytes: &[u8]) -> u32 {
    /// The polynomial, lowest power first.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let undo_bit = |crc: u32| {
        // A right shift that shifted out a 1 added the polynomial, whose highest bit shows it.
        if crc >> 31 == 1 { (crc ^ POLYNOMIAL) << 1 | 1 } else { crc << 1 }
    };
    let undo_byte = |crc: u32, byte: &u8| (0..8).fold(crc, |crc, _| undo_bit(crc)) ^ u32::from(*byte);
    !bytes.iter().rev().fold(!after, undo_byte)
}

/// Computes the checksum with the processor's own instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn short(before: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks::<8>();
    let over_words = |crc, word: &[u8; 8]| _mm_crc32_u64(crc, u64::from_le_bytes(*word));
    let mut crc = words.iter().fold(u64::from(!before), over_words) as u32;
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        crc = _mm_crc32_u32(crc, u32::from_le_bytes(*half));
    }
    for byte in rest {
        crc = _mm_crc32_u8(crc, *byte);
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // RFC 3720, appendix B.4, and the check value of the CRC catalogue.
        assert_eq!(append(0, b"123456789"), 0xe306_9283);
        assert_eq!(append(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(append(0, &[0xff; 32]), 0x62a8_ab43);
        assert_eq!(append(0, b""), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn short_and_long_inputs_have_the_checksum_of_the_library(
            before in any::<u32>(),
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            cut in 0_usize..600,
        ) {
            prop_assert_eq!(append(before, &bytes), crc32c::crc32c_append(before, &bytes));
            let (front, back) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(append(append(before, front), back), append(before, &bytes));
            prop_assert_eq!(super::before(append(before, &bytes), &bytes), before);
        }
    }
}
