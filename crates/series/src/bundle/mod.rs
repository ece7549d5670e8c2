//! Adjacent blocks of one series, compressed together for a file.
//!
//! The words of a bundle's blocks are rearranged, and go through a general compressor. Reading a bundle
//! gives the same words again, so a block is the same wherever it lies. Bundles may share their times.
//!
//! ```text
//! bundle  0 u8 │ blocks u8 │ (words varint │ words u64*)*
//!         1 u8 │ blocks u8 │ type of values u8 │ 0 varint │ times │ rest
//!         1 u8 │ blocks u8 │ type of values u8 │ number of the bundle with the times, plus one, varint │ rest
//! times   columns of times
//! rest    head of each block │ columns of values
//! ```
//!
//! Both `times` and `rest` are a length varint, a stored length varint, and so many bytes: they are
//! compressed if the lengths differ. What a file says is wrong is refused; the file's own checksum is
//! what finds damage.

mod bytes;
mod column;
mod head;
mod squeeze;

use crate::block::{Block, BlockParts, HEADER_WORDS, WORDS_MAX};
use crate::codec::{sections_of_integers, sections_of_values};
use crate::sample::Kind;
use bytes::{Bytes, put_varint, put_words};
use column::{Column, Columns};
use head::Head;
use std::sync::Arc;

/// Most blocks of a bundle. With more it is hardly smaller, and each read of a block decompresses all of
/// its bundle.
pub const BUNDLE_BLOCKS: usize = 8;

/// Most bytes of the times or the rest before they are compressed.
const BYTES_MAX: usize = BUNDLE_BLOCKS * (column::BYTES_MAX + 64);

const WORDS: u8 = 0;
const COMPRESSED: u8 = 1;

/// Bytes are no bundle, or one that refers to times that are not those of its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bundle of blocks is not well formed")]
pub struct MalformedBundle;

/// A bundle that is to be written.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// What is before the times: form, number of blocks, type of values.
    start: Vec<u8>,
    /// As they are stored; nothing if the blocks are stored as they are.
    times: Vec<u8>,
    rest: Vec<u8>,
}

impl Bundle {
    /// Compresses blocks of one series with their points: at least one, at most [`BUNDLE_BLOCKS`]. O(n).
    pub fn of(blocks: &[Block]) -> Self {
        assert!((1..=BUNDLE_BLOCKS).contains(&blocks.len()), "{} blocks in a bundle", blocks.len());
        assert!(blocks.iter().all(Block::has_points), "a block in a bundle has no points");
        let compressed = Self::compressed(blocks).filter(|bundle| bundle.is_of(blocks));
        compressed.unwrap_or_else(|| Self::of_words(blocks))
    }

    fn compressed(blocks: &[Block]) -> Option<Self> {
        let parts: Vec<BlockParts<'_>> = blocks.iter().map(Block::parts).collect::<Option<_>>()?;
        let (mut times, mut rest) = (Vec::new(), Vec::new());
        let of_times = parts.iter().map(|part| {
            Some(Column { words: part.times, sections: sections_of_integers(part.times, part.count)? })
        });
        column::encode(&of_times.collect::<Option<Vec<_>>>()?, &mut times);
        for part in &parts {
            Head::of(part)?.encode(&mut rest);
        }
        let of_values = parts.iter().map(|part| {
            Some(Column { words: part.values, sections: sections_of_values(part.values, part.count)? })
        });
        column::encode(&of_values.collect::<Option<Vec<_>>>()?, &mut rest);
        let start = vec![COMPRESSED, blocks.len() as u8, parts[0].code];
        let mut bundle = Self { start, times: Vec::new(), rest: Vec::new() };
        squeeze::put(&times, &mut bundle.times);
        squeeze::put(&rest, &mut bundle.rest);
        Some(bundle)
    }

    /// Whether the blocks are read back to the bit. Those that no program of ours has made may not be.
    fn is_of(&self, blocks: &[Block]) -> bool {
        let mut bytes = Vec::new();
        self.encode(None, &mut bytes);
        let Ok(stored) = StoredBundle::read(&bytes, None) else { return false };
        let mut blocks = blocks.iter().enumerate();
        blocks.all(|(index, block)| stored.words(index).is_ok_and(|words| words == block.words()))
    }

    /// Stores blocks as they are.
    fn of_words(blocks: &[Block]) -> Self {
        let mut rest = Vec::new();
        for block in blocks {
            put_varint(&mut rest, block.words().len() as u64);
            put_words(block.words(), &mut rest);
        }
        Self { start: vec![WORDS, blocks.len() as u8], times: Vec::new(), rest }
    }

    /// Returns the times as they are stored: equal bytes are equal times. Empty if they cannot be shared.
    pub fn times(&self) -> &[u8] {
        &self.times
    }

    /// Appends the bundle. If `times_in` is the number of another bundle of the same file that has the same
    /// times, only that number is stored.
    pub fn encode(&self, times_in: Option<u32>, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.start);
        match times_in.filter(|_| !self.times.is_empty()) {
            Some(number) => put_varint(into, u64::from(number) + 1),
            None => {
                into.extend(self.times.first().map(|_| 0));
                into.extend_from_slice(&self.times);
            }
        }
        into.extend_from_slice(&self.rest);
    }
}

/// Times of a bundle, which others may share. Cloning it copies no times.
#[derive(Debug, Clone)]
pub struct BundleTimes(Arc<Vec<u8>>);

