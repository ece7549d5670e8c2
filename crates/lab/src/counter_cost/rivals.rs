//! What stands beside counters: a limiter of one word, and what the original's counters once were.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Units that are left, in one word.
pub(super) struct Word(AtomicI64);

impl Word {
    pub(super) fn new(units: i64) -> Self {
        Word(AtomicI64::new(units))
    }

    /// Takes so many if there are.
    #[inline]
    pub(super) fn take(&self, amount: i64) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| (left >= amount).then(|| left - amount)).is_ok()
    }
}

/// Parts that lie side by side and are added up under a lock for every take.
pub(super) struct Scanned {
    limit: i64,
    parts: Mutex<[i64; 8]>,
}

impl Scanned {
    pub(super) fn new(limit: i64) -> Self {
        Scanned { limit, parts: Mutex::new([0; 8]) }
    }

    pub(super) fn take(&self, amount: i64, part: usize) -> bool {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = parts.iter().sum::<i64>() + amount <= self.limit;
        if is_there {
            parts[part % 8] += amount;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::{Scanned, Word};

    #[test]
    fn neither_takes_more_than_there_is() {
        let (word, scanned) = (Word::new(3), Scanned::new(3));
        assert_eq!([2, 2, 1, 1].map(|amount| word.take(amount)), [true, false, true, false]);
        assert_eq!([2, 2, 1, 1].map(|amount| scanned.take(amount, 9)), [true, false, true, false]);
    }
}
