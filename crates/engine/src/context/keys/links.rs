//! Links between values: both ends stay right when a key goes or gets another name.
//!
//! The shards of all linked keys are locked, because a writing command's locks are closed over links.

use super::Keys;
use crate::keyspace::{Entry, hash};
use crate::value::Object;
use crate::value::links::{LinkUse, Linking};
use crate::watch::touched::Touched;
use std::collections::BTreeSet;

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
        self.note_sights(key, key, false);
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
            self.note_sights(to, from, false);
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

    /// Notes whether a lens of this name sees the keys that the value of `key`, if it is a lens, does.
    fn note_sights(&mut self, key: &[u8], name: &[u8], sees: bool) {
        let mut seen: Vec<Box<[u8]>> = Vec::new();
        self.database(key).for_each_link(key, &mut |source, link_use| {
            if link_use == LinkUse::Sees {
                seen.push(source.into());
            }
        });
        seen.iter().for_each(|source| self.database_mut(source).note_sight(source, name, sees));
    }

    /// Follows the change of a key: what lenses show that see it has changed, and a lens that is new
    /// there sees other keys.
    #[cold]
    pub(super) fn follow_sights(&mut self, key: &[u8]) {
        self.note_sights(key, key, true);
        let db = self.db();
        let mut open: Vec<Box<[u8]>> = vec![key.into()];
        let mut followed: BTreeSet<Box<[u8]>> = BTreeSet::new();
        while let Some(seen) = open.pop() {
            let mut lenses: Vec<Box<[u8]>> = Vec::new();
            self.database(&seen).for_each_link(&seen, &mut |lens, link_use| {
                if link_use == LinkUse::Shows && followed.insert(Box::from(lens)) {
                    lenses.push(lens.into());
                }
            });
            for lens in lenses {
                let shard = self.shard_mut(&lens);
                shard.touch(db, &lens);
                let (is_awaited, is_read) = (!shard.waiting().is_empty(), shard.is_read());
                if is_awaited {
                    self.note_ready(&lens);
                }
                if is_read {
                    self.note_queries(&lens, &Touched::Shown);
                }
                open.push(lens);
            }
        }
    }

    /// Returns the keys that a key links to and that know of it, each once.
    fn linked(&self, key: &[u8]) -> Vec<Box<[u8]>> {
        let mut linked: Vec<Box<[u8]>> = Vec::new();
        self.database(key).for_each_link(key, &mut |other, link_use| {
            if matches!(link_use, LinkUse::Reads | LinkUse::Writes)
                && !linked.iter().any(|known| **known == *other)
            {
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
