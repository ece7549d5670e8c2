//! Where packed integers lie among the words of a column, so that another form can be made of them.

use super::integers::Integers;
use super::packing::{Packed, pack, packed_words};
use super::values::Values;
use super::words::{Reader, Words};
use crate::BLOCK_POINTS;

/// Packed integers within the words of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    /// Number of words before it.
    pub start: usize,
    /// Number of integers, from 1 to [`BLOCK_POINTS`].
    pub count: usize,
    /// Bits of an integer, from 1 to 64.
    pub width: u32,
}

impl Section {
    /// Returns where `packed` lies in `words`, of which it is a part; `None` if it has no bits.
    fn of(packed: Packed<'_>, words: &[u64]) -> Option<Self> {
        let before = packed.words().as_ptr().addr() - words.as_ptr().addr();
        let section = Self { start: before / size_of::<u64>(), count: packed.len(), width: packed.width() };
        (section.words() > 0).then_some(section)
    }

    /// Returns the number of words before its end.
    pub(crate) fn end(&self) -> usize {
        self.start + self.words()
    }

    /// Returns the number of its words.
    pub(crate) fn words(&self) -> usize {
        packed_words(self.count, self.width)
    }

    /// Unpacks the integers to the front of `into`. `words` are those of the column.
    pub(crate) fn unpack(&self, words: &[u64], into: &mut [u64; BLOCK_POINTS]) {
        let mut reader = Reader::new(&words[self.start..]);
        Packed::read(&mut reader, self.count, self.width).expect("a section is in its column").unpack(into);
    }

    /// Appends the integers, packed; bits beyond the width are dropped.
    pub(crate) fn pack(&self, integers: &mut [u64], into: &mut Words) {
        let mask = u64::MAX >> (64 - self.width);
        integers.iter_mut().for_each(|integer| *integer &= mask);
        pack(integers, self.width, into);
    }
}

/// Returns the sections of times; `None` if they are not well formed.
pub(crate) fn sections_of_integers(words: &[u64], count: usize) -> Option<Vec<Section>> {
    let integers = Integers::read(&mut Reader::new(words), count)?;
    Some(Section::of(integers.packed(), words).into_iter().collect())
}

/// Returns the sections of values, by where they are; `None` if they are not well formed.
pub(crate) fn sections_of_values(words: &[u64], count: usize) -> Option<Vec<Section>> {
    let mut sections = Vec::new();
    Values::read(&mut Reader::new(words), count)?
        .for_each_packed(|packed| sections.extend(Section::of(packed, words)));
    Some(sections)
}
