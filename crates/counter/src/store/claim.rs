//! Ownership of writers' names, and the order of batches.

use super::batch::Batch;
use super::error::Error;

/// Ownership of a writer's name. The default is the state of a name that was never claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claim {
    /// Fencing token: above all earlier ones; batches carry it. 1 or more.
    pub epoch: u64,
    /// Number of the last batch that was applied under this name, 0 if there was none. The next
    /// batch has the next number.
    pub last_sequence: u64,
}

/// Answer of a store that has a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It was applied now.
    Applied,
    /// It had been applied before.
    Duplicate,
}

impl Claim {
    /// Returns what a store with this claim must answer to the batch; `None` if it is the next one
    /// and must be applied.
    ///
    /// # Errors
    /// [`Error::Fenced`], [`Error::Forgotten`], [`Error::Gap`].
    pub fn judge(self, batch: &Batch) -> Result<Option<Receipt>, Error> {
        let writer = || batch.writer.clone();
        if batch.epoch < self.epoch {
            return Err(Error::Fenced { writer: writer(), epoch: self.epoch });
        }
        if batch.epoch > self.epoch || self.epoch == 0 {
            return Err(Error::Forgotten { writer: writer(), claimed: batch.epoch, known: self.epoch });
        }
        let next = self.last_sequence.checked_add(1);
        if next == Some(batch.sequence) {
            Ok(None)
        } else if batch.sequence == self.last_sequence && batch.sequence > 0 {
            Ok(Some(Receipt::Duplicate))
        } else {
            Err(Error::Gap { sent: batch.sequence, expected: next.unwrap_or(u64::MAX) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(known: Claim, epoch: u64, sequence: u64) -> Result<Option<Receipt>, Error> {
        known.judge(&Batch { writer: "w".into(), epoch, sequence, deltas: Vec::new() })
    }

    #[test]
    fn only_the_next_batch_of_the_newest_claim_is_to_be_applied() {
        let known = Claim { epoch: 3, last_sequence: 7 };
        assert!(matches!(judged(known, 3, 8), Ok(None)));
        assert!(matches!(judged(known, 3, 7), Ok(Some(Receipt::Duplicate))));
        assert!(matches!(judged(known, 3, 6), Err(Error::Gap { sent: 6, expected: 8 })));
        assert!(matches!(judged(known, 3, 9), Err(Error::Gap { sent: 9, expected: 8 })));
        assert!(matches!(judged(known, 2, 8), Err(Error::Fenced { epoch: 3, .. })));
        assert!(matches!(judged(known, 4, 8), Err(Error::Forgotten { claimed: 4, known: 3, .. })));
    }

    #[test]
    fn a_name_that_was_never_claimed_has_no_batch() {
        for (epoch, sequence) in [(0, 0), (0, 1), (1, 1)] {
            assert!(matches!(
                judged(Claim::default(), epoch, sequence),
                Err(Error::Forgotten { known: 0, .. })
            ));
        }
        let claimed = Claim { epoch: 1, last_sequence: 0 };
        assert!(matches!(judged(claimed, 1, 0), Err(Error::Gap { sent: 0, expected: 1 })));
    }

    #[test]
    fn numbers_end_without_a_panic() {
        let known = Claim { epoch: u64::MAX, last_sequence: u64::MAX };
        assert!(matches!(judged(known, u64::MAX, u64::MAX), Ok(Some(Receipt::Duplicate))));
        assert!(matches!(judged(known, u64::MAX, 0), Err(Error::Gap { sent: 0, expected: u64::MAX })));
    }
}
