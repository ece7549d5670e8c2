//! Entries in replies.

use crate::value::stream::{EntryRef, Id};
use crate::wire::reply::Reply;

pub(super) fn write_id(reply: &mut Reply, id: Id) {
    reply.bulk(id.text().as_bytes());
}

/// Writes an entry: its ID, and its fields with their values.
#[inline]
pub(super) fn write_entry(reply: &mut Reply, entry: EntryRef<'_>) {
    reply.array(2);
    write_id(reply, entry.id());
    reply.array(2 * entry.fields());
    for (name, value) in entry.iter() {
        reply.bulk(&name);
        reply.bulk(&value);
    }
}

/// Writes up to `count` entries; all if it is 0.
pub(super) fn write_entries<'a>(
    reply: &mut Reply,
    entries: impl Iterator<Item = EntryRef<'a>> + Clone,
    count: usize,
) {
    let most = if count == 0 { usize::MAX } else { count };
    // Skipping an entry costs little beside writing it.
    let found = entries.clone().take(most).count();
    reply.array(found);
    for entry in entries.take(found) {
        if reply.has_overflowed() {
            return;
        }
        write_entry(reply, entry);
    }
}
