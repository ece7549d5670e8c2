//! A series as bytes: a head, and a part for each piece, all little endian.
//!
//! ```text
//! head  floor i64 │ number of points in the head u32, late u32 │ times i64* │ values u64*, of both
//! part  0 u8 │ a block's words u64*
//!       1 u8 │ times i64* │ values u64*
//! ```

use super::columns::Columns;
use super::late::Late;
use super::piece::{Body, Piece};
use super::{Options, Series};
use crate::BLOCK_POINTS;
use crate::block::{Beside, Block, BlockError};
use crate::sample::Sample;
use crate::unreadable::served;
use std::ops::ControlFlow;

/// First byte of a part that is a block.
const SEALED: u8 = 0;

/// First byte of a part that is not compressed.
const OPEN: u8 = 1;

/// Why bytes are no series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The head is too short or too long, or its times do not rise.
    #[error("the head of a series of {0} bytes is not well formed")]
    Head(usize),
    /// A part is not well formed, or not behind the part before it.
    #[error("part {0} of a series is not well formed, or its points are not behind those before it")]
    Part(usize),
    /// A block of a part is damaged.
    #[error("block {part} of a series: {error}")]
    Block {
        /// Number of the part, from 0.
        part: usize,
        /// What is wrong with it.
        error: BlockError,
    },
}

impl<V: Sample> Series<V> {
    /// Appends the head: what is in no part. O(points in the head and late).
    pub fn encode_head(&self, into: &mut Vec<u8>) {
        let (late_times, late_values) = self.late.range(i64::MIN..=i64::MAX);
        into.extend_from_slice(&self.floor().to_le_bytes());
        into.extend_from_slice(&(self.head.len() as u32).to_le_bytes());
        into.extend_from_slice(&(self.late.len() as u32).to_le_bytes());
        put_points(self.head.times(), self.head.values(), into);
        put_points(late_times, late_values, into);
    }

    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the number of parts that stay as they are while points are appended: all but the small
    /// blocks at the end. O(1), a few steps.
    pub fn lasting_parts(&self) -> usize {
        self.pieces.len() - self.tail_pieces()
    }

    /// Returns the block that a part is; `None` if it is not compressed yet.
    pub fn block(&self, index: usize) -> Option<&Block> {
        match &self.pieces[index].body {
            Body::Sealed(block) => Some(block),
            Body::Open(_) => None,
        }
    }

    /// Returns the parts, without the head and what is late.
    pub fn into_parts(self) -> impl Iterator<Item = Part<V>> {
        self.pieces.into_iter().map(Part)
    }

    /// Appends a part. O(points). Appends nothing if it is a block that cannot be read.
    pub fn encode_part(&self, index: usize, into: &mut Vec<u8>) {
        match &self.pieces[index].body {
            Body::Sealed(block) => {
                let fetched =
                    if block.has_points() { Ok(block.clone()) } else { block.fetch(&mut Beside::default()) };
                served(fetched.map(|block| {
                    into.push(SEALED);
                    put_words(block.words(), into);
                }));
            }
            Body::Open(columns) => {
                into.push(OPEN);
                put_points(columns.times(), columns.values(), into);
            }
        }
    }

    /// Returns the series that was written by [`Series::encode_head`] and [`Series::encode_part`].
    /// O(bytes) for the blocks' checksums.
    pub fn assemble<'a>(
        options: Options,
        head: &[u8],
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, ImageError> {
        let parts = parts.into_iter().enumerate().map(|(number, part)| Part::decode(number, part));
        Self::of_parts(options, head, parts)
    }

    /// Like [`Series::assemble`], of parts that are decoded already.
    ///
    /// # Errors
    /// Also those of the parts.
    pub fn of_parts(
        options: Options,
        head: &[u8],
        parts: impl IntoIterator<Item = Result<Part<V>, ImageError>>,
    ) -> Result<Self, ImageError> {
        let mut series = Self::new(options);
        for (number, part) in parts.into_iter().enumerate() {
            let Part(piece) = part?;
            if series.pieces.back().is_some_and(|before| before.last >= piece.first) {
                return Err(ImageError::Part(number));
            }
            series.open_pieces += usize::from(matches!(piece.body, Body::Open(_)));
            series.may_lack_points |= !piece.has_points();
            series.pieces.push_back(piece);
        }
        series.decode_head(head).ok_or(ImageError::Head(head.len()))?;
        Ok(series)
    }

