//! Snapshots: the whole state at one LSN, beside the log.

use crate::Lsn;

/// The LSN in a snapshot's file name.
pub(crate) fn parse_snapshot_name(name: &str) -> Option<Lsn> {
    let lsn = Lsn(name.strip_prefix("snapshot-")?.strip_suffix(".tide")?.parse().ok()?);
    (snapshot_name(lsn) == name).then_some(lsn)
}

pub(crate) fn snapshot_name(lsn: Lsn) -> String {
    format!("snapshot-{:020}.tide", lsn.0)
}
