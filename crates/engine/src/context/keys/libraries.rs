//! Libraries of functions, which are in a database of their own.

use super::Keys;
use crate::keyspace::{Deadline, LIBRARIES, Payload, hash};

impl Keys<'_> {
    /// Sets the text of a library. The database of libraries is selected.
    ///
    /// Announces nothing: clients do not see the database.
    pub(crate) fn set_library(&mut self, name: &[u8], text: &[u8]) {
        let clock = self.clock();
        self.database_mut(name).set(hash(name), name, Payload::Raw(text), Deadline::Clear, clock);
        self.note_library();
    }

    /// Removes a library. Returns whether there was one. The database of libraries is selected.
    pub(crate) fn remove_library(&mut self, name: &[u8]) -> bool {
        let is_there = self.database_mut(name).remove(hash(name), name).is_some();
        if is_there {
            self.note_library();
        }
        is_there
    }

    fn note_library(&mut self) {
        self.keyspace.note_libraries();
        self.effects.changed = true;
    }

    /// Visits all libraries: their names and texts. All shards are locked.
    pub(crate) fn for_each_library(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        for shard in self.shards() {
            shard.database(usize::from(LIBRARIES)).table().for_each(|entry| {
                if let Ok(text) = entry.text() {
                    visit(entry.key(), &text);
                }
            });
        }
    }
}
