//! The headers of blocks, without what follows from their times and values.
//!
//! ```text
//! missing points varint │ flags varint │ index of the lowest value varint, of the highest varint │ sum
//! flags  whether the sum is known u1, number of NaNs above it
//! sum    0 u8 │ integer varint, its sign lowest
//!        1 u8 │ two parts u64 u64
//! ```

use super::bytes::{Bytes, put_varint};
use crate::BLOCK_POINTS;
use crate::block::BlockParts;
use crate::codec::{Integers, Reader, Values, unzigzag, zigzag};

const SUM_IS_INTEGER: u8 = 0;
const SUM_IN_PARTS: u8 = 1;

/// Largest magnitude of a sum that is stored as an integer.
const INTEGER_SUM_MAX: f64 = (1_u64 << 53) as f64;

/// What a block's header has that does not follow from its contents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    count: usize,
    nans: u64,
    sum: Option<[u64; 2]>,
    /// Index of the first point with the lowest value, and with the highest.
    lowest: usize,
    highest: usize,
}

impl Head {
    /// Returns the head of a block; `None` if its contents do not have its lowest and highest value.
    pub(super) fn of(block: &BlockParts<'_>) -> Option<Self> {
        let mut values = [0; BLOCK_POINTS];
        Values::read(&mut Reader::new(block.values), block.count)?.decode(&mut values);
        let index_of = |bits: u64| values[..block.count].iter().position(|value| *value == bits);
        Some(Self {
            count: block.count,
            nans: block.nans,
            sum: block.sum,
            lowest: index_of(block.lowest)?,
            highest: index_of(block.highest)?,
        })
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, (BLOCK_POINTS - self.count) as u64);
        put_varint(into, self.nans << 1 | u64::from(self.sum.is_some()));
        put_varint(into, self.lowest as u64);
        put_varint(into, self.highest as u64);
        let Some([high, low]) = self.sum else { return };
        let number = f64::from_bits(high);
        let integer = number as i64;
        if low == 0 && number.abs() <= INTEGER_SUM_MAX && (integer as f64).to_bits() == high {
            into.push(SUM_IS_INTEGER);
            put_varint(into, zigzag(integer));
        } else {
            into.push(SUM_IN_PARTS);
            into.extend(high.to_le_bytes());
            into.extend(low.to_le_bytes());
        }
    }

    /// Takes what [`Head::encode`] wrote; `None` if it is none.
    pub(super) fn read(from: &mut Bytes<'_>) -> Option<Self> {
        let count = BLOCK_POINTS - from.length(BLOCK_POINTS - 1)?;
        let flags = from.length(BLOCK_POINTS << 1 | 1)?;
        let (lowest, highest) = (from.length(count - 1)?, from.length(count - 1)?);
        let sum = if flags & 1 == 0 {
            None
        } else {
            match from.u8()? {
                SUM_IS_INTEGER => Some([(unzigzag(from.varint()?) as f64).to_bits(), 0]),
                SUM_IN_PARTS => Some([from.word()?, from.word()?]),
                _ => return None,
            }
        };
        Some(Self { count, nans: (flags >> 1) as u64, sum, lowest, highest })
    }

    /// Returns the words of the block with these times and values; `None` if they are not well formed.
    pub(super) fn join(&self, code: u8, times: &[u64], values: &[u64]) -> Option<Vec<u64>> {
        let integers = Integers::read(&mut Reader::new(times), self.count)?;
        let read = Values::read(&mut Reader::new(values), self.count)?;
        if !integers.is_well_formed() || !read.is_well_formed() {
            return None;
        }
        let mut bits = [0; BLOCK_POINTS];
        read.decode(&mut bits);
        let parts = BlockParts {
            code,
            count: self.count,
            first_time: integers.get(0),
            last_time: integers.get(self.count - 1),
            nans: self.nans,
            sum: self.sum,
            lowest: bits[self.lowest],
            highest: bits[self.highest],
            first: bits[0],
            last: bits[self.count - 1],
            times,
            values,
        };
        Some(parts.words())
    }
}
