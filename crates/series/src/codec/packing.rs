//! Integers of a fixed width in bits.
//!
//! 1,024 integers are packed as `fastlanes` does ("The `FastLanes` Compression Layout", VLDB 2023),
//! from which a processor unpacks many at the same time. Fewer are packed one after the other, lowest bit
//! first. Both give random access in O(1).

use super::words::{Reader, Words};
use crate::BLOCK_POINTS;
use fastlanes::BitPacking;

/// Returns the number of words that `count` integers of `width` bits occupy.
pub(super) fn packed_words(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(64)
}

/// Returns the number of bits that `value` needs.
#[inline]
pub(super) fn bit_length(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Appends `values`, each of which has at most `width` bits.
pub(super) fn pack(values: &[u64], width: u32, into: &mut Words) {
    debug_assert!(values.iter().all(|value| bit_length(*value) <= width), "{width} bits are too few");
    let packed = into.extend_zeroed(packed_words(values.len(), width));
    if values.len() == BLOCK_POINTS {
        #[expect(
            unsafe_code,
            reason = "the library selects the function for a width without checking lengths"
        )]
        // SAFETY: `values` has 1,024 elements, and `packed` 1,024 × width / 64.
        unsafe {
            u64::unchecked_pack(width as usize, values, packed);
        }
        return;
    }
    if width == 0 {
        return;
    }
    let mut bit = 0_usize;
    for value in values {
        let (word, shift) = (bit / 64, bit % 64);
        packed[word] |= value << shift;
        if shift + width as usize > 64 {
            packed[word + 1] |= value >> (64 - shift);
        }
        bit += width as usize;
    }
}

/// Integers that [`pack`] wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed<'a> {
    words: &'a [u64],
    width: u32,
    count: usize,
}

impl<'a> Packed<'a> {
    /// Takes `count` integers of `width` bits; `None` if words are missing or the width is above 64.
    pub(super) fn read(from: &mut Reader<'a>, count: usize, width: u32) -> Option<Self> {
        if width > 64 || count > BLOCK_POINTS {
            return None;
        }
        let words = from.take(packed_words(count, width))?;
        Some(Self { words, width, count })
    }

    /// Returns the integer at `index`, which is below the count. O(1).
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        assert!(index < self.count, "index {index} of {} packed integers", self.count);
        if self.width == 0 {
            return 0;
        }
        if self.count == BLOCK_POINTS {
            #[expect(
                unsafe_code,
                reason = "the library selects the function for a width without checking lengths"
            )]
            // SAFETY: `read` took 1,024 × width / 64 words, and the index is below 1,024.
            return unsafe { u64::unchecked_unpack_single(self.width as usize, self.words, index) };
        }
        self.get_in_sequence(index)
    }

    /// Returns an integer of those that are packed one after the other.
    #[inline]
    fn get_in_sequence(&self, index: usize) -> u64 {
        let bit = index * self.width as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let mut value = self.words[word] >> shift;
        if shift + self.width as usize > 64 {
            value |= self.words[word + 1] << (64 - shift);
        }
        value & (u64::MAX >> (64 - self.width))
    }

    /// Writes all integers to the front of `into`. O(count), no allocation.
    pub(super) fn unpack(&self, into: &mut [u64; BLOCK_POINTS]) {
        if self.width == 0 {
            into[..self.count].fill(0);
        } else if self.count == BLOCK_POINTS {
            #[expect(
                unsafe_code,
                reason = "the library selects the function for a width without checking lengths"
            )]
            // SAFETY: `read` took 1,024 × width / 64 words, and `into` has 1,024 elements.
            unsafe {
                u64::unchecked_unpack(self.width as usize, self.words, into);
            }
        } else {
            for (index, value) in into[..self.count].iter_mut().enumerate() {
                *value = self.get_in_sequence(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
        #[test]
        fn packed_integers_are_read_back_one_by_one_and_all_together(
            width in 0_u32..=64,
            values in prop_oneof![
                proptest::collection::vec(any::<u64>(), 0..300),
                proptest::collection::vec(any::<u64>(), BLOCK_POINTS..=BLOCK_POINTS),
            ],
        ) {
            let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
            let values: Vec<u64> = values.iter().map(|value| value & mask).collect();
            let mut words = Words::default();
            pack(&values, width, &mut words);
            let words = words.into_vec();
            let mut reader = Reader::new(&words);
            let packed = Packed::read(&mut reader, values.len(), width).unwrap();
            prop_assert!(reader.is_empty());
            let mut unpacked = [7; BLOCK_POINTS];
            packed.unpack(&mut unpacked);
            prop_assert_eq!(&unpacked[..values.len()], &values[..]);
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(packed.get(index), *value);
            }
        }
    }

    #[test]
    fn missing_words_and_impossible_widths_are_refused() {
        let words = [0; 15];
        assert!(Packed::read(&mut Reader::new(&words), BLOCK_POINTS, 1).is_none());
        assert!(Packed::read(&mut Reader::new(&words), 10, 65).is_none());
        assert!(Packed::read(&mut Reader::new(&words), BLOCK_POINTS + 1, 0).is_none());
        assert!(Packed::read(&mut Reader::new(&words), 960, 1).is_some());
    }
}
