//! Sums of floating-point numbers that are rounded once, so they do not depend on the order or on
//! how the points lie in blocks.
//!
//! Most slices are summed without rounding by splitting each number at one bit position (as in
//! "Parallel Reproducible Summation", IEEE Transactions on Computers 2015). Where numbers are too
//! far apart for that, and for the sums of many slices, there is a [`Superaccumulator`].

use superaccumulator::Superaccumulator;

mod superaccumulator;

/// Most numbers of a slice for which [`Halves::of`] is exact.
const HALVES_MAX: usize = 1 << 10;

/// Largest exponent at which the splitting constant is finite.
const EXPONENT_MAX: i32 = 1_000;

/// An exact sum: its high and its low part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Halves {
    pub high: f64,
    pub low: f64,
}

/// Number of sums that a processor can add to at the same time.
const LANES: usize = 4;

impl Halves {
    /// Returns the exact sum of at most 1,024 numbers; `None` if two parts cannot hold it, or if a
    /// number is not finite. O(n), no allocation.
    ///
    /// With a largest magnitude below `2^(top + 1)`, the high parts are multiples of `2^(top - 41)`,
    /// and 1,024 of them add up to less than 2^53 times that. The low parts are at most `2^(top - 42)`,
    /// so they add up exactly if they are multiples of `2^(top - 85)`. Those of numbers from
    /// `2^(top - 33)` on are, as such numbers have 52 bits behind their first; of others it is checked.
    pub(crate) fn of(numbers: &[f64]) -> Option<Self> {
        if numbers.len() > HALVES_MAX {
            return None;
        }
        let (smallest, largest) = magnitudes(numbers);
        let top = exponent(largest);
        if top > EXPONENT_MAX {
            return None;
        }
        // All numbers are multiples of the lowest bit that a number can have.
        let unit = power_of_two((top - 33).max(-1022));
        if smallest < unit && !are_multiples(numbers, top, unit) {
            return None;
        }
        let (mut high, mut low) = ([0.0; LANES], [0.0; LANES]);
        let (chunks, rest) = numbers.as_chunks::<LANES>();
        for chunk in chunks {
            let upper = chunk.map(|number| upper_part(number, top));
            high.iter_mut().zip(&upper).for_each(|(sum, upper)| *sum += upper);
            low.iter_mut()
                .zip(chunk.iter().zip(&upper))
                .for_each(|(sum, (number, upper))| *sum += number - upper);
        }
        for (lane, number) in rest.iter().enumerate() {
            let upper = upper_part(*number, top);
            high[lane] += upper;
            low[lane] += number - upper;
        }
        let halves = Self {
            high: folded(high, |left, right| left + right),
            low: folded(low, |left, right| left + right),
        };
        // A NaN has no magnitude.
        halves.high.is_finite().then_some(halves)
    }
}

/// Combines what the lanes have.
#[inline]
fn folded([first, second, third, fourth]: [f64; LANES], combine: impl Fn(f64, f64) -> f64) -> f64 {
    combine(combine(first, third), combine(second, fourth))
}

/// Returns the multiple of `2^(top - 41)` that is nearest to a number below `2^(top + 1)`.
#[inline]
fn upper_part(number: f64, top: i32) -> f64 {
    let splitter = 1.5 * power_of_two(top + 11);
    (number + splitter) - splitter
}

/// Whether the low parts of all numbers are multiples of `unit / 2^52`.
fn are_multiples(numbers: &[f64], top: i32, unit: f64) -> bool {
    let checker = 1.5 * unit;
    // The bits of what is lost, of which a NaN has some.
    let lost = |number: f64| {
        let rest = number - upper_part(number, top);
        (((rest + checker) - checker) - rest).to_bits()
    };
    numbers.iter().fold(0, |all, number| all | lost(*number)) == 0
}

/// Returns the smallest and the largest magnitude, NaNs left out; infinity and zero without others.
fn magnitudes(numbers: &[f64]) -> (f64, f64) {
    // A NaN is neither smaller nor larger.
    let smaller = |left: f64, right: f64| if right < left { right } else { left };
    let larger = |left: f64, right: f64| if right > left { right } else { left };
    let (mut smallest, mut largest) = ([f64::INFINITY; LANES], [0.0_f64; LANES]);
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    for chunk in chunks {
        let magnitudes = chunk.map(f64::abs);
        smallest = std::array::from_fn(|lane| smaller(smallest[lane], magnitudes[lane]));
        largest = std::array::from_fn(|lane| larger(largest[lane], magnitudes[lane]));
    }
    for (lane, number) in rest.iter().enumerate() {
        smallest[lane] = smaller(smallest[lane], number.abs());
        largest[lane] = larger(largest[lane], number.abs());
    }
    (folded(smallest, smaller), folded(largest, larger))
}

/// Returns the binary exponent of a number that is not negative; that of the lowest normal number for
/// zero and subnormal ones, whose last bit has the same weight.
fn exponent(number: f64) -> i32 {
    ((number.to_bits() >> 52) as i32 - 1023).max(-1022)
}

/// Returns `2^exponent` for the exponent of a normal number.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A sum that is exact until it is rounded.
#[derive(Debug, Default, Clone)]
pub(crate) struct ExactSum {
    /// Exact sums of slices, not added up yet.
    parts: [Halves; PARTS],
    count: usize,
    rest: Option<Box<Superaccumulator>>,
}

/// Sums of slices that are kept before a superaccumulator is needed.
const PARTS: usize = 4;

