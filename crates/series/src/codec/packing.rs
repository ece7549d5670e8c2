//! Integers of a fixed width in bits.
//!
//! 1,024 integers are packed as `fastlanes` does ("The `FastLanes` Compression Layout", VLDB 2023),
//! from which a processor unpacks many at the same time. Fewer are packed one after the other, lowest bit
//! first. Both give random access in O(1).

use super::words::{Reader, Words};
use crate::BLOCK_POINTS;
use fastlanes::{BitPacking, FL_ORDER};

/// Integers that [`Packed::unpack_chunk`] unpacks; their bits lie in rows of [`LANES`].
pub(super) const CHUNK: usize = 128;

/// Words of a row: that many integers of a whole block lie side by side.
const LANES: usize = 16;

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
    /// At most [`BLOCK_POINTS`].
    count: u32,
}

impl<'a> Packed<'a> {
    /// No integers.
    pub(super) const NONE: Self = Self { words: &[], width: 0, count: 0 };

    /// Takes `count` integers of `width` bits; `None` if words are missing or the width is above 64.
    #[inline]
    pub(super) fn read(from: &mut Reader<'a>, count: usize, width: u32) -> Option<Self> {
        if width > 64 || count > BLOCK_POINTS {
            return None;
        }
        let words = from.take(packed_words(count, width))?;
        Some(Self { words, width, count: count as u32 })
    }

    /// Returns the number of integers.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the words.
    pub(super) fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the width in bits.
    pub(super) fn width(&self) -> u32 {
        self.width
    }

    /// Returns the integer at `index`, which is below the count. O(1).
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        assert!(index < self.len(), "index {index} of {} packed integers", self.len());
        if self.width == 0 {
            return 0;
        }
        if self.len() == BLOCK_POINTS {
            let (word, shift) = self.row_of(index / CHUNK, index % CHUNK / LANES);
            return self.joined(word + index % LANES, LANES, shift);
        }
        self.get_in_sequence(index)
    }

    /// Returns an integer of those that are packed one after the other.
    #[inline]
    fn get_in_sequence(&self, index: usize) -> u64 {
        let bit = index * self.width as usize;
        self.joined(bit / 64, 1, bit % 64)
    }

    /// Returns where the first of the integers `LANES × group` to `LANES × (group + 1)` of a chunk of
    /// a whole block begins: the word, and the bit in it. The others begin at the words behind it.
    #[inline]
    fn row_of(&self, chunk: usize, group: usize) -> (usize, usize) {
        // The order is its own inverse.
        let bit = (FL_ORDER[group] * 8 + chunk) * self.width as usize;
        (bit / 64 * LANES, bit % 64)
    }

    /// Returns the integer that begins at a bit of a word, and goes on `stride` words behind it.
    #[inline]
    fn joined(&self, word: usize, stride: usize, shift: usize) -> u64 {
        let mut value = self.words[word] >> shift;
        if shift + self.width as usize > 64 {
            value |= self.words[word + stride] << (64 - shift);
        }
        value & self.mask()
    }

    #[inline]
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// Writes the integers from `CHUNK × chunk` on, at least `count` of them, to `into`. O(`count`).
    #[inline]
    pub(super) fn unpack_chunk(&self, chunk: usize, count: usize, into: &mut [u64; CHUNK]) {
        let start = chunk * CHUNK;
        assert!(start + count <= self.len() && count <= CHUNK, "{count} integers from {start} on");
        if self.width == 0 {
            into[..count].fill(0);
        } else if self.len() == BLOCK_POINTS {
            let (rows, _) = into.as_chunks_mut::<LANES>();
            for (group, row) in rows[..count.div_ceil(LANES)].iter_mut().enumerate() {
                self.unpack_row(self.row_of(chunk, group), row);
            }
        } else {
            for (index, value) in into[..count].iter_mut().enumerate() {
                *value = self.get_in_sequence(start + index);
            }
        }
    }

    /// Returns the wrapping sum of the integers from `CHUNK × chunk` on, `count` of them. O(`count`).
    pub(super) fn sum_of_chunk(&self, chunk: usize, count: usize) -> u64 {
        let start = chunk * CHUNK;
        assert!(start + count <= self.len() && count <= CHUNK, "{count} integers from {start} on");
        let sum_of = |row: &[u64]| row.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value));
        if self.width == 0 {
            return 0;
        }
        if self.len() < BLOCK_POINTS {
            let values = (start..start + count).map(|index| self.get_in_sequence(index));
            return values.fold(0, u64::wrapping_add);
        }
        let mut sum = 0_u64;
        let mut row = [0; LANES];
        for group in 0..count / LANES {
            self.unpack_row(self.row_of(chunk, group), &mut row);
            sum = sum.wrapping_add(sum_of(&row));
        }
        if !count.is_multiple_of(LANES) {
            self.unpack_row(self.row_of(chunk, count / LANES), &mut row);
            sum = sum.wrapping_add(sum_of(&row[..count % LANES]));
        }
        sum
    }

    /// Unpacks the integers that begin at a bit of each of [`LANES`] words.
    #[inline]
    fn unpack_row(&self, (word, shift): (usize, usize), row: &mut [u64; LANES]) {
        let (rows, _) = self.words[word..].as_chunks::<LANES>();
        let mask = self.mask();
        if shift + self.width as usize > 64 {
            for (value, (low, high)) in row.iter_mut().zip(rows[0].iter().zip(&rows[1])) {
                *value = (low >> shift | high << (64 - shift)) & mask;
            }
        } else {
            for (value, low) in row.iter_mut().zip(&rows[0]) {
                *value = low >> shift & mask;
            }
        }
    }

    /// Writes all integers to the front of `into`. O(count), no allocation.
    pub(super) fn unpack(&self, into: &mut [u64; BLOCK_POINTS]) {
        if self.width == 0 {
            into[..self.len()].fill(0);
        } else if self.len() == BLOCK_POINTS {
            #[expect(
                unsafe_code,
                reason = "the library selects the function for a width without checking lengths"
            )]
            // SAFETY: `read` took 1,024 × width / 64 words, and `into` has 1,024 elements.
            unsafe {
                u64::unchecked_unpack(self.width as usize, self.words, into);
            }
        } else {
            for (index, value) in into[..self.len()].iter_mut().enumerate() {
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
            for (chunk, values) in values.chunks(CHUNK).enumerate() {
                for count in [1, values.len().div_ceil(3), values.len()] {
                    let mut unpacked = [7; CHUNK];
                    packed.unpack_chunk(chunk, count, &mut unpacked);
                    prop_assert_eq!(&unpacked[..count], &values[..count]);
                    let sum = values[..count].iter().fold(0, |sum: u64, value| sum.wrapping_add(*value));
                    prop_assert_eq!(packed.sum_of_chunk(chunk, count), sum);
                }
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
