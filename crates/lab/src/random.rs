//! Random numbers for loads and moments: repeatable, so that a run can be made again.

/// A fast generator of uniform numbers (SplitMix64): repeatable, not secret.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Streams of the same seed and different numbers are unrelated.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Random(seed ^ stream.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        random.next();
        random
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, uniform to within 2^-64 of `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // A load generator draws for every request: in a release build a bound of 0 gives 0, which is no number below it.
        debug_assert!(bound > 0, "no number is below 0");
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn streams_of_a_seed_repeat_and_differ() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (0..20).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 3), draw(7, 3));
        assert_ne!(draw(7, 3), draw(7, 4));
        assert_ne!(draw(7, 3), draw(8, 3));
        assert!(draw(1, 1).iter().all(|number| *number < 1000));
    }
}
