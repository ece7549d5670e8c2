//! A counter that is one atomic number.

use std::sync::atomic::{AtomicI64, Ordering};

/// An integer that threads change by one atomic instruction each, the least cost of a shared
/// counter; with a limit, by one compare-and-swap. It does not track what is stored. All threads
/// write the same cache line.
///
/// Every method is linearizable.
///
/// ```
/// use tidemark_lab::baseline::Atomic;
///
/// let left = Atomic::new(3);
/// assert!(left.take(2));
/// assert!(!left.take(2));
/// left.add(1);
/// assert!(left.take(2));
/// assert_eq!(left.value(), 0);
/// ```
#[derive(Debug, Default)]
pub struct Atomic(AtomicI64);

// Relaxed ordering suffices: no other memory is published by the number.
impl Atomic {
    /// Creates a counter with this value.
    pub const fn new(value: i64) -> Self {
        Self(AtomicI64::new(value))
    }

    /// Returns the value.
    #[inline]
    pub fn value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds `amount`, which may be negative, and returns the new value. Wraps around on overflow.
    #[inline]
    pub fn add(&self, amount: i64) -> i64 {
        self.0.fetch_add(amount, Ordering::Relaxed).wrapping_add(amount)
    }

    /// Subtracts `amount` if the value does not become negative; returns whether it did.
    #[inline]
    pub fn take(&self, amount: u64) -> bool {
        let left = |value: i64| value.checked_sub_unsigned(amount).filter(|left| *left >= 0);
        amount == 0 || self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn threads_take_exactly_what_is_there() {
        let left = Atomic::new(9_999);
        let taken: usize = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..2000).filter(|_| left.take(2)).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((taken, left.value()), (4_999, 1));
    }

    #[test]
    fn a_take_leaves_alone_what_it_cannot_have() {
        for (value, amount) in [(0, 1), (-5, 1), (i64::MIN, 1), (i64::MAX, 1 << 63), (7, u64::MAX)] {
            let left = Atomic::new(value);
            assert!(!left.take(amount), "{amount} of {value}");
            assert!(left.take(0));
            assert_eq!(left.value(), value);
        }
        let all = Atomic::new(i64::MAX);
        assert!(all.take(i64::MAX as u64));
        assert_eq!(all.add(-3), -3);
    }
}
