//! Sealed points: compressed, immutable, with a checksum and what aggregations need most.
//!
//! | words | contents |
//! |---|---|
//! | 0 | `TMSB`, version, [`Kind`], number of points |
//! | 1 | CRC-32C of all other words; number of words |
//! | 2, 3 | first and last time |
//! | 4 | number of words of the times; number of NaNs; whether the sum is known |
//! | 5 … 10 | [`Summary`]: sum in two parts, lowest, highest, first and last value |
//! | 11 … | times, then values |

mod parts;
mod pinned;
mod place;
mod summary;

pub(crate) use parts::BlockParts;
pub use pinned::PinnedBlocks;
pub use place::{Beside, BlockSource, Place};
pub use summary::Summary;

use crate::BLOCK_POINTS;
use crate::codec::{Hints, Integers, Reader, Values, Words, encode_integers, encode_values, value_at};
use crate::sample::{Kind, Sample, words_of_integers};
use crate::unreadable::{Unreadable, UnreadableBlock, note};
use place::Placed;
use triomphe::{Arc, HeaderSlice};

/// First word's low half.
const MAGIC: u32 = u32::from_le_bytes(*b"TMSB");

/// Version of the format.
const VERSION: u8 = 1;

/// Words before the times.
pub(crate) const HEADER_WORDS: usize = 11;

/// Most words of a block: its header, and points that nothing compresses, with some words for their
/// forms.
pub(crate) const WORDS_MAX: usize = HEADER_WORDS + 3 * BLOCK_POINTS;

/// Why bytes are no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// They do not begin as a block does, or are shorter or longer than it says.
    #[error("the bytes are no block of a series, or a part of one: {0} words")]
    NotABlock(usize),
    /// A block of a later version.
    #[error("a block of version {0}; this program knows version 1")]
    Version(u8),
    /// The values are of another type.
    #[error("a block with values of type {found:?} in a series of type {expected:?}")]
    Kind {
        /// Type of the series.
        expected: Kind,
        /// Type in the block.
        found: Kind,
    },
    /// Words have changed since the block was made.
    #[error("the block's checksum is {found:#010x}, and {computed:#010x} was expected from its contents")]
    Checksum {
        /// Checksum in the block.
        found: u32,
        /// Checksum of the contents.
        computed: u32,
    },
    /// The checksum is right, and the contents are not well formed.
    #[error("the block's contents are not well formed")]
    Malformed,
}

/// Up to [`BLOCK_POINTS`] points, compressed. Cloning it copies no points.
///
/// A block that has a [`Place`] may be without its points: then it has only its header, in memory, and
/// its points are read from the place.
#[derive(Debug, Clone)]
pub struct Block {
    stored: Arc<HeaderSlice<Placed, [u64]>>,
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Block {}

pub(crate) fn checksum(words: &[u64]) -> u32 {
    let over = |crc, word: &u64| crc32c::crc32c_append(crc, &word.to_le_bytes());
    if cfg!(target_endian = "little") {
        let first = over(0, &words[0]);
        return crc32c::crc32c_append(first, bytes_of(&words[2..]));
    }
    words[2..].iter().fold(over(0, &words[0]), over)
}

/// Returns words as bytes in the processor's order.
fn bytes_of(words: &[u64]) -> &[u8] {
    #[expect(unsafe_code, reason = "the standard library has no safe view of words as bytes")]
    // SAFETY: words have no padding, and bytes no alignment; the length is that of the words.
    unsafe {
        std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words))
    }
}

impl Block {
    /// Compresses points: at least one, at most [`BLOCK_POINTS`], at rising times. O(n).
    pub(crate) fn encode<V: Sample>(times: &[i64], values: &[V], hints: &mut Hints) -> Self {
        assert_eq!(times.len(), values.len(), "times and values of a block");
        debug_assert!(times.is_sorted_by(|before, after| before < after), "times rise");
        let summary = Summary::of(values);
        let mut words = Words::default();
        words.push(
            u64::from(MAGIC)
                | u64::from(VERSION) << 32
                | u64::from(V::KIND as u8) << 40
                | (times.len() as u64) << 48,
        );
        words.push(0);
        words.push(times[0].cast_unsigned());
        words.push(times[times.len() - 1].cast_unsigned());
        words.push(0);
        summary.encode(&mut words);
        debug_assert_eq!(words.len(), HEADER_WORDS);
        encode_integers(times, &mut words);
        let times_words = (words.len() - HEADER_WORDS) as u64;
        let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        encode_values(V::KIND, &bits, hints, &mut words);
        let mut words = words.into_vec();
        words[4] = times_words | summary.flags() << 32;
        words[1] = u64::from(checksum(&words)) | (words.len() as u64) << 32;
        Self::of(Placed::default(), &words)
    }

