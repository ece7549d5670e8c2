//! A counter that is one atomic number.

use std::sync::atomic::{AtomicI64, Ordering};

/// A number that threads move by one atomic instruction each: the least that a shared counter can cost, and with a limit, by one
/// compare-and-swap. It knows nothing of what is stored and what is not, so every move is one to be stored, or none is; and all threads
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

// The number is all that there is: no other memory is published by it.
impl Atomic {
    /// A counter that has this value.
    pub const fn new(value: i64) -> Self {
        Self(AtomicI64::new(value))
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds `amount`, or takes it away if it is negative: the value behind it. A value that leaves the range of 64 bits comes in at the other
    /// end.
    #[inline]
    pub fn add(&self, amount: i64) -> i64 {
        self.0.fetch_add(amount, Ordering::Relaxed).wrapping_add(amount)
    }

    /// Takes `amount` away if the value does not become negative: whether it has.
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
