//! Gaps: LSNs that have no record and never will.
//!
//! A caller gets an LSN before the record is durable, and may pass it on. A power failure can lose
//! the record; its LSN must not be reused. After an unclean stop the log therefore continues far
//! beyond everything that may have been handed out:
//!
//! ```text
//!  records of one process │ gap: may have been handed out, and is lost │ records of the next process
//!  1 … 100                │ 101 … 4294967295                           │ 4294967296 …
//! ```
//!
//! So the upper half of an LSN counts the unclean stops, unless a process appends more than 2^32
//! records.

use crate::Lsn;

/// Every gap ends just before a multiple of this.
const STRIDE: u64 = 1 << 32;
/// Limit on the records appended after the last known one: a gap is at least as long.
pub(crate) const MARGIN: u64 = 1 << 31;

/// Consecutive LSNs between two records that are lost or were never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first of them.
    pub first: Lsn,
    /// The last of them.
    pub last: Lsn,
}

/// Returns where the log continues if everything up to `newest`, and up to `MARGIN` records after
/// it, may have been handed out. `None` if the LSNs are exhausted.
pub(crate) fn next_behind(newest: Lsn) -> Option<Lsn> {
    newest.0.checked_add(MARGIN)?.checked_next_multiple_of(STRIDE).map(Lsn)
}

/// Returns whether there may be a gap before the record `first`.
pub(crate) fn may_be_before(first: Lsn) -> bool {
    first.0.is_multiple_of(STRIDE)
}

/// Returns a lower bound of the number of records after `after` up to `last` when the gaps are
/// unknown: exact if no multiple of the stride lies between, because no gap lies after the newest
/// multiple.
pub(crate) fn records_at_least(after: Lsn, last: Lsn) -> u64 {
    let surely_behind = (last.0 - last.0 % STRIDE).saturating_sub(1).max(after.0);
    last.0.saturating_sub(surely_behind)
}

/// The known gaps. Invariant: they ascend and do not touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps(Vec<Gap>);

impl Gaps {
    /// Adds the LSNs between a record and the next one, if there are any. Replaces the newest gap
    /// if that starts at the same LSN: nothing was written between them.
    pub(crate) fn add(&mut self, before: Lsn, behind: Lsn) {
        let gap = Gap { first: before.next(), last: behind.previous() };
        self.0.pop_if(|newest| newest.first == gap.first);
        let newest = self.0.last();
        assert!(newest.is_none_or(|newest| newest.last < gap.first), "{gap:?} is added behind {newest:?}");
        if gap.first <= gap.last {
            self.0.push(gap);
        }
    }

    /// Forgets the gaps behind record `last`, which is the newest again.
    pub(crate) fn cut_behind(&mut self, last: Lsn) {
        self.0.retain(|gap| gap.first <= last);
    }

    pub(crate) fn contains(&self, lsn: Lsn) -> bool {
        self.behind(lsn.previous()).first().is_some_and(|gap| gap.first <= lsn && lsn <= gap.last)
    }

    /// Returns the gaps that end after `lsn`.
    pub(crate) fn behind(&self, lsn: Lsn) -> &[Gap] {
        let index = self.0.partition_point(|gap| gap.last <= lsn);
        &self.0[index..]
    }

    /// Returns the number of LSNs after `after` up to `last` that are not in gaps.
    pub(crate) fn records_between(&self, after: Lsn, last: Lsn) -> u64 {
        let lost = |gap: &Gap| gap.last.min(last).0.saturating_sub(gap.first.previous().max(after).0);
        let lost: u64 = self.behind(after).iter().map(lost).sum();
        last.0.saturating_sub(after.0).saturating_sub(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_start_that_is_not_clean_leaves_room_for_everything_that_may_have_been_handed_out() {
        let next = |newest| next_behind(Lsn(newest)).map(|lsn| lsn.0);
        assert_eq!(next(0), Some(STRIDE));
        assert_eq!(next(100), Some(STRIDE));
        assert_eq!(next(STRIDE - MARGIN), Some(STRIDE));
        assert_eq!(next(STRIDE - MARGIN + 1), Some(2 * STRIDE));
        assert_eq!(
            next(STRIDE),
            Some(2 * STRIDE),
            "an LSN that was handed out and lost is passed over as well"
        );
        assert_eq!(next(u64::MAX - STRIDE - MARGIN), Some(u64::MAX - STRIDE + 1));
        assert_eq!((next(u64::MAX - MARGIN), next(u64::MAX)), (None, None));
    }

    #[test]
    fn a_gap_behind_which_nothing_was_written_grows() {
        let mut gaps = Gaps::default();
        gaps.add(Lsn(10), Lsn(20));
        gaps.add(Lsn(25), Lsn(26));
        gaps.add(Lsn(30), Lsn(40));
        gaps.add(Lsn(30), Lsn(50));
        assert_eq!(gaps.behind(Lsn(19)), [Gap { first: Lsn(31), last: Lsn(49) }]);
        assert_eq!(gaps.behind(Lsn(18)).len(), 2);
        gaps.add(Lsn(30), Lsn(31));
        assert!(gaps.behind(Lsn(20)).is_empty());
    }

    #[test]
    fn records_are_counted_without_gaps_as_far_as_none_can_be() {
        let count = |after, last| records_at_least(Lsn(after), Lsn(last));
        assert_eq!((count(7896, 8177), count(0, 3), count(5, 5), count(6, 5)), (281, 3, 0, 0));
        assert_eq!((count(3, STRIDE), count(3, STRIDE + 9), count(STRIDE, STRIDE + 9)), (1, 10, 9));
        assert_eq!((count(STRIDE - 1, STRIDE + 9), count(STRIDE + 3, 3 * STRIDE)), (10, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_lost_is_known_and_not_counted(
            parts in prop::collection::vec((1_u64..5, 0_u64..5), 0..6),
            after in 0_u64..60,
            length in 0_u64..60,
        ) {
            let (mut gaps, mut lost, mut end) = (Gaps::default(), Vec::new(), 0);
            for (records, gap) in parts {
                end += records;
                gaps.add(Lsn(end), Lsn(end + gap + 1));
                lost.extend(end + 1..=end + gap);
                end += gap;
            }
            for lsn in 0..70 {
                prop_assert_eq!(gaps.contains(Lsn(lsn)), lost.contains(&lsn), "{}", lsn);
            }
            let last = after + length;
            let records = (after + 1..=last).filter(|lsn| !lost.contains(lsn)).count() as u64;
            prop_assert_eq!(gaps.records_between(Lsn(after), Lsn(last)), records);
        }
    }
}
