//! Check that a subscription's emissions are numbered densely, once each, in order.

use crate::report::Figures;
use std::collections::BTreeMap;

/// The numbers received by one subscription, and their faults.
#[derive(Clone, Debug)]
pub(crate) struct SequenceCheck {
    last_seq: u64,
    last_lsn: u64,
    /// Ranges of skipped numbers, first to last; at most one per received emission.
    holes: BTreeMap<u64, u64>,
    faults: SequenceFaults,
}

/// Faults in the numbers of one or more subscriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SequenceFaults {
    /// Numbers that were skipped and never arrived.
    pub(crate) missing: u64,
    /// Numbers that arrived more than once.
    pub(crate) duplicates: u64,
    /// Numbers that arrived after a larger one, and emissions whose lsn is not above the previous
    /// one.
    pub(crate) out_of_order: u64,
}

impl SequenceCheck {
    /// Creates the check of a subscription whose next emission follows `seq` and has an lsn above
    /// `lsn`.
    pub(crate) fn after(seq: u64, lsn: u64) -> Self {
        SequenceCheck {
            last_seq: seq,
            last_lsn: lsn,
            holes: BTreeMap::new(),
            faults: SequenceFaults::default(),
        }
    }

    /// Checks the next emission.
    pub(crate) fn take(&mut self, seq: u64, lsn: u64) {
        if seq <= self.last_seq {
            if self.fill(seq) {
                self.faults.missing -= 1;
                self.faults.out_of_order += 1;
            } else {
                self.faults.duplicates += 1;
            }
            return;
        }
        let passed_over = seq - self.last_seq - 1;
        if passed_over > 0 {
            self.faults.missing += passed_over;
            self.holes.insert(self.last_seq + 1, seq - 1);
        }
        if lsn <= self.last_lsn {
            self.faults.out_of_order += 1;
        }
        self.last_seq = seq;
        self.last_lsn = lsn.max(self.last_lsn);
    }

    pub(crate) fn faults(&self) -> SequenceFaults {
        self.faults
    }

    /// Removes a number from its hole. Returns false if it is in none.
    fn fill(&mut self, seq: u64) -> bool {
        let Some((&first, &last)) = self.holes.range(..=seq).next_back().filter(|(_, last)| seq <= **last)
        else {
            return false;
        };
        self.holes.remove(&first);
        if first < seq {
            self.holes.insert(first, seq - 1);
        }
        if seq < last {
            self.holes.insert(seq + 1, last);
        }
        true
    }
}

impl SequenceFaults {
    pub(crate) fn add(&mut self, other: SequenceFaults) {
        self.missing += other.missing;
        self.duplicates += other.duplicates;
        self.out_of_order += other.out_of_order;
    }

    pub(crate) fn is_clean(&self) -> bool {
        *self == SequenceFaults::default()
    }

    /// Adds the counts to a report.
    pub(crate) fn add_figures(&self, figures: &mut Figures) {
        figures.add_counts([
            ("numbers_missing", self.missing),
            ("numbers_repeated", self.duplicates),
            ("numbers_out_of_order", self.out_of_order),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::{SequenceCheck, SequenceFaults};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn faults(start: u64, emissions: &[(u64, u64)]) -> SequenceFaults {
        let mut check = SequenceCheck::after(start, 100);
        emissions.iter().for_each(|(seq, lsn)| check.take(*seq, *lsn));
        check.faults()
    }

    #[test]
    fn dense_numbers_with_growing_positions_are_clean() {
        assert!(faults(0, &[(1, 101), (2, 109), (3, 110)]).is_clean());
        assert!(faults(41, &[(42, 101)]).is_clean());
    }

    #[test]
    fn each_fault_is_counted_as_what_it_is() {
        let of = |missing, duplicates, out_of_order| SequenceFaults { missing, duplicates, out_of_order };
        assert_eq!(faults(0, &[(1, 101), (4, 104)]), of(2, 0, 0));
        assert_eq!(faults(0, &[(2, 102)]), of(1, 0, 0), "the first may be missing as well");
        assert_eq!(faults(0, &[(1, 101), (1, 101)]), of(0, 1, 0));
        assert_eq!(
            faults(5, &[(5, 101)]),
            of(0, 1, 0),
            "it belongs to what was before the subscription's answer"
        );
        assert_eq!(faults(0, &[(2, 102), (1, 101), (3, 103)]), of(0, 0, 1), "late is not missing");
        assert_eq!(faults(0, &[(3, 103), (1, 101), (1, 101)]), of(1, 1, 1));
        assert_eq!(faults(0, &[(1, 101), (2, 101)]), of(0, 0, 1), "a position must grow");
        assert_eq!(faults(0, &[(1, 100)]), of(0, 0, 1), "the first lies above the watch's own");
    }

    proptest! {
        /// The counts equal those of a plain set of the received numbers.
        #[test]
        fn the_counts_are_a_sets(numbers in proptest::collection::vec(1_u64..30, 0..60)) {
            let mut check = SequenceCheck::after(0, 0);
            let (mut seen, mut duplicates, mut late, mut largest) = (BTreeSet::new(), 0, 0, 0);
            for (index, number) in numbers.iter().enumerate() {
                check.take(*number, index as u64 + 1);
                if !seen.insert(*number) {
                    duplicates += 1;
                } else if *number < largest {
                    late += 1;
                }
                largest = largest.max(*number);
            }
            let missing = largest - seen.len() as u64;
            prop_assert_eq!(check.faults(), SequenceFaults { missing, duplicates, out_of_order: late });
        }
    }
}
