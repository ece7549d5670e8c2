//! Reads of keys. An expired key counts as absent.

use super::Keys;
use crate::command::parse;
use crate::error::CommandError;
use crate::keyspace::{Entry, ValueRef, hash};
use crate::value::{Text, Type, TypedValue};

impl Keys<'_> {
    /// Returns the entry of a key that has not expired, and records an access to it.
    #[inline]
    pub fn entry(&self, key: &[u8]) -> Option<&Entry> {
        let entry = self.peek(key)?;
        entry.touch(self.clock());
        Some(entry)
    }

    /// As [`Keys::entry`], without recording an access.
    #[inline]
    pub fn peek(&self, key: &[u8]) -> Option<&Entry> {
        let entry = self.database(key).get(hash(key), key)?;
        if self.is_expired(entry) {
            self.has_met_expired.set(true);
            return None;
        }
        Some(entry)
    }

    /// Runs `look` with reads that see the logged state: a key exists until a record removes it,
    /// and a counter has its committed position.
    pub(crate) fn as_logged<R>(&mut self, look: impl FnOnce(&mut Self) -> R) -> R {
        let until_ms = std::mem::replace(&mut self.expired_until_ms, 0);
        let saw_logged = std::mem::replace(&mut self.sees_logged, true);
        let result = look(self);
        (self.expired_until_ms, self.sees_logged) = (until_ms, saw_logged);
        result
    }

    pub(crate) fn sees_logged(&self) -> bool {
        self.sees_logged
    }

    /// Whether an entry counts as present: it has not expired.
    pub(crate) fn is_there(&self, entry: &Entry) -> bool {
        !self.is_expired(entry)
    }

    /// Whether the key exists.
    pub fn exists(&self, key: &[u8]) -> bool {
        self.peek(key).is_some()
    }

    /// Type of a key's value.
    pub fn type_of(&self, key: &[u8]) -> Option<Type> {
        self.peek(key).map(Entry::type_of)
    }

    /// Returns a string's value, or an error if the key holds another type.
    #[inline]
    pub fn string(&self, key: &[u8]) -> Result<Option<Text<'_>>, CommandError> {
        self.entry(key).map(Entry::text).transpose()
    }

    /// Returns a string's value as an integer, or an error if it is not one.
    #[inline]
    pub fn integer(&self, key: &[u8]) -> Result<Option<i64>, CommandError> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        match entry.value() {
            ValueRef::Int(value) => Ok(Some(value)),
            _ => parse::integer(&entry.text()?).map(Some),
        }
    }

    /// Returns a collection, or an error if the key holds another type.
    pub fn read<T: TypedValue>(&self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        self.entry(key).map(Entry::collection).transpose()
    }

    /// Whether the key is present, expired or not.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.database(key).get(hash(key), key).is_some()
    }
}