/// A bundle that was read, before its blocks are put together.
#[derive(Debug)]
pub struct StoredBundle {
    blocks: usize,
    code: u8,
    times: BundleTimes,
    /// Without times, the words of the blocks.
    rest: Vec<u8>,
}

/// What begins a bundle.
struct Start {
    form: u8,
    blocks: usize,
    code: u8,
    /// Number of the bundle with the times.
    times_in: Option<u32>,
}

impl Start {
    fn read(from: &mut Bytes<'_>) -> Option<Self> {
        let (form, blocks) = (from.u8()?, usize::from(from.u8()?));
        if !(1..=BUNDLE_BLOCKS).contains(&blocks) {
            return None;
        }
        let (mut code, mut times_in) = (0, None);
        match form {
            WORDS => (),
            COMPRESSED => {
                code = from.u8().filter(|code| Kind::of_code(*code).is_some())?;
                times_in = match from.varint()? {
                    0 => None,
                    number => Some(u32::try_from(number - 1).ok()?),
                };
            }
            _ => return None,
        }
        Some(Self { form, blocks, code, times_in })
    }
}

impl BundleTimes {
    /// Returns the number of the bundle that has the times of the bundle in `bytes`; `None` if it has them
    /// itself.
    pub fn elsewhere(bytes: &[u8]) -> Result<Option<u32>, MalformedBundle> {
        Start::read(&mut Bytes::new(bytes)).map(|start| start.times_in).ok_or(MalformedBundle)
    }

    /// Returns the times of the bundle in `bytes`, which has them itself. O(n).
    pub fn read(bytes: &[u8]) -> Result<Self, MalformedBundle> {
        let mut from = Bytes::new(bytes);
        let start = Start::read(&mut from).ok_or(MalformedBundle)?;
        if start.form != COMPRESSED || start.times_in.is_some() {
            return Err(MalformedBundle);
        }
        Self::take(&mut from).ok_or(MalformedBundle)
    }

    fn take(from: &mut Bytes<'_>) -> Option<Self> {
        squeeze::take(from, BYTES_MAX).map(|times| Self(Arc::new(times)))
    }
}

impl StoredBundle {
    /// Returns the bundle in `bytes`. `times` are those of the bundle that [`BundleTimes::elsewhere`] names.
    /// Decompresses, O(n).
    pub fn read(bytes: &[u8], times: Option<&BundleTimes>) -> Result<Self, MalformedBundle> {
        Self::decompress(&mut Bytes::new(bytes), times).ok_or(MalformedBundle)
    }

    fn decompress(from: &mut Bytes<'_>, times: Option<&BundleTimes>) -> Option<Self> {
        let Start { form, blocks, code, times_in } = Start::read(from)?;
        let (times, rest) = if form == WORDS {
            (BundleTimes(Arc::default()), from.rest().to_vec())
        } else {
            let times = match times_in {
                Some(_) => times?.clone(),
                None => BundleTimes::take(from)?,
            };
            let rest = squeeze::take(from, BYTES_MAX)?;
            (times, rest)
        };
        from.is_empty().then_some(Self { blocks, code, times, rest })
    }

    /// Returns the times.
    pub fn times(&self) -> &BundleTimes {
        &self.times
    }

    /// Returns the number of blocks.
    #[expect(clippy::len_without_is_empty, reason = "a bundle has blocks")]
    pub fn len(&self) -> usize {
        self.blocks
    }

    /// Returns the words of a block. O(n) for that block, and its points are decoded.
    pub fn words(&self, index: usize) -> Result<Vec<u64>, MalformedBundle> {
        let join = |columns: &BlockColumns| columns.head.join(self.code, &columns.times, &columns.values);
        let words = if self.code == 0 {
            self.words_of_words(index)
        } else {
            self.columns(index).and_then(|columns| join(&columns))
        };
        words.ok_or(MalformedBundle)
    }

    /// Returns the words of a block of which the caller has the header, in a block without points. O(n) for
    /// that block. They are its words if their checksum is right.
    pub fn words_behind(&self, header: &Block, index: usize) -> Result<Vec<u64>, MalformedBundle> {
        let words = if self.code == 0 {
            self.words_of_words(index)
        } else {
            self.columns(index).map(|columns| {
                let header = &header.words()[..HEADER_WORDS];
                [header, &columns.times, &columns.values].concat()
            })
        };
        words.ok_or(MalformedBundle)
    }

    fn words_of_words(&self, index: usize) -> Option<Vec<u64>> {
        let mut from = Bytes::new(&self.rest);
        let blocks = (0..self.blocks).map(|_| {
            let length = from.length(WORDS_MAX)?;
            from.words(length)
        });
        let blocks: Vec<_> = blocks.collect::<Option<_>>().filter(|_| from.is_empty())?;
        Some(blocks.get(index)?.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn columns(&self, index: usize) -> Option<BlockColumns> {
        let (mut times, mut rest) = (Bytes::new(&self.times.0), Bytes::new(&self.rest));
        let of_times = Columns::read(&mut times, self.blocks)?;
        let heads: Vec<Head> = (0..self.blocks).map(|_| Head::read(&mut rest)).collect::<Option<_>>()?;
        let of_values = Columns::read(&mut rest, self.blocks)?;
        if !times.is_empty() || !rest.is_empty() {
            return None;
        }
        let head = *heads.get(index)?;
        Some(BlockColumns { head, times: of_times.words(index), values: of_values.words(index) })
    }
}

/// What a bundle has of one block.
struct BlockColumns {
    head: Head,
    times: Vec<u64>,
    values: Vec<u64>,
}

#[cfg(test)]
mod tests;
