//! Writes of keys: values, removal, deadlines.

use super::Keys;
use crate::command::parse;
use crate::error::CommandError;
use crate::keyspace::{Deadline, Entry, Payload, ValueRef, hash};
use crate::value::{Labels, Object, Type, TypedValue};

impl Keys<'_> {
    /// Changes a collection if the key exists; removes the key if the collection is empty
    /// afterwards.
    ///
    /// The caller reports changes by [`Keys::changed`].
    pub fn update<T: TypedValue, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, CommandError> {
        self.drop_expired(key);
        let (hash, clock) = (hash(key), self.clock());
        let database = self.database_mut(key);
        let Some(entry) = database.get_mut(hash, key) else { return Ok(None) };
        entry.touch(clock);
        let collection = entry.object_mut().and_then(T::from_object_mut).ok_or(CommandError::WrongType)?;
        let result = change(collection);
        if collection.is_misplaced() {
            self.list_hash(key);
        } else if collection.is_empty() {
            database.remove(hash, key);
        }
        Ok(Some(result))
    }

    /// Changes a collection, creating it if the key does not exist; removes the key if the
    /// collection is empty afterwards.
    pub fn upsert<T: TypedValue + Default, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, CommandError> {
        self.drop_expired(key);
        let (hash, clock) = (hash(key), self.clock());
        let database = self.database_mut(key);
        if let Some(entry) = database.get_mut(hash, key) {
            entry.touch(clock);
            let collection =
                entry.object_mut().and_then(T::from_object_mut).ok_or(CommandError::WrongType)?;
            let result = change(collection);
            if collection.is_misplaced() {
                self.list_hash(key);
            } else if collection.is_empty() {
                database.remove(hash, key);
            }
            return Ok(result);
        }
        let mut collection = T::default();
        let result = change(&mut collection);
        if !collection.is_empty() {
            let object = Box::new(collection.into_object());
            let entry = Entry::new(key, Payload::Object(object), None);
            entry.touch(clock);
            database.insert(hash, entry);
            if T::TYPE == Type::Hash {
                self.note_field_times(key);
            }
            if self.events.are_wanted() {
                self.note_new(key);
            }
        }
        Ok(result)
    }

    /// Replaces the key's value with a collection without a deadline; an empty one removes the key.
    pub fn put<T: TypedValue>(&mut self, key: &[u8], value: T) {
        if value.is_empty() {
            self.remove(key);
        } else {
            let object = Box::new(value.into_object());
            self.set(key, Payload::Object(object), Deadline::Clear);
        }
    }

    /// Sets a string to the bytes that the client sent.
    #[inline]
    pub fn set_string(&mut self, key: &[u8], value: &[u8], deadline: Deadline) {
        match parse::canonical_integer(value) {
            Some(integer) => self.set(key, Payload::Int(integer), deadline),
            None => self.set(key, Payload::Raw(value), deadline),
        }
    }

    /// Sets a key's value, replacing any.
    #[inline]
    pub fn set(&mut self, key: &[u8], payload: Payload<'_>, deadline: Deadline) {
        match deadline {
            Deadline::Keep => self.drop_expired(key),
            Deadline::Clear => {}
            Deadline::At(at) => self.note_deadline(at),
        }
        if self.events.are_wanted() {
            self.note_coming(key);
        }
        self.cut_links(key);
        let (clock, may_have_times) = (self.clock(), matches!(payload, Payload::Object(_)));
        self.database_mut(key).set(hash(key), key, payload, deadline, clock);
        if may_have_times {
            self.note_field_times(key);
        }
    }

    /// Returns a string that can grow in place, creating an empty one if the key does not exist.
    pub fn growing_string(&mut self, key: &[u8]) -> Result<&mut Vec<u8>, CommandError> {
        self.drop_expired(key);
        if self.events.are_wanted() {
            self.note_coming(key);
        }
        let (hash, clock) = (hash(key), self.clock());
        let database = self.database_mut(key);
        let bytes = match database.get(hash, key) {
            None => Some(Vec::new()),
            Some(entry) => match entry.value() {
                ValueRef::Object(Object::String(_)) => None,
                _ => Some(entry.text()?.to_vec()),
            },
        };
        if let Some(bytes) = bytes {
            let object = Box::new(Object::String(bytes));
            database.set(hash, key, Payload::Object(object), Deadline::Keep, clock);
        }
        let entry = database.get_mut(hash, key);
        match entry.inspect(|entry| entry.touch(clock)).and_then(Entry::object_mut) {
            Some(Object::String(bytes)) => Ok(bytes),
            other => unreachable!("the key was given a string that can grow, and holds {other:?}"),
        }
    }

    /// Replaces the labels of a series, of which the database has an index. Returns `false` if the
    /// key holds none.
    pub(crate) fn set_labels(&mut self, key: &[u8], labels: Labels) -> bool {
        self.drop_expired(key);
        self.database_mut(key).set_labels(hash(key), key, labels)
    }

    /// Removes a key. Returns whether it existed.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.unlink(key).is_some()
    }

    /// Takes a key's entry out, to place it under another key. Its links stay as they are.
    pub fn take(&mut self, key: &[u8]) -> Option<Entry> {
        self.drop_expired(key);
        self.database_mut(key).take(hash(key), key)
    }

    /// Removes a key and returns its entry, for callers that drop it elsewhere.
    pub fn unlink(&mut self, key: &[u8]) -> Option<Entry> {
        self.drop_expired(key);
        self.cut_links(key);
        self.database_mut(key).remove(hash(key), key)
    }

    /// Places an entry, replacing the value of its key.
    pub fn place(&mut self, entry: Entry) {
        let (key, clock) = (entry.key().to_vec(), self.clock());
        if self.events.are_wanted() {
            self.drop_expired(&key);
            self.note_new(&key);
        }
        self.cut_links(&key);
        let database = self.database_mut(&key);
        let hash = hash(&key);
        let deadline = entry.deadline();
        entry.touch(clock);
        database.remove(hash, &key);
        database.place(hash, entry);
        // `commit_due` may have passed this shard already and not yet the entry's old one.
        if let Some(at) = database.next_commit() {
            self.committing().next_due().lower(at);
        }
        if let Some(at) = deadline {
            self.note_deadline(at);
        }
        self.note_field_times(&key);
    }

    /// Sets or clears the deadline of a key, in milliseconds since 1970. Returns whether the key
    /// exists.
    pub fn set_deadline(&mut self, key: &[u8], deadline: Option<u64>) -> bool {
        self.drop_expired(key);
        if let Some(at) = deadline {
            self.note_deadline(at);
        }
        self.database_mut(key).set_deadline(hash(key), key, deadline)
    }
}
