//! Pauses between retries.

use std::time::Duration;

/// Exponential backoff with jitter: pauses double from `first` to `longest`, each shortened at
/// random by up to a half, so that callers that failed together do not retry together.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
    random: u64,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self { first: first.min(longest), longest, failures: 0, random: seed | 1 }
    }

    /// Records a failure and returns the pause before the next attempt.
    pub(crate) fn fail(&mut self) -> Duration {
        let full = self.first.saturating_mul(1 << self.failures.min(30)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        // Xorshift: random enough for pauses.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let part = (self.random >> 33) as f64 / f64::from(1_u32 << 31);
        full.mul_f64(1.0 - part / 2.0)
    }

    /// Records a success: the next failure counts as the first.
    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_never_shorter_than_half() {
        let (first, longest) = (Duration::from_millis(10), Duration::from_secs(1));
        let mut backoff = Backoff::new(first, longest, 7);
        for failures in 0..100_u32 {
            let full = first.saturating_mul(1 << failures.min(20)).min(longest);
            let pause = backoff.fail();
            assert!(pause <= full && pause >= full / 2, "{failures}: {pause:?}");
        }
        backoff.succeed();
        assert!(backoff.fail() <= first);
    }
}
