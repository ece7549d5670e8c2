//! Updates of lists of keys, and their answers.

use crate::context::Keys;
use crate::watch::index::key_list::Listing;
use crate::watch::index::key_set::Changed;
use crate::watch::overlong::{MAX_ANSWER_BYTES, replace_overlong};
use crate::watch::read::Read;
use crate::wire::reply::{Protocol, Reply};
use std::collections::BTreeSet;

impl Listing {
    /// Returns an empty listing for a read; `None` if the read lists no keys.
    pub(in crate::watch) fn of(read: &Read) -> Option<Box<Self>> {
        let owned = |option: Option<&[u8]>| option.map(Box::from);
        let (pattern, kind, has_cursor) = match read.name() {
            "keys" => (owned(read.args().nth(1)), None, false),
            "scan" => (owned(read.option("MATCH")), owned(read.option("TYPE")), true),
            _ => return None,
        };
        Some(Box::new(Self::new(pattern, kind, has_cursor)))
    }

    /// Updates the listing from the keys of the selected database, all of which are locked. Returns
    /// whether it has changed. O(log n) for each changed key.
    pub(in crate::watch) fn update(&mut self, keys: &mut Keys<'_>) -> bool {
        match self.keys.take_changed() {
            Changed::Keys(changed) => {
                let mut is_changed = false;
                for key in changed {
                    let is_listed =
                        keys.as_logged(|keys| keys.peek(&key).is_some_and(|entry| self.lists(entry)));
                    is_changed |= self.keys.set(&key, is_listed);
                }
                is_changed
            }
            Changed::Everything => {
                let (db, mut found) = (keys.db() as usize, BTreeSet::new());
                for shard in keys.shards() {
                    shard.database(db).table().for_each(|entry| {
                        if self.lists(entry) {
                            found.insert(entry.key().into());
                        }
                    });
                }
                let before = self.keys.replace(found);
                before != *self.keys.keys()
            }
        }
    }

    /// Appends the read's answer. O(n).
    pub(in crate::watch) fn answer(&self, protocol: Protocol, buffer: &mut Vec<u8>) {
        let mut reply = Reply::with_buffer(std::mem::take(buffer), protocol);
        reply.set_limit(MAX_ANSWER_BYTES);
        if self.has_cursor {
            reply.array(2);
            reply.bulk(b"0");
        }
        reply.array(self.keys.keys().len());
        self.keys.keys().iter().for_each(|key| reply.bulk(key));
        replace_overlong(&mut reply);
        *buffer = reply.take();
    }
}
