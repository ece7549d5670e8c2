//! Columns of some blocks as bytes that a general compressor makes small.
//!
//! Packed integers are unpacked to whole bytes, first the lowest byte of all of a section, then the next:
//! what compresses bytes sees numbers then, and not their bits at changing places. All else stays.
//!
//! ```text
//! words varint │ sections u8 │ (words behind the section before varint │ count varint │ width u8)*   of each block
//! other words u64*                                                                                   of each block
//! lowest bytes │ next bytes │ …                                               of each section of each block
//! ```

use super::bytes::{Bytes, put_varint, put_words};
use crate::BLOCK_POINTS;
use crate::block::WORDS_MAX;
use crate::codec::{Section, Words};

/// Most sections of a column.
const SECTIONS_MAX: usize = 2;

/// Most bytes of a block's column: its words, and a section that takes 8 bytes for each bit.
pub(super) const BYTES_MAX: usize = 8 * WORDS_MAX + SECTIONS_MAX * 8 * BLOCK_POINTS;

/// The words of one block's column, and its sections.
pub(super) struct Column<'a> {
    pub words: &'a [u64],
    pub sections: Vec<Section>,
}

/// Appends columns.
pub(super) fn encode(columns: &[Column<'_>], into: &mut Vec<u8>) {
    for column in columns {
        put_varint(into, column.words.len() as u64);
        into.push(column.sections.len() as u8);
        let mut end = 0;
        for section in &column.sections {
            put_varint(into, (section.start - end) as u64);
            put_varint(into, section.count as u64);
            into.push(section.width as u8);
            end = section.end();
        }
    }
    for column in columns {
        let mut end = 0;
        for section in &column.sections {
            put_words(&column.words[end..section.start], into);
            end = section.end();
        }
        put_words(&column.words[end..], into);
    }
    let mut integers = [0; BLOCK_POINTS];
    for column in columns {
        for section in &column.sections {
            section.unpack(column.words, &mut integers);
            for byte in 0..bytes_of_integer(section) {
                into.extend(integers[..section.count].iter().map(|integer| (integer >> (8 * byte)) as u8));
            }
        }
    }
}

fn bytes_of_integer(section: &Section) -> usize {
    section.width.div_ceil(8) as usize
}

/// The columns of some blocks, as [`encode`] wrote them.
#[derive(Debug)]
pub(super) struct Columns<'a>(Vec<StoredColumn<'a>>);

#[derive(Debug)]
struct StoredColumn<'a> {
    /// Number of words.
    words: usize,
    sections: Vec<Section>,
    /// The words that are in no section.
    others: &'a [[u8; 8]],
    /// The bytes of each section.
    integers: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    /// Takes the columns of `count` blocks; `None` if they are not well formed.
    pub(super) fn read(from: &mut Bytes<'a>, count: usize) -> Option<Self> {
        let mut columns: Vec<StoredColumn<'a>> =
            (0..count).map(|_| StoredColumn::read_shape(from)).collect::<Option<_>>()?;
        for column in &mut columns {
            let in_sections: usize = column.sections.iter().map(Section::words).sum();
            column.others = from.words(column.words - in_sections)?;
        }
        for column in &mut columns {
            let taken =
                column.sections.iter().map(|section| from.take(section.count * bytes_of_integer(section)));
            column.integers = taken.collect::<Option<_>>()?;
        }
        Some(Self(columns))
    }

    /// Returns the words of a block's column.
    pub(super) fn words(&self, index: usize) -> Vec<u64> {
        let column = &self.0[index];
        let mut words = Words::with_capacity(column.words);
        let (mut others, mut end) = (column.others, 0);
        let mut integers = [0; BLOCK_POINTS];
        for (section, bytes) in column.sections.iter().zip(&column.integers) {
            let (before, rest) = others.split_at(section.start - end);
            words.extend_from_bytes(before);
            let integers = &mut integers[..section.count];
            integers.fill(0);
            for (byte, plane) in bytes.chunks_exact(section.count).enumerate() {
                for (integer, low) in integers.iter_mut().zip(plane) {
                    *integer |= u64::from(*low) << (8 * byte);
                }
            }
            section.pack(integers, &mut words);
            (others, end) = (rest, section.end());
        }
        words.extend_from_bytes(others);
        words.into_vec()
    }
}

impl StoredColumn<'_> {
    /// Takes what says how long the parts of a column are.
    fn read_shape(from: &mut Bytes<'_>) -> Option<Self> {
        let words = from.length(WORDS_MAX)?;
        let count = usize::from(from.u8()?);
        if count > SECTIONS_MAX {
            return None;
        }
        let (mut sections, mut end) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let start = end + from.length(WORDS_MAX)?;
            let (count, width) = (from.length(BLOCK_POINTS)?, u32::from(from.u8()?));
            if count == 0 || !(1..=64).contains(&width) {
                return None;
            }
            let section = Section { start, count, width };
            end = section.end();
            sections.push(section);
        }
        (end <= words).then_some(Self { words, sections, others: &[], integers: Vec::new() })
    }
}
