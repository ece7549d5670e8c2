//! Links between values: both ends stay right when a key goes or gets another name.
//!
//! The shards of all linked keys are locked, because a writing command's locks are closed over links.

use super::Keys;
use crate::keyspace::{Entry, hash};
use crate::value::Object;
use crate::value::links::{LinkUse, Linking};
use crate::watch::touched::Touched;

impl Keys<'_> {
    /// Ends what other keys know of a key, whose value goes. To be called before it goes.
    #[inline]
    pub(crate) fn cut_links(&mut self, key: &[u8]) {
        if self.database(key).has_links() {
            self.cut(key);
        }
    }

    #[cold]
    fn cut(&mut self, key: &[u8]) {
        for linked in self.linked(key) {
            self.change_links(&linked, |object| {
                object.linking_mut().into_iter().for_each(|linking| linking.cut_link(key));
            });
        }
    }

    /// Ends all links of a key, in both directions, because its value leaves the database.
    pub(crate) fn separate(&mut self, key: &[u8]) {
        if self.database(key).has_links() {
            self.cut(key);
            self.change_links(key, |object| {
                object.linking_mut().into_iter().for_each(Linking::cut_all_links);
            });
        }
    }

    /// Tells the keys that a value links to that the value is now at `to`, and was at `from`.
    pub(crate) fn rename_links(&mut self, from: &[u8], to: &[u8]) {
        if self.database(to).has_links() {
            for linked in self.linked(to) {
                self.change_links(&linked, |object| {
                    object.linking_mut().into_iter().for_each(|linking| linking.rename_link(from, to));
                });
            }
        }
    }

    /// Changes the links of a key's value, and reports it to those that read the key. The caller
    /// reports the change of its own key.
    pub(crate) fn change_links(&mut self, key: &[u8], change: impl FnOnce(&mut Object)) {
        let is_changed = self.database_mut(key).change_links(hash(key), key, change).is_some();
        if is_changed {
            let db = self.db();
            let shard = self.shard_mut(key);
            shard.touch(db, key);
            if shard.is_read() {
                self.note_queries(key, &Touched::Everything);
            }
        }
    }

    /// Returns the keys that a key links to and that know of it, each once.
    fn linked(&self, key: &[u8]) -> Vec<Box<[u8]>> {
        let mut linked: Vec<Box<[u8]>> = Vec::new();
        self.database(key).for_each_link(key, &mut |other, link_use| {
            if link_use != LinkUse::Sees && !linked.iter().any(|known| **known == *other) {
                linked.push(other.into());
            }
        });
        linked
    }
}

/// Ends all links of an entry that is a copy: those of the original stay its own.
pub(crate) fn without_links(mut entry: Entry) -> Entry {
    if let Some(linking) = entry.object_mut().and_then(Object::linking_mut) {
        linking.cut_all_links();
    }
    entry
}
