//! What a start finds in the log.

use std::io;

use tidemark_log::{EntryEnd, EntryId, Lsn, Member as LogMember};

use crate::beginning::Beginning;
use crate::driver::kind_of;
use crate::entry::Entry;
use crate::member::Members;

/// Bytes of one read.
const CHUNK_BYTES: usize = 1 << 20;

/// What is known to be committed at a start.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The newest entry that is known to be committed.
    pub(crate) last: EntryEnd,
    /// The entries up to it that name the members, oldest first: those behind the beginning of the log, and
    /// the newest one before it.
    pub(crate) members: Vec<(EntryId, Members)>,
}

/// Reads the log behind its beginning, up to record `committed`, which its entries say is committed.
/// O(bytes of the log behind the beginning).
///
/// # Errors
/// The log cannot be read, or has an entry that is none of a group.
pub(crate) fn find_committed(
    member: &LogMember,
    beginning: Option<Beginning>,
    committed: Lsn,
) -> io::Result<Found> {
    let mut found = Found::default();
    if let Some(Beginning { end, members }) = beginning {
        found = Found { last: end, members: vec![members] };
    }
    let mut index = found.last.id.index + 1;
    loop {
        let entries = member
            .entries(index, CHUNK_BYTES)
            .map_err(|error| io::Error::new(kind_of(&error), error.to_string()))?;
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
                found.members.push((id, *members));
            }
        }
    }
}
