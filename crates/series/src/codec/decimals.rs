//! Floating-point numbers that are decimals of few digits, as integers (ALP: "Adaptive Lossless
//! floating-Point Compression", SIGMOD 2024). Numbers that are no such decimals are exceptions.

use super::integers::{self, Integers};
use super::packing::Packed;
use super::positions::{self, Positions};
use super::words::{Reader, Words};
use crate::BLOCK_POINTS;
use alp::{ALPFloat, Exponents};

/// Share of exceptions up to which the exponents of the block before are used without a search.
const HINT_EXCEPTIONS_SHARE: usize = 64;

/// Share of exceptions above which the numbers are no decimals.
const EXCEPTIONS_MAX_SHARE: usize = 8;

/// Appends `numbers` and returns the exponents; appends nothing and returns `None` if more than an
/// eighth of them are no decimals. `hint` saves the search for exponents if it fits.
pub(super) fn encode(numbers: &[f64], hint: Option<Exponents>, into: &mut Words) -> Option<Exponents> {
    let hinted = hint.map(|exponents| f64::encode(numbers, Some(exponents)));
    let few = numbers.len() / HINT_EXCEPTIONS_SHARE;
    let (exponents, digits, positions, exceptions, _) = match hinted {
        Some(encoded) if encoded.2.len() <= few => encoded,
        _ => f64::encode(numbers, None),
    };
    if positions.len() > numbers.len() / EXCEPTIONS_MAX_SHARE {
        return None;
    }
    into.push(u64::from(exponents.e) | u64::from(exponents.f) << 8 | (positions.len() as u64) << 16);
    integers::encode(&digits, into);
    positions::encode(&positions, into);
    into.extend(&exceptions.iter().map(|number| number.to_bits()).collect::<Vec<_>>());
    Some(exponents)
}

/// Numbers that [`encode`] wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimals<'a> {
    digits: Integers<'a>,
    count: usize,
    exponents: Exponents,
    positions: Positions<'a>,
    exceptions: &'a [u64],
}

impl<'a> Decimals<'a> {
    /// Takes `count` numbers; `None` if words are missing or the description is impossible. O(1).
    #[inline]
    pub(super) fn read(from: &mut Reader<'a>, count: usize) -> Option<Self> {
        let head = from.word()?;
        let exponents = Exponents { e: (head & 0xff) as u8, f: (head >> 8 & 0xff) as u8 };
        let exception_count = usize::try_from(head >> 16).ok()?;
        let powers = f64::F10.len().min(f64::IF10.len());
        let known = usize::from(exponents.e) < powers && usize::from(exponents.f) < powers;
        if !known || exception_count > count {
            return None;
        }
        let digits = Integers::read(from, count)?;
        let positions = Positions::read(from, exception_count)?;
        let exceptions = from.take(exception_count)?;
        Some(Self { digits, count, exponents, positions, exceptions })
    }

    /// Whether the exceptions are in the block. O(exceptions).
    pub(super) fn is_well_formed(&self) -> bool {
        self.digits.is_well_formed() && self.positions.are_well_formed(self.count)
    }

    /// Returns what has a packed integer for each number.
    pub(super) fn packed(&self) -> Packed<'a> {
        self.digits.packed()
    }

    /// Returns the bits of the number at `index`. Costs as much as [`Integers::get`], and a search of
    /// the exceptions.
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        if let Some(exception) = self.positions.find(index) {
            return self.exceptions[exception];
        }
        f64::decode_single(self.digits.get(index), self.exponents).to_bits()
    }

    /// Writes the bits of all numbers to the front of `into`. O(count), no allocation.
    pub(super) fn decode(&self, into: &mut [u64; BLOCK_POINTS]) {
        self.digits.decode(into);
        for word in &mut into[..self.count] {
            *word = f64::decode_single(word.cast_signed(), self.exponents).to_bits();
        }
        for (position, bits) in self.positions.iter().zip(self.exceptions) {
            into[position] = *bits;
        }
    }
}
