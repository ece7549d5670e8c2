//! Random numbers determined by a seed.

/// An odd number whose multiples are spread evenly: the golden ratio's fraction of 2^64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of numbers determined by its seed (`SplitMix64`, by Steele, Lea and Flood).
#[derive(Clone, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// Returns a number below `limit`, which is not zero. The bias towards any number is at most 1
    /// in 2^64 / `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "there is no number below 0");
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

/// Mixes a number: every bit of the result depends on every bit of the argument (the finisher of
/// `SplitMix64`).
#[inline]
pub(crate) fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
