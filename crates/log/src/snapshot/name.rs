//! File names of snapshots.

use std::fmt;

use super::{HEADER_MAGIC, VERSION_INCREMENTAL, VERSION_WHOLE};
use crate::Lsn;
use crate::segment::TEMPORARY_SUFFIX;

const PREFIX: &str = "snapshot-";
const ON: &str = "-on-";
const SUFFIX: &str = ".tide";

/// Name of a snapshot. Ordered by LSN; at the same LSN, a full one before an incremental one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    /// The last record that the snapshot covers.
    pub(crate) lsn: Lsn,
    /// For an incremental snapshot: the older, full one that has the unchanged sections.
    pub(crate) base: Option<Lsn>,
}

impl Name {
    pub(crate) fn whole(lsn: Lsn) -> Self {
        Self { lsn, base: None }
    }

    /// Parses exactly what [`Display`](fmt::Display) writes.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let lsn = |digits: &str| Some(Lsn(digits.parse().ok()?));
        let parsed = match numbers.split_once(ON) {
            Some((at, base)) => Self { lsn: lsn(at)?, base: Some(lsn(base)?) },
            None => Self::whole(lsn(numbers)?),
        };
        let is_possible = parsed.base.is_none_or(|base| base < parsed.lsn);
        (is_possible && parsed.to_string() == name).then_some(parsed)
    }

    /// Returns the last record that the newest snapshot among these files covers; 0 if there is
    /// none.
    pub(crate) fn newest_lsn(names: &[String]) -> Lsn {
        names.iter().filter_map(|name| Self::parse(name)).map(|name| name.lsn).max().unwrap_or_default()
    }

    /// Name of the file while it is written.
    pub(super) fn temporary(self) -> String {
        format!("{self}{TEMPORARY_SUFFIX}")
    }

    pub(super) fn header(self) -> Vec<u8> {
        let version = if self.base.is_some() { VERSION_INCREMENTAL } else { VERSION_WHOLE };
        let mut header = HEADER_MAGIC.to_vec();
        header.extend_from_slice(&version.to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&self.lsn.0.to_le_bytes());
        if let Some(base) = self.base {
            header.extend_from_slice(&base.0.to_le_bytes());
        }
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
        header
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:020}", self.lsn.0)?;
        if let Some(base) = self.base {
            write!(f, "{ON}{:020}", base.0)?;
        }
        f.write_str(SUFFIX)
    }
}

/// Returns the last record for which the log is not needed: the one that the oldest of the newest
/// `keep` full snapshots covers; 0 until there are that many. Incremental ones do not count: they
/// depend on their base.
pub(crate) fn covered(names: impl IntoIterator<Item = Name>, keep: usize) -> Lsn {
    let mut whole: Vec<Lsn> =
        names.into_iter().filter(|name| name.base.is_none()).map(|name| name.lsn).collect();
    whole.sort_unstable();
    let oldest_kept = whole.len().checked_sub(keep.max(1));
    oldest_kept.and_then(|index| whole.get(index)).copied().unwrap_or_default()
}

/// Returns the snapshots to remove when the newest `keep` full ones, and as many incremental ones
/// based on them, are kept; in a safe order of removal.
pub(super) fn surplus(names: &[Name], keep: usize) -> Vec<Name> {
    let newest_first = || names.iter().copied().rev();
    let whole: Vec<Name> = newest_first().filter(|name| name.base.is_none()).take(keep.max(1)).collect();
    let is_on_kept = |name: &Name| name.base.is_some_and(|base| whole.contains(&Name::whole(base)));
    let incremental: Vec<Name> = newest_first().filter(is_on_kept).take(keep.max(1)).collect();
    let mut surplus: Vec<Name> =
        names.iter().copied().filter(|name| !whole.contains(name) && !incremental.contains(name)).collect();
    surplus.sort_by_key(|name| name.base.is_none());
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(lsn: u64, base: Option<u64>) -> Name {
        Name { lsn: Lsn(lsn), base: base.map(Lsn) }
    }

    proptest! {
        #[test]
        fn a_name_is_read_as_it_is_written(lsn: u64, base: Option<u64>) {
            let written = name(lsn, base);
            let read = Name::parse(&written.to_string());
            prop_assert_eq!(read, base.is_none_or(|base| base < lsn).then_some(written));
        }

        #[test]
        fn another_file_is_no_snapshot(name in "(snapshot-)?[0-9]{18,21}(-on-)?[0-9]{0,21}(.tide)?(.tmp)?") {
            prop_assert!(Name::parse(&name).is_none_or(|parsed| parsed.to_string() == name));
        }

        /// Every kept snapshot has its base, the newest stays, and the log reaches back far enough.
        #[test]
        fn what_stays_can_be_used(
            lsns in proptest::collection::btree_map(1_u64..60, proptest::option::of(0_u64..60), 0..20),
            keep in 1_usize..4,
        ) {
            let names: Vec<Name> = lsns
                .into_iter()
                .map(|(lsn, base)| name(lsn, base.filter(|base| *base < lsn)))
                .collect();
            let gone = surplus(&names, keep);
            let stays: Vec<Name> = names.iter().copied().filter(|name| !gone.contains(name)).collect();
            let is_whole = |name: &&Name| name.base.is_none();
            let has_base = |name: &Name| name.base.is_none_or(|base| stays.contains(&Name::whole(base)));
            prop_assert!(stays.iter().all(has_base));
            prop_assert_eq!(
                stays.iter().filter(is_whole).count(),
                names.iter().filter(is_whole).count().min(keep)
            );
            prop_assert_eq!(stays.iter().rfind(is_whole), names.iter().rfind(is_whole));
            prop_assert_eq!(covered(stays.iter().copied(), keep), covered(names.iter().copied(), keep));
            prop_assert!(gone.is_sorted_by_key(|name| name.base.is_none()));
        }
    }
}