    /// Fills in what the head says, behind the pieces.
    fn decode_head(&mut self, head: &[u8]) -> Option<()> {
        let (floor, rest) = head.split_first_chunk()?;
        let (in_head, rest) = rest.split_first_chunk()?;
        let (in_late, rest) = rest.split_first_chunk()?;
        let in_head = u32::from_le_bytes(*in_head) as usize;
        let in_late = u32::from_le_bytes(*in_late) as usize;
        let (of_head, of_late) = rest.split_at_checked(in_head.checked_mul(16)?)?;
        if in_head > BLOCK_POINTS || of_late.len() != in_late.checked_mul(16)? {
            return None;
        }
        let end = self.pieces.back().map(|piece| piece.last);
        self.floor = i64::from_le_bytes(*floor);
        self.head = get_points(of_head)?;
        let late = get_points(of_late)?;
        let head_is_behind = end.is_none_or(|end| self.head.first_time().is_none_or(|first| end < first));
        let late_is_before = late.last().is_none_or(|(last, _)| end.is_some_and(|end| last <= end));
        if !head_is_behind || !late_is_before {
            return None;
        }
        self.late = Late::of(late);
        self.settled = self.count_stored(i64::MIN..=i64::MAX).ok()? - self.head.len() as u64;
        self.newest_settled = end.unwrap_or(i64::MIN);
        // The retention keeps the newest point, so points never hide alone.
        if !self.is_empty() && self.find_at_or_before(i64::MAX).ok()?.is_none() {
            return None;
        }
        self.expect_appends();
        Some(())
    }

    /// Calls `look` with all points, in runs at rising times, as they would be read.
    pub fn for_each_run(&self, mut look: impl FnMut(&[i64], &[V])) {
        self.read(i64::MIN..=i64::MAX, super::Direction::Forward, &mut |times: &[i64], values: &[V]| {
            look(times, values);
            ControlFlow::Continue(())
        });
    }
}

/// A part of a series, as [`Series::encode_part`] writes it or as a block.
#[derive(Debug)]
pub struct Part<V>(Piece<V>);

impl<V: Sample> Part<V> {
    /// Returns the part in `bytes`, which is the one of this number. O(bytes) for the checksum.
    pub fn decode(number: usize, bytes: &[u8]) -> Result<Self, ImageError> {
        decode_part(number, bytes).map(Self)
    }

    /// Wraps a block that [`Block::from_words`] checked for the same type of values.
    pub fn of_block(block: Block) -> Self {
        Self(Piece::sealed(block))
    }
}

/// Appends words, least significant byte first.
fn put_words(words: &[u64], into: &mut Vec<u8>) {
    into.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn put_points<V: Sample>(times: &[i64], values: &[V], into: &mut Vec<u8>) {
    into.extend(times.iter().flat_map(|time| time.to_le_bytes()));
    into.extend(values.iter().flat_map(|value| value.to_bits().to_le_bytes()));
}

/// Reads points at rising times; `None` if they are none.
fn get_points<V: Sample>(bytes: &[u8]) -> Option<Columns<V>> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || !numbers.len().is_multiple_of(2) {
        return None;
    }
    let (times, values) = numbers.split_at(numbers.len() / 2);
    let times: Vec<i64> = times.iter().map(|time| i64::from_le_bytes(*time)).collect();
    let values = values.iter().map(|value| V::from_bits(u64::from_le_bytes(*value))).collect();
    times.is_sorted_by(|before, after| before < after).then(|| Columns::from_parts(times, values))
}

fn decode_part<V: Sample>(number: usize, part: &[u8]) -> Result<Piece<V>, ImageError> {
    match part.split_first() {
        Some((&SEALED, bytes)) => {
            let (words, rest) = bytes.as_chunks::<8>();
            if !rest.is_empty() {
                return Err(ImageError::Part(number));
            }
            let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let block = Block::from_words::<V>(&words);
            block.map(Piece::sealed).map_err(|error| ImageError::Block { part: number, error })
        }
        Some((&OPEN, bytes)) => {
            let columns = get_points(bytes).filter(|columns| (1..=BLOCK_POINTS).contains(&columns.len()));
            columns.map(Piece::open).ok_or(ImageError::Part(number))
        }
        _ => Err(ImageError::Part(number)),
    }
}
