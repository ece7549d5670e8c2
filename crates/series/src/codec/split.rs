//! Floating-point numbers of full precision: the few patterns of their front bits in a dictionary,
//! the rest packed (ALP for real doubles, of the same paper as [`decimals`](super::decimals)).
//! Fronts that the dictionary does not have are exceptions.

use super::packing::{Packed, bit_length, pack};
use super::positions::{self, Positions};
use super::words::{Reader, Words};
use crate::BLOCK_POINTS;
use alp::RDEncoder;

/// Bits of a front.
const FRONT_BITS: u32 = 16;

/// Most fronts of a dictionary.
const FRONTS_MAX: usize = 8;

/// Appends `numbers`.
pub(super) fn encode(numbers: &[f64], into: &mut Words) {
    let encoder = RDEncoder::new(numbers);
    let (fronts, rests, positions, exceptions) = encoder.split_parts(numbers);
    let rest_bits = encoder.right_bit_width();
    into.push(u64::from(rest_bits) | (encoder.codes().len() as u64) << 8 | (positions.len() as u64) << 16);
    let widened = |fronts: &[u16]| fronts.iter().map(|front| u64::from(*front)).collect::<Vec<_>>();
    pack(&widened(encoder.codes()), FRONT_BITS, into);
    pack(&widened(&fronts), code_bits(encoder.codes().len()), into);
    pack(&rests, u32::from(rest_bits), into);
    positions::encode(&positions, into);
    pack(&widened(&exceptions), FRONT_BITS, into);
}

fn code_bits(fronts: usize) -> u32 {
    bit_length(fronts as u64 - 1)
}

/// Numbers that [`encode`] wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split<'a> {
    count: usize,
    rest_bits: u32,
    fronts: [u64; FRONTS_MAX],
    codes: Packed<'a>,
    rests: Packed<'a>,
    positions: Positions<'a>,
    exceptions: Packed<'a>,
}

impl<'a> Split<'a> {
    /// Takes `count` numbers; `None` if words are missing or the description is impossible. O(1).
    pub(super) fn read(from: &mut Reader<'a>, count: usize) -> Option<Self> {
        let head = from.word()?;
        let rest_bits = (head & 0xff) as u32;
        let front_count = (head >> 8 & 0xff) as usize;
        let exception_count = usize::try_from(head >> 16).ok()?;
        let fits = (64 - FRONT_BITS..64).contains(&rest_bits) && (1..=FRONTS_MAX).contains(&front_count);
        if !fits || exception_count > count {
            return None;
        }
        let dictionary = Packed::read(from, front_count, FRONT_BITS)?;
        let codes = Packed::read(from, count, code_bits(front_count))?;
        let rests = Packed::read(from, count, rest_bits)?;
        let positions = Positions::read(from, exception_count)?;
        let exceptions = Packed::read(from, exception_count, FRONT_BITS)?;
        let mut fronts = [0; FRONTS_MAX];
        for (index, front) in fronts[..front_count].iter_mut().enumerate() {
            *front = dictionary.get(index);
        }
        Some(Self { count, rest_bits, fronts, codes, rests, positions, exceptions })
    }

    /// Whether the exceptions are in the block. O(exceptions).
    pub(super) fn is_well_formed(&self) -> bool {
        self.positions.are_well_formed(self.count)
    }

    /// Returns what has a packed integer for each number.
    pub(super) fn packed(&self) -> [Packed<'a>; 2] {
        [self.codes, self.rests]
    }

    /// Returns the bits of the number at `index`. O(1), and a search of the exceptions.
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        let front = match self.positions.find(index) {
            Some(exception) => self.exceptions.get(exception),
            None => self.front(self.codes.get(index)),
        };
        self.joined(front, self.rests.get(index))
    }

    #[inline]
    fn front(&self, code: u64) -> u64 {
        self.fronts[code as usize % FRONTS_MAX]
    }

    #[inline]
    fn joined(&self, front: u64, rest: u64) -> u64 {
        front << self.rest_bits | rest
    }

    /// Writes the bits of all numbers to the front of `into`. O(count), no allocation.
    pub(super) fn decode(&self, into: &mut [u64; BLOCK_POINTS]) {
        let mut codes = [0; BLOCK_POINTS];
        self.codes.unpack(&mut codes);
        for (exception, position) in self.positions.iter().enumerate() {
            // Above all codes: the exception's own place.
            codes[position] = (FRONTS_MAX + exception) as u64;
        }
        self.rests.unpack(into);
        for (rest, code) in into[..self.count].iter_mut().zip(codes) {
            let front = match (code as usize).checked_sub(FRONTS_MAX) {
                Some(exception) => self.exceptions.get(exception),
                None => self.front(code),
            };
            *rest = self.joined(front, *rest);
        }
    }
}
