//! Key misses: absent keys that a command reads.

use super::classes::{EventClasses, MISSED};
use crate::command::{self, Command, Misses};
use crate::context::Keys;

impl Keys<'_> {
    /// Adds a miss for each absent key that a command is about to read.
    #[cold]
    pub(crate) fn note_misses(&mut self, command: &Command, args: &[&[u8]]) {
        if !self.events.want(EventClasses::KEY_MISS) {
            return;
        }
        let absent = |keys: &Self, at: usize| args.get(at).filter(|key| !keys.exists(key)).copied();
        let (db, start) = (self.db(), self.events.len());
        for (number, at) in command.keys.positions(args).into_iter().enumerate() {
            if let Some(key) = absent(self, at).filter(|_| reads(command, args, number)) {
                self.events.add(EventClasses::KEY_MISS, db, MISSED, key);
            }
        }
        self.events.set_misses(start);
    }
}

/// Whether a command reads its key of this number, so that an absent key is a miss.
fn reads(command: &Command, args: &[&[u8]], number: usize) -> bool {
    let uses = command::key_uses_of(command, args);
    let Some(key_use) = uses.get(number).or(uses.last()) else { return false };
    match command.misses {
        Misses::OfReads => key_use.starts_with("RO"),
        Misses::OfWrites => key_use.starts_with("RO") || key_use.starts_with("RW"),
        Misses::None => false,
    }
}
