//! Decision on a request, by a limiter or by a quota.

use super::answer::{millis, signed};
use crate::value::limit::Algorithm;
use crate::wire::reply::Reply;
use std::cmp::Ordering;
use tidemark_counter::limiter::Decision;

/// Decision of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) decision: Decision,
    pub(super) algorithm: Algorithm,
    /// Lease that was granted; 0 if none was.
    pub(super) lease: u64,
}

/// Decision on a request for units of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// By a limiter, which refills with time.
    Limiter(Answer),
    /// By a counter, which only refunds refill.
    Counter {
        is_allowed: bool,
        /// The limit; `None` if there is none.
        limit: Option<i64>,
        /// Units that could be taken now; `None` if there is no limit.
        available: Option<i64>,
    },
}

impl Verdict {
    pub(super) fn is_allowed(&self) -> bool {
        match self {
            Self::Limiter(Answer { decision, .. }) => decision.is_allowed,
            Self::Counter { is_allowed, .. } => *is_allowed,
        }
    }

    /// Returns the lease that was granted, 0 if none was; `None` if the algorithm has no leases.
    pub(super) fn lease(&self) -> Option<u64> {
        match self {
            Self::Limiter(Answer { algorithm, lease, .. }) if algorithm.has_leases() => Some(*lease),
            _ => None,
        }
    }

    /// Returns: allowed (1 or 0); limit; remaining; milliseconds until a retry, -1 if allowed or if
    /// time does not help; milliseconds until nothing counts any more, -1 if time does not help.
    /// Limit and remaining are -1 if there is no limit. Times are rounded up, so a client that
    /// waits for them is not early.
    pub(super) fn integers(&self) -> [i64; 5] {
        match self {
            Self::Limiter(Answer { decision, .. }) => [
                i64::from(decision.is_allowed),
                signed(decision.limit),
                signed(decision.remaining),
                match decision.retry_after {
                    Some(wait) if !decision.is_allowed => millis(wait),
                    _ => -1,
                },
                millis(decision.reset_after),
            ],
            Self::Counter { is_allowed, limit, available } => {
                [i64::from(*is_allowed), limit.unwrap_or(-1), available.unwrap_or(-1), -1, -1]
            }
        }
    }

    pub(super) fn answer(&self, reply: &mut Reply) {
        self.integers().into_iter().for_each(|integer| reply.integer(integer));
    }

    /// Compares two decisions by weight: refusals over grants, then the longer wait, then the less
    /// remaining.
    pub(super) fn weigh(&self, other: &Self) -> Ordering {
        let refuses = other.is_allowed().cmp(&self.is_allowed());
        let waits = if self.is_allowed() { Ordering::Equal } else { self.wait().cmp(&other.wait()) };
        refuses.then(waits).then_with(|| other.remaining().cmp(&self.remaining()))
    }

    /// Returns the wait; never is longer than any.
    fn wait(&self) -> (bool, Option<std::time::Duration>) {
        let wait = match self {
            Self::Limiter(Answer { decision, .. }) => decision.retry_after,
            Self::Counter { .. } => None,
        };
        (wait.is_none(), wait)
    }

    fn remaining(&self) -> u64 {
        match self {
            Self::Limiter(Answer { decision, .. }) => decision.remaining,
            Self::Counter { available, .. } => available.map_or(u64::MAX, i64::unsigned_abs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn limiter(is_allowed: bool, remaining: u64, wait_ms: Option<u64>) -> Verdict {
        let decision = Decision {
            is_allowed,
            limit: 10,
            remaining,
            retry_after: wait_ms.map(Duration::from_millis),
            reset_after: Duration::from_micros(1_500),
        };
        Verdict::Limiter(Answer { decision, algorithm: Algorithm::Gcra, lease: 0 })
    }

    fn quota(is_allowed: bool, available: Option<i64>) -> Verdict {
        Verdict::Counter { is_allowed, limit: available.map(|_| 10), available }
    }

    #[test]
    fn times_are_rounded_up_and_minus_one_is_none() {
        assert_eq!(limiter(true, 3, Some(0)).integers(), [1, 10, 3, -1, 2]);
        assert_eq!(limiter(false, 0, Some(7)).integers(), [0, 10, 0, 7, 2]);
        assert_eq!(limiter(false, 0, None).integers(), [0, 10, 0, -1, 2]);
        assert_eq!(quota(false, Some(3)).integers(), [0, 10, 3, -1, -1]);
        assert_eq!(quota(true, None).integers(), [1, -1, -1, -1, -1]);
    }

    #[test]
    fn what_refuses_weighs_more_then_what_lasts_longer_then_what_leaves_less() {
        let by_weight = [
            quota(true, None),
            limiter(true, 5, Some(0)),
            quota(true, Some(4)),
            limiter(false, 0, Some(7)),
            limiter(false, 0, Some(8)),
            quota(false, Some(3)),
        ];
        for (at, lighter) in by_weight.iter().enumerate() {
            for heavier in &by_weight[at + 1..] {
                assert_eq!(heavier.weigh(lighter), Ordering::Greater, "{heavier:?} {lighter:?}");
                assert_eq!(lighter.weigh(heavier), Ordering::Less, "{heavier:?} {lighter:?}");
            }
            assert_eq!(lighter.weigh(lighter), Ordering::Equal, "{lighter:?}");
        }
    }
}
