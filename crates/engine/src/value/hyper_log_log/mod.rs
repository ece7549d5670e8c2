//! HyperLogLogs: sketches that estimate how many distinct elements were added, with a standard error
//! of 0.81 %. As in Redis, a sketch is a string, and its bytes are Redis's.
//!
//! ```text
//! "HYLL" │ encoding u8 │ 3 unused bytes │ cached estimate u64 │ registers
//! ```
//!
//! An element chooses one of 16,384 registers by 14 bits of its hash; the register keeps the longest
//! run of zeros in the other bits, plus one, that any element had. A *sparse* sketch has runs of equal
//! registers ([`sparse`]), a *dense* one six bits for each ([`dense`]). A sparse one becomes dense when it
//! exceeds [`SPARSE_BYTES_MAX`], or when a register exceeds what a run can have.
//!
//! The highest bit of the cached estimate says that it is out of date. Every change sets it. `PFCOUNT`
//! changes nothing here, so only a sketch from Redis has a valid estimate.

mod dense;
mod estimate;
mod self_test;
mod sparse;

use crate::error::CommandError;
use sparse::Outcome;

pub(crate) use self_test::test;

/// Bits of a hash that choose a register.
const INDEX_BITS: u32 = 14;
/// Number of registers.
pub(crate) const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash in which zeros are counted.
const RUN_BITS: u32 = 64 - INDEX_BITS;
/// Length of the header, in bytes.
const HEADER: usize = 16;
/// Length of a dense sketch, in bytes.
const DENSE_BYTES: usize = HEADER + dense::BYTES;
/// Longest sparse sketch, in bytes: Redis's default of `hll-sparse-max-bytes`. A sketch's bytes follow
/// from the log, so this is no setting.
pub(crate) const SPARSE_BYTES_MAX: usize = 3000;

const MAGIC: &[u8; 4] = b"HYLL";
/// Offset of the encoding.
const ENCODING: usize = 4;
/// Offset of the byte with the bit that invalidates the cached estimate.
const CACHE_END: usize = HEADER - 1;
const OUT_OF_DATE: u8 = 0x80;

const NOT_A_SKETCH: CommandError =
    CommandError::text("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPTED: CommandError = CommandError::text("INVALIDOBJ Corrupted HLL object detected");

/// How a sketch keeps its registers. The discriminant is its byte in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Dense = 0,
    Sparse = 1,
}

/// Bytes of a sketch that has been checked: its registers are exactly [`REGISTERS`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sketch<'a> {
    encoding: Encoding,
    registers: &'a [u8],
    cached: u64,
}

impl<'a> Sketch<'a> {
    /// Checks bytes, which may come from any client. O(bytes) for a sparse sketch, O(1) for a dense one.
    ///
    /// # Errors
    /// The header is none, or the registers are not as many as a sketch has.
    pub(crate) fn of(bytes: &'a [u8]) -> Result<Self, CommandError> {
        let (header, registers) = bytes.split_first_chunk::<HEADER>().ok_or(NOT_A_SKETCH)?;
        if !header.starts_with(MAGIC) {
            return Err(NOT_A_SKETCH);
        }
        let encoding = match header[ENCODING] {
            0 if bytes.len() == DENSE_BYTES => Encoding::Dense,
            1 => Encoding::Sparse,
            _ => return Err(NOT_A_SKETCH),
        };
        if encoding == Encoding::Sparse && !sparse::is_whole(registers) {
            return Err(CORRUPTED);
        }
        let [.., c0, c1, c2, c3, c4, c5, c6, c7] = *header;
        Ok(Self { encoding, registers, cached: u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]) })
    }

    /// How it keeps its registers.
    pub(crate) fn encoding(self) -> Encoding {
        self.encoding
    }

    /// Returns the estimate: the cached one if it is valid. O(bytes) otherwise.
    pub(crate) fn count(self) -> i64 {
        if let Ok(cached) = i64::try_from(self.cached) {
            return cached;
        }
        let mut histogram = [0; estimate::VALUES];
        match self.encoding {
            Encoding::Dense => dense::each(self.registers, |_, value| histogram[usize::from(value)] += 1),
            Encoding::Sparse => sparse::each(self.registers, |run, _| {
                histogram[usize::from(run.value)] += run.len;
            }),
        }
        estimate::estimate(&histogram)
    }

    /// Returns the runs of a sparse sketch as `PFDEBUG DECODE` shows them.
    pub(crate) fn shown(self) -> String {
        let mut shown: Vec<String> = Vec::new();
        sparse::each(self.registers, |run, _| shown.push(run.to_string()));
        shown.join(" ")
    }
}

