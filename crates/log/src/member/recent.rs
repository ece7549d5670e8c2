//! The newest entries, in memory: other members mostly want those.

use std::collections::VecDeque;

use super::EntryRecords;
use crate::entry::EntryId;

/// Limit on the bytes of the entries, except that the newest one is always there.
const KEEP_BYTES: usize = 32 << 20;

/// Invariant: the indices are dense.
#[derive(Debug, Default)]
pub(super) struct Recent {
    entries: VecDeque<(EntryId, EntryRecords)>,
    bytes: usize,
}

impl Recent {
    pub(super) fn push(&mut self, id: EntryId, records: &EntryRecords) {
        let newest = self.entries.back().map(|(newest, _)| newest.index);
        assert!(newest.is_none_or(|newest| newest + 1 == id.index), "entry {id} is kept behind {newest:?}");
        self.bytes += records.bytes().len();
        self.entries.push_back((id, records.clone()));
        while self.bytes > KEEP_BYTES && self.entries.len() > 1 {
            let dropped = self.entries.pop_front().map_or(0, |(_, records)| records.bytes().len());
            self.bytes -= dropped;
        }
    }

    /// Forgets the entries behind `index`.
    pub(super) fn cut_behind(&mut self, index: u64) {
        while let Some((_, records)) = self.entries.pop_back_if(|(id, _)| id.index > index) {
            self.bytes -= records.bytes().len();
        }
    }

    /// Returns the entries from `index` on, up to about `bytes`; none if the first is not here.
    pub(super) fn from(&self, index: u64, bytes: usize) -> Vec<(EntryId, EntryRecords)> {
        let Some((oldest, _)) = self.entries.front() else { return Vec::new() };
        let Some(skip) = index.checked_sub(oldest.index) else { return Vec::new() };
        let mut left = bytes;
        let entries = self.entries.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX));
        entries
            .enumerate()
            .take_while(|(position, (_, records))| {
                let fits = *position == 0 || records.bytes().len() <= left;
                left = left.saturating_sub(records.bytes().len());
                fits
            })
            .map(|(_, entry)| entry.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lsn;

    fn filled(entries: u64, payload: usize) -> Recent {
        let mut recent = Recent::default();
        for index in 1..=entries {
            let records = EntryRecords::of_record(Lsn(index), 0, 1, &vec![7; payload]);
            recent.push(EntryId { index, term: 1 }, &records);
        }
        recent
    }

    fn indices(recent: &Recent, index: u64, bytes: usize) -> Vec<u64> {
        recent.from(index, bytes).iter().map(|(id, _)| id.index).collect()
    }

    #[test]
    fn at_least_one_entry_is_returned_if_it_is_there() {
        let recent = filled(4, 75);
        assert_eq!(indices(&recent, 2, 0), [2]);
        assert_eq!(indices(&recent, 2, 200), [2, 3]);
        assert_eq!(indices(&recent, 2, usize::MAX), [2, 3, 4]);
        assert!(indices(&recent, 5, 1000).is_empty() && indices(&recent, 0, 1000).is_empty());
        assert!(indices(&Recent::default(), 1, 1000).is_empty());
    }

    #[test]
    fn old_entries_leave_when_there_are_many_bytes() {
        let recent = filled(5, KEEP_BYTES / 3);
        assert_eq!(indices(&recent, 4, usize::MAX), [4, 5]);
        assert!(indices(&recent, 3, usize::MAX).is_empty());
        let mut recent = filled(3, KEEP_BYTES * 2);
        assert_eq!(indices(&recent, 3, 0), [3]);
        recent.cut_behind(2);
        assert_eq!((recent.entries.len(), recent.bytes), (0, 0));
    }

    #[test]
    fn what_is_cut_is_forgotten() {
        let mut recent = filled(5, 10);
        recent.cut_behind(3);
        assert_eq!(indices(&recent, 1, usize::MAX), [1, 2, 3]);
        recent.push(EntryId { index: 4, term: 2 }, &EntryRecords::of_record(Lsn(9), 0, 1, b"new"));
        assert_eq!(recent.from(4, 0)[0].0, EntryId { index: 4, term: 2 });
    }
}
