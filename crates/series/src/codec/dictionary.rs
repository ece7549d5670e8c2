//! Few distinct values: each once, and an index for each point.

use super::packing::{Packed, bit_length, pack};
use super::words::{Reader, Words};
use crate::BLOCK_POINTS;

/// Most distinct values of a dictionary.
const DISTINCT_MAX: usize = 128;

/// Slots of the table that finds a value's index; a power of two.
const SLOTS: usize = 4 * DISTINCT_MAX;

/// Appends the values; appends nothing and returns `false` if more than [`DISTINCT_MAX`] differ.
/// O(n), two allocations.
pub(super) fn encode(values: &[u64], into: &mut Words) -> bool {
    let mut table = [0_u8; SLOTS];
    let mut distinct: Vec<u64> = Vec::with_capacity(DISTINCT_MAX);
    let mut indices = Vec::with_capacity(values.len());
    for value in values {
        let mut slot = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize;
        let index = loop {
            // A slot has an index plus one; zero is free.
            match table[slot] {
                0 if distinct.len() == DISTINCT_MAX => return false,
                0 => {
                    distinct.push(*value);
                    table[slot] = distinct.len() as u8;
                    break distinct.len() - 1;
                }
                index if distinct[usize::from(index) - 1] == *value => break usize::from(index) - 1,
                _ => slot = (slot + 1) % SLOTS,
            }
        };
        indices.push(index as u64);
    }
    into.push(distinct.len() as u64);
    into.extend(&distinct);
    pack(&indices, index_bits(distinct.len()), into);
    true
}

fn index_bits(distinct: usize) -> u32 {
    bit_length(distinct as u64 - 1)
}

/// Values that [`encode`] wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dictionary<'a> {
    distinct: &'a [u64],
    indices: Packed<'a>,
    count: usize,
}

impl<'a> Dictionary<'a> {
    /// Takes `count` values; `None` if they are not well formed.
    pub(super) fn read(from: &mut Reader<'a>, count: usize) -> Option<Self> {
        let distinct = usize::try_from(from.word()?).ok()?;
        if !(1..=DISTINCT_MAX).contains(&distinct) {
            return None;
        }
        let distinct = from.take(distinct)?;
        let indices = Packed::read(from, count, index_bits(distinct.len()))?;
        Some(Self { distinct, indices, count })
    }

    /// Returns what has a packed integer for each value.
    pub(super) fn packed(&self) -> Packed<'a> {
        self.indices
    }

    /// Returns the value at `index`. O(1).
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        self.value(self.indices.get(index))
    }

    /// Returns a value by its index, which damaged words may put beyond the last.
    #[inline]
    fn value(&self, index: u64) -> u64 {
        self.distinct[(index as usize).min(self.distinct.len() - 1)]
    }

    /// Writes all values to the front of `into`. O(count), no allocation.
    pub(super) fn decode(&self, into: &mut [u64; BLOCK_POINTS]) {
        self.indices.unpack(into);
        for slot in &mut into[..self.count] {
            *slot = self.value(*slot);
        }
    }
}
