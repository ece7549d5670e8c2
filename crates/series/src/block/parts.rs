//! A block's words by what they mean.

use super::summary::{NAN_BITS, SUM_KNOWN};
use super::{Block, HEADER_WORDS, MAGIC, VERSION, checksum};

/// What the words of a block say, but its checksum and its number of words, which follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockParts<'a> {
    /// Code of the [`Kind`](crate::Kind).
    pub code: u8,
    pub count: usize,
    pub first_time: i64,
    pub last_time: i64,
    pub nans: u64,
    /// Both parts of the sum, if it is known, as bits like the values.
    pub sum: Option<[u64; 2]>,
    pub lowest: u64,
    pub highest: u64,
    pub first: u64,
    pub last: u64,
    pub times: &'a [u64],
    pub values: &'a [u64],
}

impl BlockParts<'_> {
    /// Returns the words of the block.
    pub(crate) fn words(&self) -> Vec<u64> {
        let flags = self.nans | if self.sum.is_some() { SUM_KNOWN } else { 0 };
        let mut words = Vec::with_capacity(HEADER_WORDS + self.times.len() + self.values.len());
        words.extend([
            u64::from(MAGIC)
                | u64::from(VERSION) << 32
                | u64::from(self.code) << 40
                | (self.count as u64) << 48,
            0,
            self.first_time.cast_unsigned(),
            self.last_time.cast_unsigned(),
            self.times.len() as u64 | flags << 32,
        ]);
        words.extend(self.sum.unwrap_or_default());
        words.extend([self.lowest, self.highest, self.first, self.last]);
        words.extend_from_slice(self.times);
        words.extend_from_slice(self.values);
        words[1] = u64::from(checksum(&words)) | (words.len() as u64) << 32;
        words
    }
}

impl Block {
    /// Returns what the words say; `None` if the points are not in memory.
    pub(crate) fn parts(&self) -> Option<BlockParts<'_>> {
        let words = self.words();
        let (times, values) = self.split().filter(|_| self.has_points())?;
        let flags = words[4] >> 32;
        Some(BlockParts {
            code: (words[0] >> 40) as u8,
            count: self.len(),
            first_time: self.first_time(),
            last_time: self.last_time(),
            nans: flags & NAN_BITS,
            sum: (flags & SUM_KNOWN != 0).then_some([words[5], words[6]]),
            lowest: words[7],
            highest: words[8],
            first: words[9],
            last: words[10],
            times,
            values,
        })
    }
}
