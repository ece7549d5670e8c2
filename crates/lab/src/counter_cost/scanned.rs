//! The original's former counter design, for comparison.

use std::sync::{Mutex, PoisonError};

/// Adjacent parts that every take sums under a lock.
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
    use super::Scanned;

    #[test]
    fn it_takes_no_more_than_there_is() {
        let scanned = Scanned::new(3);
        assert_eq!([2, 2, 1, 1].map(|amount| scanned.take(amount, 9)), [true, false, true, false]);
    }
}
