//! What is said of a request, be it by a limiter or by a quota that no time gives anything back to.

use super::answer::{millis, signed};
use crate::value::limit::Algorithm;
use crate::wire::reply::Reply;
use std::cmp::Ordering;
use tidemark_counter::limiter::Decision;

/// What a limiter has granted, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) decision: Decision,
    pub(super) algorithm: Algorithm,
    /// The lease that was granted; 0: none was.
    pub(super) lease: u64,
}

/// What is answered to a request for units of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Of a limiter: time gives back what was used.
    Limiter(Answer),
    /// Of a counter: only a refund does.
    Counter {
        is_allowed: bool,
        /// The most that is ever admitted; `None` if there is no limit.
        limit: Option<i64>,
        /// What could be taken now; `None` if there is no limit.
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

    /// The lease that was granted, 0 if none was; `None` of what has no leases.
    pub(super) fn lease(&self) -> Option<u64> {
        match self {
            Self::Limiter(Answer { algorithm, lease, .. }) if algorithm.has_leases() => Some(*lease),
            _ => None,
        }
    }

    /// Allowed (1 or 0), limit, remaining, the milliseconds until a retry (-1 if there is nothing to wait for: it is allowed, or
    /// no time makes it so) and those until nothing counts any more (-1 if no time does that). A limit of -1, and what remains of it,
    /// is none. Who waits so long is not early: both times are rounded up.
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

    /// Which of two weighs more with the client: one that refuses, for longer, or leaves less.
    pub(super) fn weigh(&self, other: &Self) -> Ordering {
        let refuses = other.is_allowed().cmp(&self.is_allowed());
        let waits = if self.is_allowed() { Ordering::Equal } else { self.wait().cmp(&other.wait()) };
        refuses.then(waits).then_with(|| other.remaining().cmp(&self.remaining()))
    }

    /// Never is longer than any wait.
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
