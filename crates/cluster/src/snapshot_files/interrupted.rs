//! An installation that an earlier process has begun.

use std::io;
use std::sync::Arc;

use tidemark_log::Storage;

use super::file_list::{FileList, FileName};
use super::list_file::{self, Stage};
use super::receiver::rename_parts;

/// An installation that an earlier process has begun and not
/// [ended](super::SnapshotReceiver::end_installation): the snapshot takes the place of what was there.
#[derive(Debug)]
pub struct InterruptedInstallation {
    storage: Arc<dyn Storage>,
    list: FileList,
}

impl InterruptedInstallation {
    /// Finds what an earlier process has left.
    pub fn find(storage: &Arc<dyn Storage>) -> io::Result<Option<Self>> {
        let stored = list_file::read(&**storage)?;
        let found = stored.filter(|(stage, _)| *stage == Stage::Installing);
        Ok(found.map(|(_, list)| Self { storage: Arc::clone(storage), list }))
    }

    /// Returns what the sender said of the snapshot.
    pub fn meta(&self) -> &[u8] {
        &self.list.meta
    }

    /// Returns the directory.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Gives the files their names that have none yet, durably.
    pub fn give_names(&self) -> io::Result<()> {
        let mut files: Vec<FileName> = self.list.files.iter().map(|file| file.name.clone()).collect();
        files.sort_by_key(|name| (name.rank(), name.clone()));
        rename_parts(&*self.storage, &files, &self.storage.list()?)
    }

    /// Ends the installation.
    pub fn end(self) -> io::Result<()> {
        list_file::remove(&*self.storage)
    }
}
