//! What a start finds in the log.

use std::io;

use tidemark_log::{EntryEnd, EntryId, Lsn, Member as LogMember};

use crate::entry::Entry;
use crate::member::Members;

/// Bytes of one read.
const CHUNK_BYTES: usize = 1 << 20;

/// What is known to be committed at a start.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The newest entry that is known to be committed.
    pub(crate) last: EntryEnd,
    /// The newest entry up to it that names the members.
    pub(crate) members: Option<(EntryId, Members)>,
}

/// Reads the log up to record `committed`, which its entries say is committed. O(bytes of the log).
///
/// # Errors
/// The log cannot be read, or has an entry that is none of a group.
pub(crate) fn find_committed(member: &LogMember, committed: Lsn) -> io::Result<Found> {
    let mut found = Found::default();
    let mut index = member.first_entry();
    loop {
        let entries = member.entries(index, CHUNK_BYTES).map_err(io::Error::other)?;
        if entries.is_empty() {
            return Ok(found);
        }
        for (id, records) in entries {
            if records.last_lsn() > committed {
                return Ok(found);
            }
            index = id.index + 1;
            found.last = EntryEnd { id, last: records.last_lsn() };
            if let Entry::Members(members, _) = Entry::of_records(records).map_err(io::Error::other)? {
                found.members = Some((id, *members));
            }
        }
    }
}
