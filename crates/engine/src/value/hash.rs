//! Hashes: fields with values, and times at which they expire.

use super::dict::Dict;
use super::{InParts, Pieces, TypedValue, Value};
use crate::persist::record::Cursor;
use crate::random::Random;

/// Most fields of a hash that Redis stores as a listpack (`hash-max-listpack-entries`).
const LISTPACK_FIELDS: usize = 512;
/// Longest field and value in such a hash, in bytes (`hash-max-listpack-value`).
const LISTPACK_BYTES: usize = 64;

/// Fields with values, both byte strings. Setting, reading and removing a field is O(1).
///
/// A field with a time stays, and is seen, until it is removed: the value knows no clock.
#[derive(Debug, Default)]
pub struct Hash {
    fields: Dict,
    /// Whether the hash has ever exceeded Redis's limits of a listpack, which are above ours.
    outgrown: bool,
}

impl Hash {
    /// Returns Redis's name of this representation.
    pub fn encoding(&self) -> &'static str {
        match (self.outgrown, self.has_times()) {
            (true, _) => "hashtable",
            (false, true) => "listpackex",
            (false, false) => "listpack",
        }
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the hash is empty.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the value of a field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.fields.get(field)
    }

    /// Whether the hash contains a field.
    pub fn contains(&self, field: &[u8]) -> bool {
        self.fields.contains(field)
    }

    /// Sets the value of a field, which has no time then. Returns whether the field is new.
    #[inline]
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        let is_new = self.fields.set(field, value);
        self.note_size(field, value);
        is_new
    }

    /// As [`Hash::set`], but the field keeps its time.
    #[inline]
    pub fn set_keeping_time(&mut self, field: &[u8], value: &[u8]) -> bool {
        if !self.has_times() {
            return self.set(field, value);
        }
        let is_new = self.fields.set_keeping_time(field, value);
        self.note_size(field, value);
        is_new
    }

    #[inline]
    fn note_size(&mut self, field: &[u8], value: &[u8]) {
        self.outgrown |= field.len() > LISTPACK_BYTES
            || value.len() > LISTPACK_BYTES
            || self.fields.len() > LISTPACK_FIELDS;
    }

    /// Whether a field has a time.
    #[inline]
    pub fn has_times(&self) -> bool {
        self.fields.next_time().is_some()
    }

    /// Returns the time of a field, in milliseconds since 1970; `None` without the field, or without a time.
    pub fn time_of(&self, field: &[u8]) -> Option<u64> {
        self.fields.time_of(field)
    }

    /// Sets or clears the time of a field, in milliseconds since 1970, not 0. Does nothing without the field.
    pub fn set_time(&mut self, field: &[u8], at_ms: Option<u64>) {
        if self.fields.contains(field) {
            self.fields.set_time(field, at_ms);
        }
    }

    /// The earliest time of a field, in milliseconds since 1970.
    #[inline]
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.fields.next_time()
    }

    /// Returns about `most` fields whose time has come, in the order of their times.
    pub(crate) fn due(&self, now_ms: u64, most: usize) -> Vec<&[u8]> {
        self.fields.due(now_ms, most)
    }

    /// Whether it is not listed by its earliest time.
    #[inline]
    pub(crate) fn is_misplaced(&self) -> bool {
        self.fields.next_time().unwrap_or(0) != self.fields.listed_ms()
    }

    /// The time by which its database lists it; 0 if it does not.
    pub(crate) fn listed_ms(&self) -> u64 {
        self.fields.listed_ms()
    }

    /// Notes by which time its database lists it.
    pub(crate) fn set_listed_ms(&mut self, at_ms: u64) {
        self.fields.set_listed_ms(at_ms);
    }

    /// Iterates over all fields with their values and times.
    pub(crate) fn iter_timed(&self) -> impl Iterator<Item = (&[u8], &[u8], Option<u64>)> {
        self.fields.iter_timed()
    }

    /// Removes a field. Returns whether it was present.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        self.fields.remove(field)
    }

    /// Iterates over all fields with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter()
    }

    /// Visits fields from a cursor, like [`Dict::scan`].
    pub(crate) fn scan<'a>(
        &'a self,
        cursor: u64,
        budget: usize,
        visit: impl FnMut(&'a [u8], &'a [u8]),
    ) -> u64 {
        self.fields.scan(cursor, budget, visit)
    }

    /// Returns a random field with its value.
    pub(crate) fn random(&self, random: &mut Random) -> Option<(&[u8], &[u8])> {
        self.fields.random(random)
    }

    /// Returns different random fields, like [`Dict::sample`].
    pub(crate) fn sample(&self, count: usize, random: &mut Random) -> Vec<(&[u8], &[u8])> {
        self.fields.sample(count, random)
    }

    /// Draws random fields with repetition, like [`Dict::draw`].
    pub(crate) fn draw<'a, E>(
        &'a self,
        count: usize,
        random: &mut Random,
        visit: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.fields.draw(count, random, visit)
    }
}

