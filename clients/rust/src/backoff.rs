//! The wait before the next attempt to connect.

use std::time::Duration;

/// When a watch reconnects.
///
/// It waits for [`delay_min`](Retry::delay_min) after the first failure and twice as long after
/// each further one, at most [`delay_max`](Retry::delay_max). Each wait is shortened at random by
/// up to half, so the clients of a restarted server do not all reconnect at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Longest wait after one failure.
    pub delay_min: Duration,
    /// Longest wait after any number of failures.
    pub delay_max: Duration,
    /// Number of failed attempts in a row after which the watch ends with
    /// [`Error::Unreachable`](crate::Error::Unreachable). With `None` the watch never gives up.
    pub attempts_max: Option<u32>,
}

impl Default for Retry {
    /// Returns waits between 50 milliseconds and 5 seconds, without a limit of attempts.
    fn default() -> Retry {
        Retry { delay_min: Duration::from_millis(50), delay_max: Duration::from_secs(5), attempts_max: None }
    }
}

/// Counts failures in a row.
#[derive(Debug)]
pub(crate) struct Backoff {
    retry: Retry,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(retry: Retry) -> Backoff {
        Backoff { retry, failures: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Notes a failure and returns how long to wait, by a random number; `Err` with the number of
    /// failures if no further attempt is allowed.
    pub(crate) fn fail(&mut self, random: u64) -> Result<Duration, u32> {
        let doublings = self.failures;
        self.failures = self.failures.saturating_add(1);
        if self.retry.attempts_max.is_some_and(|attempts_max| self.failures >= attempts_max) {
            return Err(self.failures);
        }
        let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let longest = self.retry.delay_min.saturating_mul(factor).min(self.retry.delay_max);
        let half = longest / 2;
        // 16 random bits are fine enough, and nothing overflows: the quotient is at most one.
        Ok(half + half.mul_f64((random & 0xffff) as f64 / 65_535.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_bound_and_chance_takes_up_to_half_off() {
        let retry = Retry {
            delay_min: Duration::from_millis(100),
            delay_max: Duration::from_secs(1),
            attempts_max: None,
        };
        for (random, milliseconds) in
            [(0, [50, 100, 200, 400, 500, 500]), (u64::MAX, [100, 200, 400, 800, 1000, 1000])]
        {
            let mut backoff = Backoff::new(retry);
            for expected in milliseconds {
                assert_eq!(backoff.fail(random), Ok(Duration::from_millis(expected)));
            }
            backoff.reset();
            assert_eq!(backoff.fail(random), Ok(Duration::from_millis(milliseconds[0])));
        }
    }

    #[test]
    fn no_number_of_failures_and_no_delay_overflows() {
        let retry = Retry { delay_min: Duration::from_secs(1), delay_max: Duration::MAX, attempts_max: None };
        let mut backoff = Backoff::new(retry);
        for _ in 0..200 {
            assert!(backoff.fail(u64::MAX).is_ok());
        }
        let mut backoff = Backoff::new(Retry { delay_min: Duration::MAX, ..retry });
        assert!(backoff.fail(u64::MAX).is_ok());
    }

    #[test]
    fn after_the_last_attempt_it_is_over() {
        let mut backoff = Backoff::new(Retry { attempts_max: Some(3), ..Retry::default() });
        assert!(backoff.fail(0).is_ok());
        assert!(backoff.fail(0).is_ok());
        assert_eq!(backoff.fail(0), Err(3));
    }
}
