//! Keyspace events of the commands under these locks.

use super::Keys;
use crate::event::{DELETED, EXPIRED, EventClasses, NEW};

impl Keys<'_> {
    /// Reports an event of an unchanged key; [`Keys::changed`] reports those of changes.
    #[inline]
    pub(crate) fn happened(&mut self, key: &[u8], event: &'static str) {
        if self.events.are_wanted() {
            self.note_event(key, event);
        }
    }

    /// As [`Keys::happened`], of elements, before another event of the same command.
    #[inline]
    pub(crate) fn happened_first(&mut self, key: &[u8], event: &'static str) {
        if self.events.are_wanted() {
            let db = self.db();
            self.events.add(EventClasses::HASH, db, event, key);
        }
    }

    /// Reports that a key came that is gone again at the end of the same command.
    #[cold]
    pub(crate) fn came_and_went(&mut self, key: &[u8]) {
        if self.events.want(EventClasses::NEW) {
            self.note_new(key);
        }
    }

    /// Adds an event. After an event of a collection's elements, adds the removal of the key if no
    /// element is left.
    #[cold]
    pub(super) fn note_event(&mut self, key: &[u8], event: &'static str) {
        let class = EventClasses::of(event).unwrap_or_else(|| panic!("the event {event} has no class"));
        let db = self.db();
        self.events.add(class, db, event, key);
        if class.is_of_elements() && !self.holds(key) {
            self.events.add(EventClasses::GENERIC, db, DELETED, key);
        }
    }

    /// Reports that a key was removed because it had expired.
    pub(crate) fn announce_expired(&mut self, key: &[u8]) {
        if self.events.are_wanted() {
            self.note_expired(key);
        }
    }

    #[cold]
    pub(super) fn note_expired(&mut self, key: &[u8]) {
        let db = self.db();
        self.events.add(EventClasses::EXPIRED, db, EXPIRED, key);
    }

    #[cold]
    pub(super) fn note_new(&mut self, key: &[u8]) {
        let db = self.db();
        self.events.add(EventClasses::NEW, db, NEW, key);
    }

    /// As [`Keys::note_new`], before a key's value is set; does nothing if the key exists.
    #[cold]
    pub(super) fn note_coming(&mut self, key: &[u8]) {
        self.drop_expired(key);
        if self.events.want(EventClasses::NEW) && !self.holds(key) {
            self.note_new(key);
        }
    }
}