impl Value for Hash {
    collection_methods!();

    fn is_misplaced(&self) -> bool {
        self.is_misplaced()
    }

    /// The flag `outgrown`, then the fields.
    fn encode(&self, into: &mut Vec<u8>) {
        into.push(u8::from(self.outgrown));
        self.fields.encode(into);
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let outgrown = match bytes.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let fields = Dict::decode_timed(bytes)?;
        (!fields.is_empty()).then_some(Self { fields, outgrown })
    }

    fn digest(&self) -> u64 {
        self.fields.digest()
    }
}

impl InParts for Hash {
    fn needs_parts(&self) -> bool {
        self.fields.is_large()
    }

    fn begin_capture(&mut self, number: u64) {
        // Hashes with this many or such large fields become outgrown when their parts are loaded.
        assert!(self.outgrown, "value {number}, a hash of {} fields, needs no parts", self.fields.len());
        self.fields.begin_capture(number, Self::TYPE);
    }

    fn end_capture(&mut self) {
        self.fields.end_capture();
    }

    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn is_captured(&self) -> bool {
        self.fields.is_captured()
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        self.fields.capture_step(pieces)
    }

    fn decode_element(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        self.outgrown = true;
        self.fields.decode_timed_pair(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_redis_s_and_never_goes_back() {
        let mut hash = Hash::default();
        (0..512).for_each(|n| assert!(hash.set(n.to_string().as_bytes(), b"v")));
        assert_eq!(hash.encoding(), "listpack");
        hash.set(b"one more", b"v");
        assert_eq!(hash.encoding(), "hashtable");
        (0..512).for_each(|n| assert!(hash.remove(n.to_string().as_bytes())));
        assert_eq!((hash.len(), hash.encoding()), (1, "hashtable"));
        let mut long = Hash::default();
        long.set(b"field", &[b'v'; 64]);
        assert_eq!(long.encoding(), "listpack");
        long.set(b"field", &[b'v'; 65]);
        assert_eq!(long.encoding(), "hashtable");
    }

    #[test]
    fn a_copy_has_the_same_encoding() {
        let mut hash = Hash::default();
        hash.set(b"field", &[b'v'; 65]);
        hash.set(b"field", b"short");
        let mut form = Vec::new();
        hash.encode(&mut form);
        let copy = Hash::decode(&mut Cursor::new(&form)).expect("what was encoded decodes");
        assert_eq!((copy.encoding(), copy.get(b"field")), ("hashtable", Some(&b"short"[..])));
        assert_eq!(copy.digest(), hash.digest());
    }

    #[test]
    fn a_hash_without_fields_is_no_value() {
        let mut form = Vec::new();
        Hash::default().encode(&mut form);
        assert!(Hash::decode(&mut Cursor::new(&form)).is_none());
        assert!(Hash::decode(&mut Cursor::new(&[2, 0])).is_none());
    }
}