impl ExactSum {
    /// Adds numbers. O(n).
    pub(crate) fn add_all(&mut self, numbers: &[f64]) {
        for slice in numbers.chunks(HALVES_MAX) {
            match Halves::of(slice) {
                Some(halves) => self.add_halves(halves),
                None => slice.iter().for_each(|number| self.superaccumulator().add(*number)),
            }
        }
    }

    /// Adds a number.
    pub(crate) fn add(&mut self, number: f64) {
        if number.is_finite() {
            self.add_halves(Halves { high: number, low: 0.0 });
        } else {
            self.superaccumulator().add(number);
        }
    }

    /// Adds an exact sum.
    pub(crate) fn add_halves(&mut self, halves: Halves) {
        if self.count == PARTS {
            self.move_parts();
        }
        self.parts[self.count] = halves;
        self.count += 1;
    }

    fn superaccumulator(&mut self) -> &mut Superaccumulator {
        self.rest.get_or_insert_default()
    }

    fn move_parts(&mut self) {
        let parts = self.parts;
        let count = std::mem::take(&mut self.count);
        let accumulator = self.superaccumulator();
        for halves in &parts[..count] {
            accumulator.add(halves.high);
            accumulator.add(halves.low);
        }
    }

    /// Returns the sum, rounded to the nearest number; a zero is positive. Not a number if an
    /// infinity of each sign, or a NaN, was added.
    pub(crate) fn rounded(&mut self) -> f64 {
        // The sum of two numbers is rounded once.
        if self.rest.is_none() && self.count <= 1 {
            let only = if self.count == 0 { Halves::default() } else { self.parts[0] };
            return only.high + only.low + 0.0;
        }
        self.move_parts();
        self.superaccumulator().rounded()
    }

    /// Returns the sum divided by `count`, which is finite even where the sum is not.
    pub(crate) fn mean(&mut self, count: u64) -> f64 {
        let sum = self.rounded();
        if !sum.is_infinite() {
            return sum / count as f64;
        }
        self.move_parts();
        self.superaccumulator().scaled_down() / count as f64 * Superaccumulator::SCALE
    }

    /// Begins again at zero.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.rest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference(numbers: &[f64]) -> f64 {
        let mut sum = Superaccumulator::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum.rounded()
    }

    fn numbers() -> impl Strategy<Value = Vec<f64>> {
        let wild = any::<f64>().prop_filter("finite", |number| number.is_finite());
        let near = (-1_000_000_i64..1_000_000).prop_map(|digits| digits as f64 / 100.0);
        let small =
            prop_oneof![Just(5e-324), Just(-5e-324), Just(f64::MIN_POSITIVE), Just(-0.0), Just(1e-310)];
        let cancelling = prop_oneof![Just(1e16), Just(-1e16), Just(1.0), Just(0.1), Just(1e-3)];
        prop_oneof![
            proptest::collection::vec(near, 0..1100),
            proptest::collection::vec(wild, 0..50),
            proptest::collection::vec(small, 0..50),
            proptest::collection::vec(cancelling, 0..200),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_sum_is_the_exact_one_rounded_once(numbers in numbers()) {
            let mut sum = ExactSum::default();
            sum.add_all(&numbers);
            prop_assert_eq!(sum.rounded().to_bits(), reference(&numbers).to_bits());
            if let Some(halves) = Halves::of(&numbers) {
                prop_assert_eq!((halves.high + halves.low + 0.0).to_bits(), reference(&numbers).to_bits());
            }
        }

        #[test]
        fn the_sum_does_not_depend_on_how_the_numbers_are_sliced(
            numbers in numbers(),
            cuts in proptest::collection::vec(1_usize..200, 1..50),
        ) {
            let mut sum = ExactSum::default();
            let mut rest = &numbers[..];
            for cut in cuts {
                let (slice, behind) = rest.split_at(cut.min(rest.len()));
                sum.add_all(slice);
                rest = behind;
            }
            for number in rest {
                sum.add(*number);
            }
            prop_assert_eq!(sum.rounded().to_bits(), reference(&numbers).to_bits());
        }
    }

    #[test]
    fn infinities_and_nan_follow_the_rules_of_addition() {
        let sum = |numbers: &[f64]| {
            let mut sum = ExactSum::default();
            sum.add_all(numbers);
            sum.rounded()
        };
        assert_eq!(sum(&[1.0, f64::INFINITY]), f64::INFINITY);
        assert!(sum(&[f64::NEG_INFINITY, f64::INFINITY]).is_nan());
        assert!(sum(&[f64::NAN, 1.0]).is_nan());
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
    }

    #[test]
    fn numbers_at_the_limit_of_the_spread_add_up_exactly() {
        // 1,024 times the two magnitudes that are as far apart as two halves can hold, all bits set.
        let large = f64::from_bits(1.0_f64.to_bits() | ((1 << 52) - 1));
        let small = large * power_of_two(-33);
        let numbers: Vec<f64> = (0..1024).map(|index| if index % 2 == 0 { large } else { small }).collect();
        let halves = Halves::of(&numbers).unwrap();
        let mut exact = Superaccumulator::default();
        numbers.iter().for_each(|number| exact.add(*number));
        exact.add(-halves.high);
        exact.add(-halves.low);
        assert_eq!(exact.rounded(), 0.0);
        assert_eq!(Halves::of(&[large, small / 2.0]), None);
    }
}
