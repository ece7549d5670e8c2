//! A fixed-point number with a bit for every bit that a floating-point number can have, from 2^-1074
//! on (a long accumulator: Kulisch, "Computer Arithmetic and Validity").
//!
//! The crate `xsum` 0.1.6 would do the same, but rounds some negative sums to a neighbour (-1e16
//! alone, for one).

/// Words of 64 bits: 2,098 bits for finite numbers, 64 for carries and the sign.
const WORDS: usize = (2_098_usize + 64).div_ceil(64);

/// An exact sum, as a two's complement number.
#[derive(Debug, Clone)]
pub(super) struct Superaccumulator {
    words: [u64; WORDS],
    /// Sum of what is not finite; zero if there is none.
    special: f64,
}

impl Default for Superaccumulator {
    fn default() -> Self {
        Self { words: [0; WORDS], special: 0.0 }
    }
}

impl Superaccumulator {
    /// Adds a number. O(1); a carry may pass through all words.
    pub(super) fn add(&mut self, number: f64) {
        if !number.is_finite() {
            self.special += number;
            return;
        }
        let bits = number.to_bits();
        let (field, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        // A subnormal number has the exponent of the lowest normal one, without the implied bit.
        let mantissa = if field == 0 { fraction } else { fraction | 1 << 52 };
        let position = field.saturating_sub(1) as usize;
        let (word, shift) = (position / 64, position % 64);
        let shifted = u128::from(mantissa) << shift;
        let halves = [shifted as u64, (shifted >> 64) as u64];
        if number < 0.0 { self.subtract(word, halves) } else { self.add_at(word, halves) }
    }

    fn add_at(&mut self, word: usize, halves: [u64; 2]) {
        let mut carry = false;
        for (index, slot) in self.words[word..].iter_mut().enumerate() {
            let addend = halves.get(index).copied().unwrap_or(0);
            if index >= 2 && !carry {
                return;
            }
            (*slot, carry) = slot.carrying_add(addend, carry);
        }
    }

    fn subtract(&mut self, word: usize, halves: [u64; 2]) {
        let mut borrow = false;
        for (index, slot) in self.words[word..].iter_mut().enumerate() {
            let subtrahend = halves.get(index).copied().unwrap_or(0);
            if index >= 2 && !borrow {
                return;
            }
            (*slot, borrow) = slot.borrowing_sub(subtrahend, borrow);
        }
    }

    /// What [`Superaccumulator::scaled_down`] divides by: 2^64, above every number of numbers.
    pub(super) const SCALE: f64 = 18_446_744_073_709_551_616.0;

    /// Returns the sum, rounded to the nearest number, ties to even; a zero is positive.
    pub(super) fn rounded(&self) -> f64 {
        self.divided(0)
    }

    /// Returns a large sum divided by [`Superaccumulator::SCALE`], so that it is finite.
    pub(super) fn scaled_down(&self) -> f64 {
        self.divided(64)
    }

    /// Returns the sum divided by a power of two, rounded; the result may not be subnormal unless the
    /// power is 0.
    fn divided(&self, power: u32) -> f64 {
        if self.special != 0.0 {
            return self.special;
        }
        let negative = self.words[WORDS - 1] >> 63 == 1;
        let magnitude = if negative { self.negated() } else { self.words };
        let Some(top) = magnitude.iter().rposition(|word| *word != 0) else { return 0.0 };
        let bits = 64 * top as u32 + 64 - magnitude[top].leading_zeros();
        let rounded = round(&magnitude, bits, power);
        if negative { -rounded } else { rounded }
    }

    fn negated(&self) -> [u64; WORDS] {
        let mut words = self.words.map(|word| !word);
        for word in &mut words {
            let carry;
            (*word, carry) = word.overflowing_add(1);
            if !carry {
                break;
            }
        }
        words
    }
}

/// Returns the nearest number to a magnitude of `bits` bits, at least one, divided by `2^power`.
fn round(magnitude: &[u64; WORDS], bits: u32, power: u32) -> f64 {
    let bit = |index: u32| magnitude[index as usize / 64] >> (index % 64) & 1 == 1;
    // The lowest bit of the result; a subnormal number has them all.
    let lowest = bits.saturating_sub(53);
    let mut mantissa =
        (lowest..bits).rev().fold(0_u64, |mantissa, index| mantissa << 1 | u64::from(bit(index)));
    if lowest > 0 && bit(lowest - 1) {
        let (word, shift) = ((lowest - 1) as usize / 64, (lowest - 1) % 64);
        let below =
            magnitude[..word].iter().any(|word| *word != 0) || magnitude[word] & ((1 << shift) - 1) != 0;
        if below || mantissa & 1 == 1 {
            mantissa += 1;
        }
    }
    // The mantissa's highest bit, and the bit more that rounding may give it, count the exponent up.
    let exponent = lowest.checked_sub(power).expect("only large sums are divided");
    let bits = (u64::from(exponent) << 52) + mantissa;
    if bits > f64::INFINITY.to_bits() { f64::INFINITY } else { f64::from_bits(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = Superaccumulator::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum.rounded()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn one_number_is_its_own_sum(number in any::<f64>()) {
            prop_assert_eq!(sum(&[number]).to_bits(), (number + 0.0).to_bits());
        }

        #[test]
        fn two_numbers_have_the_sum_of_the_processor(first in any::<f64>(), second in any::<f64>()) {
            prop_assert_eq!(sum(&[first, second]).to_bits(), (first + second + 0.0).to_bits());
        }

        #[test]
        fn near_numbers_have_the_sum_of_integers(
            numbers in proptest::collection::vec(-1_i64 << 53..1_i64 << 53, 0..200),
            exponent in -1_000_i32..900,
        ) {
            let exact: i128 = numbers.iter().map(|number| i128::from(*number)).sum();
            let power = super::super::power_of_two(exponent);
            let scaled: Vec<f64> = numbers.iter().map(|number| *number as f64 * power).collect();
            prop_assert_eq!(sum(&scaled), exact as f64 * power);
        }

        #[test]
        fn what_is_taken_away_again_leaves_nothing(numbers in proptest::collection::vec(any::<f64>(), 0..50)) {
            let finite: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
            let both: Vec<f64> = finite.iter().copied().chain(finite.iter().rev().map(|number| -number)).collect();
            prop_assert_eq!(sum(&both).to_bits(), 0);
        }
    }

    #[test]
    fn sums_at_the_ends_of_the_range_are_rounded_once() {
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, 1.0, -f64::MAX]), 1.0);
        assert_eq!(sum(&[f64::MAX, super::super::power_of_two(970)]), f64::INFINITY, "a tie rounds to even");
        assert_eq!(sum(&[f64::MAX, f64::MAX / 2_f64.powi(54)]), f64::MAX);
        assert_eq!(sum(&[5e-324; 3]), 1.5e-323);
        assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), 2.225_073_858_507_201e-308);
        assert_eq!(sum(&[-1e16]), -1e16);
        let mut large = Superaccumulator::default();
        [1.5e308, 1.5e308].into_iter().for_each(|number| large.add(number));
        assert_eq!(large.scaled_down() / 2.0 * Superaccumulator::SCALE, 1.5e308);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }
}
