//! Random numbers for loads and moments: repeatable, so that a run can be made again.

/// A fast generator of uniform numbers: repeatable, not secret.
#[derive(Clone, Debug)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    /// Streams of the same seed and different numbers are unrelated.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Random(fastrand::Rng::with_seed(seed ^ stream.wrapping_mul(0xD6E8_FEB8_6659_FD93)))
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
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
