//! Removal of a member's data, which it gets from the others again.

use std::io;

use tidemark_log::{Log, Storage};

use crate::beginning;
use crate::snapshot_files;

/// Removes everything that a member gets from others: its log and where that begins, its snapshots, and what
/// has arrived of another member's. Its vote and its suspicion stay. The caller holds the directory's lock. If
/// this is interrupted, it must be repeated before the log is opened.
///
/// # Errors
/// The storage failed.
pub fn remove_data(storage: &dyn Storage) -> io::Result<()> {
    // First what could take the place of the log. The files that it lists have the log's suffix.
    snapshot_files::remove_list(storage)?;
    Log::remove_all(storage)?;
    beginning::remove(storage)?;
    storage.sync_dir()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::{EntryEnd, MemoryStorage, Options};

    #[test]
    fn nothing_of_a_log_is_left_and_another_can_begin() {
        let storage = MemoryStorage::new();
        let open =
            || Log::open_member_without_threads(std::sync::Arc::new(storage.clone()), Options::default());
        drop(open().expect("opens"));
        for name in ["BEGIN", "incoming.list", "snapshot-1.tide", "blocks-1.tide.incoming"] {
            storage.put(name, b"damaged".to_vec());
        }
        storage.put("vote", b"stays".to_vec());
        remove_data(&storage).expect("is removed");
        assert_eq!(storage.list().expect("names"), ["vote"]);
        let (_, member, _) = open().expect("opens");
        assert_eq!(member.last_entry(), EntryEnd::default());
    }
}
