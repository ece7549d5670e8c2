//! When writes of a round were acknowledged, for all of its clients: what their gaps are made of.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The state of a round that its clients share. All times are nanoseconds since it began.
#[derive(Debug)]
pub(super) struct Moments {
    began: Instant,
    /// Time of the fault; `u64::MAX` until then.
    fault_at: AtomicU64,
    /// Whether a leader is awaited.
    is_failing: AtomicBool,
    is_over: AtomicBool,
    acknowledged: AtomicU64,
    /// Clients with an acknowledged write since the fault.
    recovered: AtomicU64,
    tried_while_failing: AtomicU64,
    done_while_failing: AtomicU64,
    /// Time of the newest acknowledgement of any client; 0 before the first.
    last: AtomicU64,
    all: Gaps,
    one: Gaps,
}

/// The longest gap that ended before the fault, and the longest that ended after it.
#[derive(Debug, Default)]
struct Gaps {
    before: AtomicU64,
    after: AtomicU64,
}

/// Longest times between two acknowledged writes, in milliseconds; none if there were no two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LongestGaps {
    /// Of one client, across and after the fault.
    pub(super) client: Option<f64>,
    /// Of all clients together, across and after the fault.
    pub(super) cluster: Option<f64>,
    /// Of one client, before the fault: what the machine itself causes.
    pub(super) client_before: Option<f64>,
}

/// A client's own part.
#[derive(Debug, Default)]
pub(super) struct OwnMoments {
    last: u64,
    has_recovered: bool,
}

impl Moments {
    pub(super) fn begin() -> Self {
        Moments {
            began: Instant::now(),
            fault_at: AtomicU64::new(u64::MAX),
            is_failing: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            recovered: AtomicU64::new(0),
            tried_while_failing: AtomicU64::new(0),
            done_while_failing: AtomicU64::new(0),
            last: AtomicU64::new(0),
            all: Gaps::default(),
            one: Gaps::default(),
        }
    }

    fn now(&self) -> u64 {
        // Never 0, which stands for no time.
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// Notes that the fault happens now.
    pub(super) fn fault(&self) {
        self.is_failing.store(true, Ordering::Release);
        self.fault_at.store(self.now(), Ordering::Release);
    }

    /// Notes that there is a leader again.
    pub(super) fn end_failing(&self) {
        self.is_failing.store(false, Ordering::Release);
    }

    /// Asks the clients to stop.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Notes that a client begins to write.
    pub(super) fn try_write(&self) {
        if self.is_failing.load(Ordering::Acquire) {
            self.tried_while_failing.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a client's write was acknowledged.
    pub(super) fn acknowledge(&self, own: &mut OwnMoments) {
        self.acknowledge_at(self.now(), own);
    }

    fn acknowledge_at(&self, now: u64, own: &mut OwnMoments) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        if self.is_failing.load(Ordering::Acquire) {
            self.done_while_failing.fetch_add(1, Ordering::Relaxed);
        }
        let is_after = now > self.fault_at.load(Ordering::Acquire);
        let newest = self.last.fetch_max(now, Ordering::AcqRel);
        for (gaps, last) in [(&self.all, newest), (&self.one, own.last)] {
            if last > 0 {
                gaps.note(now.saturating_sub(last), is_after);
            }
        }
        own.last = now;
        if is_after && !std::mem::replace(&mut own.has_recovered, true) {
            self.recovered.fetch_add(1, Ordering::Release);
        }
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Returns the number of clients with an acknowledged write since the fault.
    pub(super) fn recovered(&self) -> u64 {
        self.recovered.load(Ordering::Acquire)
    }

    /// Returns the writes that clients began while a leader was awaited, and the acknowledged ones.
    pub(super) fn while_failing(&self) -> (u64, u64) {
        (self.tried_while_failing.load(Ordering::Relaxed), self.done_while_failing.load(Ordering::Relaxed))
    }

    pub(super) fn longest(&self) -> LongestGaps {
        let millis =
            |gap: &AtomicU64| Some(gap.load(Ordering::Acquire) as f64 / 1e6).filter(|gap| *gap > 0.0);
        LongestGaps {
            client: millis(&self.one.after),
            cluster: millis(&self.all.after),
            client_before: millis(&self.one.before),
        }
    }

    /// Returns the time since the round began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Gaps {
    fn note(&self, nanos: u64, is_after: bool) {
        let longest = if is_after { &self.after } else { &self.before };
        longest.fetch_max(nanos, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::{LongestGaps, Moments, OwnMoments};
    use std::sync::atomic::Ordering;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_gap_across_the_fault_belongs_to_it() {
        let moments = Moments::begin();
        let (mut one, mut other) = (OwnMoments::default(), OwnMoments::default());
        moments.acknowledge_at(10 * MS, &mut one);
        moments.acknowledge_at(14 * MS, &mut other);
        moments.acknowledge_at(17 * MS, &mut one);
        moments.fault_at.store(20 * MS, Ordering::Release);
        assert_eq!(moments.recovered(), 0);
        moments.acknowledge_at(100 * MS, &mut one);
        moments.acknowledge_at(130 * MS, &mut other);
        moments.acknowledge_at(131 * MS, &mut other);
        assert_eq!((moments.recovered(), moments.acknowledged()), (2, 6));
        let expected = LongestGaps { client: Some(116.0), cluster: Some(83.0), client_before: Some(7.0) };
        assert_eq!(moments.longest(), expected);
    }

    #[test]
    fn one_acknowledgement_is_no_gap() {
        let moments = Moments::begin();
        moments.acknowledge(&mut OwnMoments::default());
        assert_eq!(moments.longest(), LongestGaps::default());
    }
}