    fn of(placed: Placed, words: &[u64]) -> Self {
        Self { stored: Arc::from_header_and_slice(placed, words) }
    }

    /// Returns the block in `words`, which come from a file or a socket. O(n) for the checksum.
    pub fn from_words<V: Sample>(words: &[u64]) -> Result<Self, BlockError> {
        let no_block = BlockError::NotABlock(words.len());
        if words.len() <= HEADER_WORDS || words.len() > WORDS_MAX || words[0] as u32 != MAGIC {
            return Err(no_block);
        }
        if words[1] >> 32 != words.len() as u64 {
            return Err(no_block);
        }
        let (found, computed) = (words[1] as u32, checksum(words));
        if found != computed {
            return Err(BlockError::Checksum { found, computed });
        }
        let version = (words[0] >> 32) as u8;
        if version != VERSION {
            return Err(BlockError::Version(version));
        }
        let kind = Kind::of_code((words[0] >> 40) as u8).ok_or(BlockError::Malformed)?;
        if kind != V::KIND {
            return Err(BlockError::Kind { expected: V::KIND, found: kind });
        }
        let block = Self::of(Placed::default(), words);
        if block.is_well_formed() { Ok(block) } else { Err(BlockError::Malformed) }
    }

    /// Whether the contents can be read without leaving the block.
    fn is_well_formed(&self) -> bool {
        let count = self.len();
        let Some((times, values)) = self.split() else { return false };
        let (mut times, mut values) = (Reader::new(times), Reader::new(values));
        let Some(integers) = Integers::read(&mut times, count) else { return false };
        let Some(read) = Values::read(&mut values, count) else { return false };
        times.is_empty()
            && values.is_empty()
            && integers.is_well_formed()
            && read.is_well_formed()
            && integers.get(0) == self.first_time()
            && integers.get(count - 1) == self.last_time()
    }

    /// Returns the words of the times and those of the values.
    fn split(&self) -> Option<(&[u64], &[u64])> {
        let words = self.words();
        words[HEADER_WORDS..].split_at_checked(words[4] as u32 as usize)
    }

    /// Returns the words to be stored, least significant byte first; those of the header if the block
    /// is without its points.
    pub fn words(&self) -> &[u64] {
        &self.stored.slice
    }

    /// Returns the number of words to be stored.
    pub fn stored_words(&self) -> usize {
        (self.words()[1] >> 32) as usize
    }

    /// Returns the memory of the points, in bytes; 0 if they are not in memory.
    pub fn bytes_of_points(&self) -> usize {
        (self.words().len() - HEADER_WORDS) * size_of::<u64>()
    }

    /// Whether the points are in memory.
    pub fn has_points(&self) -> bool {
        self.words().len() > HEADER_WORDS
    }