/// Registers, one byte each: the union of sketches.
#[derive(Debug)]
pub(crate) struct Registers(Box<[u8]>);

impl Registers {
    /// Creates registers that are all zero.
    pub(crate) fn zero() -> Self {
        Self(vec![0; REGISTERS].into())
    }

    /// Raises the registers to those of a sketch. O(registers).
    pub(crate) fn merge(&mut self, sketch: Sketch<'_>) {
        let registers = &mut self.0;
        match sketch.encoding {
            Encoding::Dense => dense::each(sketch.registers, |index, value| {
                registers[index] = registers[index].max(value);
            }),
            Encoding::Sparse => sparse::each(sketch.registers, |run, first| {
                let covered = &mut registers[first..first + run.len];
                covered.iter_mut().for_each(|register| *register = run.value.max(*register));
            }),
        }
    }

    /// Returns the estimate. O(registers).
    pub(crate) fn count(&self) -> i64 {
        let mut histogram = [0; estimate::VALUES];
        self.0.iter().for_each(|value| histogram[usize::from(*value)] += 1);
        estimate::estimate(&histogram)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = u8> {
        self.0.iter().copied()
    }
}

/// Appends an empty sketch to empty bytes.
pub(crate) fn create(bytes: &mut Vec<u8>) {
    assert!(bytes.is_empty(), "a sketch is to be made of {} bytes", bytes.len());
    bytes.extend_from_slice(MAGIC);
    bytes.push(Encoding::Sparse as u8);
    bytes.resize(HEADER, 0);
    sparse::put_all_zero(bytes);
}

/// Adds an element to a sketch. Returns whether a register has changed. O(bytes) for a sparse sketch,
/// O(1) for a dense one.
///
/// The bytes must be those of a [`Sketch`]; so for all functions that change one.
pub(crate) fn add(bytes: &mut Vec<u8>, element: &[u8]) -> bool {
    let (index, value) = register_of(element);
    raise(bytes, index, value)
}

/// Raises a sketch's registers to others. O(registers) for a dense sketch; for a sparse one O(bytes) for
/// each register that is not zero.
pub(crate) fn raise_all(bytes: &mut Vec<u8>, registers: &Registers) {
    for (index, value) in registers.iter().enumerate().filter(|(_, value)| *value > 0) {
        raise(bytes, index, value);
    }
}

/// Makes a sketch dense. Returns whether it was sparse. O(registers).
pub(crate) fn make_dense(bytes: &mut Vec<u8>) -> bool {
    if bytes[ENCODING] == Encoding::Dense as u8 {
        return false;
    }
    let mut registers = vec![0; dense::BYTES];
    sparse::each(&bytes[HEADER..], |run, first| {
        if run.value > 0 {
            (first..first + run.len).for_each(|index| dense::set(&mut registers, index, run.value));
        }
    });
    bytes.truncate(HEADER);
    bytes.append(&mut registers);
    bytes[ENCODING] = Encoding::Dense as u8;
    true
}

/// Marks the cached estimate as out of date.
pub(crate) fn invalidate(bytes: &mut [u8]) {
    bytes[CACHE_END] |= OUT_OF_DATE;
}

/// Raises a register. Returns whether it was less.
fn raise(bytes: &mut Vec<u8>, index: usize, value: u8) -> bool {
    if bytes[ENCODING] == Encoding::Sparse as u8 {
        match sparse::raise(bytes, index, value) {
            Outcome::Same => return false,
            Outcome::Raised => return true,
            Outcome::Full => make_dense(bytes),
        };
    }
    let registers = &mut bytes[HEADER..];
    let is_less = dense::get(registers, index) < value;
    if is_less {
        dense::set(registers, index, value);
    }
    is_less
}

/// Returns the register of an element, and the value that it requires: the position of the lowest set
/// bit among those that count, from 1.
fn register_of(element: &[u8]) -> (usize, u8) {
    let hash = murmur_64a(element);
    // The bit behind the others ends a run of zeros only.
    let counted = (hash >> INDEX_BITS) | 1 << RUN_BITS;
    (hash as usize & (REGISTERS - 1), counted.trailing_zeros() as u8 + 1)
}

/// Returns the hash of an element: [`MurmurHash64A`](https://github.com/aappleby/smhasher), with Redis's
/// seed.
fn murmur_64a(bytes: &[u8]) -> u64 {
    const SEED: u64 = 0xadc8_3b19;
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    hash ^ (hash >> SHIFT)
}

#[cfg(test)]
mod tests;
