//! Runs of equal registers, in the order of the registers.
//!
//! ```text
//! 00nnnnnn             n + 1 zeros
//! 01nnnnnn nnnnnnnn    n + 1 zeros
//! 1vvvvvnn             n + 1 registers of v + 1
//! ```

use super::{HEADER, REGISTERS, SPARSE_BYTES_MAX};
use std::fmt;

/// Longest run of zeros in one byte.
const ZEROS_MAX: usize = 64;
/// Highest value of a run.
const VALUE_MAX: u8 = 32;
/// Longest run of another value than zero.
const LEN_MAX: usize = 4;
/// Runs after a change that are looked at for neighbours of equal value, as in Redis.
const MERGED_RUNS: usize = 5;

/// A run of registers with the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) len: usize,
    /// Value of the registers.
    pub(super) value: u8,
    /// Its length in bytes.
    width: usize,
}

impl Run {
    /// Returns the run at an offset; `None` if there is none, or only the first byte of one.
    fn at(bytes: &[u8], offset: usize) -> Option<Self> {
        let byte = *bytes.get(offset)?;
        Some(match byte >> 6 {
            0 => Self { len: usize::from(byte) + 1, value: 0, width: 1 },
            1 => {
                let len = u16::from_be_bytes([byte & 0x3f, *bytes.get(offset + 1)?]);
                Self { len: usize::from(len) + 1, value: 0, width: 2 }
            }
            _ => Self { len: usize::from(byte & 3) + 1, value: ((byte >> 2) & 0x1f) + 1, width: 1 },
        })
    }
}

/// As `PFDEBUG DECODE` shows it.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { len, value: 0, width: 1 } => write!(f, "z:{len}"),
            Self { len, value: 0, .. } => write!(f, "Z:{len}"),
            Self { len, value, .. } => write!(f, "v:{value},{len}"),
        }
    }
}

/// The bytes of at most three runs.
#[derive(Debug, Default)]
struct Replacement {
    bytes: [u8; 5],
    len: usize,
}

impl Replacement {
    /// Appends a run, unless it is empty.
    fn push(&mut self, len: usize, value: u8) {
        let long = (len.wrapping_sub(1) as u16 | 0x4000).to_be_bytes();
        match (len, value) {
            (0, _) => return,
            (1..=ZEROS_MAX, 0) => self.bytes[self.len] = len as u8 - 1,
            (_, 0) => {
                self.bytes[self.len..self.len + 2].copy_from_slice(&long);
                self.len += 1;
            }
            _ => self.bytes[self.len] = of_value(len, value),
        }
        self.len += 1;
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the byte of a run of another value than zero.
fn of_value(len: usize, value: u8) -> u8 {
    assert!((1..=LEN_MAX).contains(&len) && (1..=VALUE_MAX).contains(&value), "{len} registers of {value}");
    0x80 | (value - 1) << 2 | (len as u8 - 1)
}

/// Appends the run of all registers, with the value zero.
pub(super) fn put_all_zero(bytes: &mut Vec<u8>) {
    let mut all = Replacement::default();
    all.push(REGISTERS, 0);
    bytes.extend_from_slice(all.as_slice());
}

/// Whether runs are those of all registers, no fewer and no more. The sum of the lengths is checked run
/// by run: it cannot overflow, however many bytes there are.
pub(super) fn is_whole(runs: &[u8]) -> bool {
    let (mut offset, mut registers) = (0, 0);
    while let Some(run) = Run::at(runs, offset) {
        registers += run.len;
        offset += run.width;
        if registers > REGISTERS {
            return false;
        }
    }
    offset == runs.len() && registers == REGISTERS
}

/// Visits the runs, each with its first register.
pub(super) fn each(runs: &[u8], mut visit: impl FnMut(Run, usize)) {
    let (mut offset, mut first) = (0, 0);
    while let Some(run) = Run::at(runs, offset) {
        visit(run, first);
        offset += run.width;
        first += run.len;
    }
}

/// What became of a register that was to be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was no less.
    Same,
    Raised,
    /// The sketch must become dense; nothing has changed.
    Full,
}

/// Raises a register of a sketch. O(bytes).
pub(super) fn raise(bytes: &mut Vec<u8>, index: usize, value: u8) -> Outcome {
    if value > VALUE_MAX {
        return Outcome::Full;
    }
    let (mut offset, mut before, mut first) = (HEADER, HEADER, 0);
    let run = loop {
        let run = Run::at(bytes, offset).expect("the runs of a sketch have been checked");
        if index < first + run.len {
            break run;
        }
        (before, offset, first) = (offset, offset + run.width, first + run.len);
    };
    if run.value >= value {
        return Outcome::Same;
    }
    let mut replacement = Replacement::default();
    replacement.push(index - first, run.value);
    replacement.push(1, value);
    replacement.push(first + run.len - 1 - index, run.value);
    if replacement.len > run.width && bytes.len() + replacement.len - run.width > SPARSE_BYTES_MAX {
        return Outcome::Full;
    }
    bytes.splice(offset..offset + run.width, replacement.as_slice().iter().copied());
    merge(bytes, before);
    Outcome::Raised
}

/// Joins neighbours of equal value among the runs from an offset, which a change may have made. Which
/// ones is part of the sketch's bytes, and as in Redis.
fn merge(bytes: &mut Vec<u8>, mut offset: usize) {
    for _ in 0..MERGED_RUNS {
        let Some(run) = Run::at(bytes, offset) else { return };
        let next = Run::at(bytes, offset + run.width);
        match next.filter(|next| run.value > 0 && next.value == run.value) {
            Some(next) if run.len + next.len <= LEN_MAX => {
                bytes[offset + 1] = of_value(run.len + next.len, run.value);
                bytes.remove(offset);
            }
            _ => offset += run.width,
        }
    }
}