    /// Whether both share the same words in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.stored, &other.stored)
    }

    /// Returns where the words are kept outside of memory.
    pub fn place(&self) -> Option<Place> {
        self.stored.header.get()
    }

    /// Looks at where the words are kept outside of memory.
    pub fn with_place<T>(&self, look: impl FnOnce(&Place) -> T) -> Option<T> {
        self.stored.header.with(look)
    }

    /// Sets where the words are kept, for all clones of the block. The caller has stored them there.
    pub fn set_place(&self, place: Place) {
        self.stored.header.set(place);
    }

    /// Returns the block without its points; `None` if they are kept nowhere else, or it has none.
    pub fn without_points(&self) -> Option<Self> {
        let place = if self.has_points() { self.place() } else { None }?;
        Some(Self::of(Placed::at(place), &self.words()[..HEADER_WORDS]))
    }

    /// Returns the block with its points, which are read from its place if they are not in memory, nor
    /// pinned by [`PinnedBlocks`]. Blocks that lie `beside` it are probably read next.
    ///
    /// # Errors
    /// They cannot be read, or are not those that were stored.
    pub fn with_points(&self, beside: &mut Beside) -> Result<Self, UnreadableBlock> {
        if self.has_points() {
            return Ok(self.clone());
        }
        if let Some(block) = pinned::find(self) {
            return Ok(block);
        }
        let block = self.read_from_place(beside)?;
        pinned::keep(self, &block);
        Ok(block)
    }

    fn read_from_place(&self, beside: &mut Beside) -> Result<Self, UnreadableBlock> {
        let unreadable =
            |what| UnreadableBlock { first: self.first_time(), last: self.last_time(), what, series: None };
        let place = self.place().expect("a block without its points has a place");
        let words = place.source.read(place.position, self, beside).map_err(unreadable)?;
        // The header is part of what the checksum covers, and these contents were checked when they were
        // in memory: the same header and a right checksum are the same block.
        if words.len() != self.stored_words() || words[..HEADER_WORDS] != *self.words() {
            let what = format!("the block {} is another one", place.source.describe(place.position));
            return Err(unreadable(what));
        }
        let (found, computed) = (words[1] as u32, checksum(&words));
        if found != computed {
            let error = BlockError::Checksum { found, computed };
            return Err(unreadable(format!("{}: {error}", place.source.describe(place.position))));
        }
        Ok(Self::of(Placed::at(place), &words))
    }

    /// Like [`Block::with_points`]; records a failure for the caller that guards this thread's reads.
    pub(crate) fn fetch(&self, beside: &mut Beside) -> Result<Self, Unreadable> {
        self.with_points(beside).map_err(|unreadable| note(|| unreadable))
    }

    /// Returns the number of points, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a block has points")]
    pub fn len(&self) -> usize {
        (self.words()[0] >> 48) as usize
    }

    /// Returns the time of the first point.
    pub fn first_time(&self) -> i64 {
        self.words()[2].cast_signed()
    }

    /// Returns the time of the last point.
    pub fn last_time(&self) -> i64 {
        self.words()[3].cast_signed()
    }

    /// Returns the memory that it uses, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.stored)
    }

    /// Returns what aggregations need of the whole block. O(1).
    pub fn summary<V: Sample>(&self) -> Summary<V> {
        Summary::decode(&self.words()[5..HEADER_WORDS], self.words()[4] >> 32)
    }

    fn times(&self) -> Integers<'_> {
        let (times, _) = self.split().expect("a block is checked when it is read");
        Integers::read(&mut Reader::new(times), self.len()).expect("a block is checked when it is read")
    }

    fn values(&self) -> Values<'_> {
        let (_, values) = self.split().expect("a block is checked when it is read");
        Values::read(&mut Reader::new(values), self.len()).expect("a block is checked when it is read")
    }

    /// Returns the value at exactly `time`. O(1) for regular times and values that are decimals of a
    /// line, at most O(n). No allocation.
    pub(crate) fn get<V: Sample>(&self, time: i64) -> Option<V> {
        let times = self.times();
        let index = times.count_up_to(time).checked_sub(1)?;
        if times.get(index) != time {
            return None;
        }
        let (_, values) = self.split().expect("a block is checked when it is read");
        let bits = value_at(Reader::new(values), self.len(), index);
        Some(V::from_bits(bits.expect("a block is checked when it is read")))
    }

    /// Writes the points to the front of `times` and `values`, and returns their number. O(n), no
    /// allocation.
    pub(crate) fn decode<V: Sample>(
        &self,
        times: &mut [i64; BLOCK_POINTS],
        values: &mut [V; BLOCK_POINTS],
    ) -> usize {
        self.times().decode(words_of_integers(times));
        let count = self.len();
        if let Some(words) = V::as_words(values) {
            self.values().decode(words);
            return count;
        }
        let mut bits = [0; BLOCK_POINTS];
        self.values().decode(&mut bits);
        for (value, bits) in values[..count].iter_mut().zip(&bits[..count]) {
            *value = V::from_bits(*bits);
        }
        count
    }
}

#[cfg(test)]
mod tests;
