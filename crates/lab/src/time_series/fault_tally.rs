//! What became of injected faults.

/// What became of faults. `injected` is the sum of `detected`, `refused` and `absorbed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FaultTally {
    pub(super) injected: u64,
    /// Silent damage that a checksum or a count found.
    pub(super) detected: u64,
    /// Errors that the caller got.
    pub(super) refused: u64,
    /// Faults that changed nothing: a part that was completed by the next call, or damage where no
    /// record is.
    pub(super) absorbed: u64,
    /// Faults after which the point is there again, with the right value.
    pub(super) repaired: u64,
    /// Those of them that damaged durable records, so that the points came from elsewhere.
    pub(super) restored: u64,
}

impl FaultTally {
    pub(super) fn add(&mut self, other: Self) {
        self.injected += other.injected;
        self.detected += other.detected;
        self.refused += other.refused;
        self.absorbed += other.absorbed;
        self.repaired += other.repaired;
        self.restored += other.restored;
    }

    /// Fails unless every fault was found, and every point is there again.
    pub(super) fn checked(self) -> anyhow::Result<Self> {
        let found = self.detected + self.refused + self.absorbed;
        anyhow::ensure!(found == self.injected, "{found} of {} faults were noticed", self.injected);
        let repaired = self.repaired + self.absorbed;
        anyhow::ensure!(
            repaired == self.injected,
            "{repaired} of {} faults left the right value",
            self.injected
        );
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::FaultTally;

    #[test]
    fn a_fault_that_nothing_found_fails_the_run() {
        let right =
            FaultTally { injected: 3, detected: 1, refused: 1, absorbed: 1, repaired: 2, restored: 1 };
        assert!(right.checked().is_ok());
        assert!(FaultTally { detected: 0, ..right }.checked().is_err());
        assert!(FaultTally { repaired: 1, ..right }.checked().is_err());
    }
}
