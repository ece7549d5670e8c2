//! A limit on memory that many holders share, for example the buffers of all clients.
//!
//! A holder charges the allocated size of its buffers. The shared counter therefore changes only
//! when a buffer grows or is freed, not with every command.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shared counter, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Used(AtomicUsize);

/// A limit in bytes, and the bytes used.
#[derive(Debug)]
pub struct MemoryBudget {
    used: Used,
    limit: AtomicUsize,
    /// Largest total that a holder was refused since the last [`MemoryBudget::take_refused`]; 0 if
    /// none was.
    refused: AtomicUsize,
    refusals: AtomicUsize,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget {
            used: Used::default(),
            limit: AtomicUsize::new(limit),
            refused: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
        }
    }

    /// Changes the limit; existing charges stay.
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes charged by all holders.
    pub fn used(&self) -> usize {
        self.used.0.load(Ordering::Relaxed)
    }

    /// Number of refusals since the start.
    pub fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Whether memory must be freed: usage exceeds the limit, or a charge was refused.
    #[inline]
    pub fn needs_relief(&self) -> bool {
        self.used() > self.limit() || self.refused.load(Ordering::Relaxed) > 0
    }

    /// Takes the largest total that a holder was refused since the last call.
    pub fn take_refused(&self) -> usize {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Creates an empty charge.
    pub fn charge(self: &Arc<Self>) -> MemoryCharge {
        MemoryCharge { budget: Arc::clone(self), bytes: 0 }
    }
}

/// The bytes that one holder has charged. Dropping it returns them.
#[derive(Debug)]
pub struct MemoryCharge {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryCharge {
    /// Bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The budget that this charges.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Charges `bytes` that are allocated already, regardless of the limit.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.used.0.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            let before = self.budget.used.0.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            let returned = self.bytes - bytes;
            assert!(before >= returned, "{returned} bytes are returned of {before} that are used");
        }
        self.bytes = bytes;
    }

    /// Charges `wanted` bytes in total, or as many as the limit allows, but at least `needed` plus
    /// a sixteenth (at most `wanted`): smaller steps would copy a growing buffer too often. Returns
    /// `false` if that much is not available; then only the refusal is recorded.
    #[must_use]
    pub fn reach(&mut self, needed: usize, wanted: usize) -> bool {
        assert!(needed <= wanted, "{needed} bytes are needed and only {wanted} wanted");
        let least = needed.saturating_add(needed / 16).min(wanted);
        let mut more = wanted - least;
        while !self.try_set(least + more) {
            if more == 0 {
                self.budget.refused.fetch_max(least, Ordering::Relaxed);
                self.budget.refusals.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            more /= 2;
        }
        true
    }

    fn try_set(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let limit = self.budget.limit();
        let charged = self.budget.used.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= limit)
        });
        if charged.is_ok() {
            self.bytes += more;
        }
        charged.is_ok()
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_together_reach_the_limit_and_not_more() {
        let budget = Arc::new(MemoryBudget::new(100));
        let (mut one, mut other) = (budget.charge(), budget.charge());
        assert!(one.reach(10, 60));
        assert!(other.reach(32, 46), "what is needed fits although what is wanted does not");
        assert_eq!((one.bytes(), other.bytes(), budget.used()), (60, 40, 100));
        assert!(!other.reach(40, 80) && budget.needs_relief());
        assert_eq!((budget.take_refused(), budget.used(), budget.refusals()), (42, 100, 1));
        assert!(!budget.needs_relief());
        one.set(200);
        assert!(budget.needs_relief(), "what is allocated counts beyond the limit");
        drop(one);
        assert_eq!(budget.used(), 40);
        assert!(other.reach(100, 100) && !budget.needs_relief());
        drop(other);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn threads_that_charge_together_stay_within_the_limit() {
        let budget = Arc::new(MemoryBudget::new(1000));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let mut charge = budget.charge();
                        let _ = charge.reach(300, 700);
                        assert!(budget.used() <= 1000);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
