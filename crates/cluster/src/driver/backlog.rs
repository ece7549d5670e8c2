//! What a leader has proposed and its group has not committed.

use std::collections::VecDeque;

use tidemark_log::Lsn;

/// Proposed batches in the order of their records. Adding one and settling it are O(1).
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The last record of each batch, and the batch's size in bytes.
    batches: VecDeque<(Lsn, usize)>,
    bytes: usize,
}

impl Backlog {
    /// Adds a batch behind all others.
    pub(super) fn add(&mut self, last: Lsn, bytes: usize) {
        self.batches.push_back((last, bytes));
        self.bytes += bytes;
    }

    /// Removes the batches that are committed up to their end.
    pub(super) fn settle(&mut self, committed: Lsn) {
        while let Some((_, bytes)) = self.batches.pop_front_if(|(last, _)| *last <= committed) {
            self.bytes -= bytes;
        }
    }

    /// Returns the bytes of the batches.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_count_until_their_last_record_is_committed() {
        let mut backlog = Backlog::default();
        backlog.add(Lsn(3), 10);
        backlog.add(Lsn(7), 20);
        for (committed, bytes) in [(2, 30), (3, 20), (6, 20), (9, 0)] {
            backlog.settle(Lsn(committed));
            assert_eq!(backlog.bytes(), bytes, "committed up to {committed}");
        }
    }
}
