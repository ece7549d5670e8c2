//! Keys with times: fields of hashes that expire.
//!
//! A time is the deadline of the key's entry in the table. A map without times costs one empty pointer
//! more, once it is a table; one with them two words for each such key, and its place in the order of the
//! times.
//!
//! ```text
//! table ──► entry: key, value, time ◄── due: (time, hash of the key), ordered
//! ```
//!
//! Times do not depend on a clock: a key stays until it is removed.

use super::{Dict, Form, Large};
use crate::keyspace::{DueKeys, Entry, hash};
use crate::persist::record::{Cursor, put_varint};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What precedes a time and a pair in the snapshot form. No key is as long.
const TIMED: u64 = 1 << 32;

/// The keys of a map that have a time.
#[derive(Default)]
pub(super) struct KeyTimes {
    due: DueKeys,
    /// The time by which the owner of the map lists it; 0 if it does not.
    listed_ms: u64,
}

impl Large {
    /// Sets or clears the time of a key that is present. The caller has seen to a running capture.
    #[cold]
    pub(super) fn move_time(&mut self, hash: u64, key: &[u8], at_ms: Option<u64>) {
        let Some(entry) = self.table.get_mut(hash, key) else { return };
        let before_ms = entry.deadline();
        if before_ms == at_ms {
            return;
        }
        entry.set_deadline(at_ms);
        if let Some(before_ms) = before_ms {
            self.unlist(hash, before_ms);
        }
        if let Some(at_ms) = at_ms {
            self.times.get_or_insert_default().due.insert(at_ms, hash);
        }
    }

    /// Removes a key with a time from the order, after it has lost the time.
    #[cold]
    pub(super) fn unlist(&mut self, hash: u64, at_ms: u64) {
        // Another key with the same hash and time has the same place.
        let is_shared = self.table.find(hash, |entry| has_place(entry, hash, at_ms)).is_some();
        if let Some(times) = &mut self.times
            && !is_shared
        {
            times.due.remove(at_ms, hash);
        }
    }
}

impl Dict {
    fn times(&self) -> Option<&KeyTimes> {
        match &self.0 {
            Form::Packed(_) => None,
            Form::Table(large) => large.times.as_deref(),
        }
    }

    /// Number of keys that have a time, not counting one with the hash and the time of another.
    #[cfg(test)]
    fn timed_len(&self) -> usize {
        self.times().map_or(0, |times| times.due.len())
    }

    /// The earliest time of a key, in milliseconds since 1970.
    #[inline]
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.times()?.due.next()
    }

    /// The time by which the owner of the map lists it; 0 if it does not.
    #[inline]
    pub(crate) fn listed_ms(&self) -> u64 {
        self.times().map_or(0, |times| times.listed_ms)
    }

    /// Notes the time by which the owner of the map lists it: the earliest one of a key.
    pub(crate) fn set_listed_ms(&mut self, at_ms: u64) {
        if let Form::Table(large) = &mut self.0
            && let Some(times) = &mut large.times
        {
            times.listed_ms = at_ms;
        }
    }

    /// Returns the time of a key; `None` without the key, or without a time.
    pub(crate) fn time_of(&self, key: &[u8]) -> Option<u64> {
        match &self.0 {
            Form::Packed(_) => None,
            Form::Table(large) => large.table.get(hash(key), key).and_then(Entry::deadline),
        }
    }

    /// Sets or clears the time of a key that is present. O(log n) for n times; O(n) for n keys if the map
    /// becomes a table.
    pub(crate) fn set_time(&mut self, key: &[u8], at_ms: Option<u64>) {
        if at_ms.is_none() && matches!(self.0, Form::Packed(_)) {
            return;
        }
        let (large, hash) = (self.large(), hash(key));
        large.before_change(hash, key);
        large.move_time(hash, key, at_ms);
    }

    /// As [`Dict::set`], but the key keeps its time.
    pub(crate) fn set_keeping_time(&mut self, key: &[u8], value: &[u8]) -> bool {
        let before_ms = self.time_of(key);
        let is_new = self.set(key, value);
        if before_ms.is_some() {
            self.set_time(key, before_ms);
        }
        is_new
    }

    /// Returns the keys whose time is `now_ms` or earlier, in the order of their times, about `most` of
    /// them.
    pub(crate) fn due(&self, now_ms: u64, most: usize) -> Vec<&[u8]> {
        let Form::Table(large) = &self.0 else { return Vec::new() };
        let places = large.times.iter().flat_map(|times| times.due.iter());
        let due = places.take_while(|&(at_ms, _)| at_ms <= now_ms).take(most);
        let entries = due.flat_map(|(at_ms, hash)| {
            large.table.candidates(hash).filter(move |entry| has_place(entry, hash, at_ms))
        });
        entries.map(Entry::key).collect()
    }

    /// As [`Dict::iter`], with the times.
    pub(crate) fn iter_timed(&self) -> impl Iterator<Item = (&[u8], &[u8], Option<u64>)> {
        let (packed, table) = match &self.0 {
            Form::Packed(packed) => (Some(packed), None),
            Form::Table(large) => (None, Some(&large.table)),
        };
        let entries = table.into_iter().flat_map(crate::keyspace::Table::iter);
        let entries = entries.map(|entry| (entry.key(), super::value(entry), entry.deadline()));
        let packed = packed.into_iter().flat_map(super::Packed::iter);
        packed.map(|(key, value)| (key, value, None)).chain(entries)
    }

    /// Parses and adds a pair in its snapshot form, which may have a time; `None` if it is invalid or its
    /// key is present.
    pub(crate) fn decode_timed_pair(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        let mut ahead = bytes.clone();
        if ahead.varint()? != TIMED {
            return self.decode_pair(bytes);
        }
        let at_ms = ahead.varint().filter(|&at_ms| at_ms != 0)?;
        *bytes = ahead.clone();
        let key = ahead.bytes()?;
        self.decode_pair(bytes)?;
        self.set_time(key, Some(at_ms));
        Some(())
    }

    /// As [`Dict::decode`], of pairs that may have times.
    pub(crate) fn decode_timed(bytes: &mut Cursor<'_>) -> Option<Self> {
        let mut dict = Self::default();
        for _ in 0..bytes.varint()? {
            dict.decode_timed_pair(bytes)?;
        }
        Some(dict)
    }
}

/// Whether a key has this place in the order. Tables find keys with other hashes as well.
fn has_place(entry: &Entry, place: u64, at_ms: u64) -> bool {
    entry.deadline() == Some(at_ms) && hash(entry.key()) == place
}

/// Appends the time of the pair that follows.
pub(super) fn put_time(into: &mut Vec<u8>, at_ms: u64) {
    put_varint(into, TIMED);
    put_varint(into, at_ms);
}

/// Returns the digest of a pair with a time from that of the pair.
pub(super) fn timed_digest(pair: u64, at_ms: u64) -> u64 {
    xxh3_64_with_seed(&at_ms.to_le_bytes(), pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::damage;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Debug, Clone)]
    enum Step {
        Set(u8, u8),
        SetKeepingTime(u8, u8),
        SetTime(u8, Option<u64>),
        Remove(u8),
        /// Removes what is due by a time.
        RemoveDue(u64),
        /// Adds keys until the map is a table.
        Spread,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u8..30, any::<u8>()).prop_map(|(key, value)| Step::Set(key, value)),
            4 => (0_u8..30, any::<u8>()).prop_map(|(key, value)| Step::SetKeepingTime(key, value)),
            4 => (0_u8..30, proptest::option::of(1_u64..40)).prop_map(|(key, at)| Step::SetTime(key, at)),
            2 => (0_u8..30).prop_map(Step::Remove),
            1 => (0_u64..40).prop_map(Step::RemoveDue),
            1 => Just(Step::Spread),
        ]
    }

    type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

    fn pairs(dict: &Dict) -> Model {
        dict.iter_timed().map(|(key, value, at_ms)| (key.to_vec(), (value.to_vec(), at_ms))).collect()
    }

    fn encoded(dict: &Dict) -> Vec<u8> {
        let mut form = Vec::new();
        dict.encode(&mut form);
        form
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_dict_with_times_behaves_as_a_map(steps in proptest::collection::vec(step(), 0..200)) {
            let (mut dict, mut model) = (Dict::default(), Model::new());
            for step in steps {
                match step {
                    Step::Set(key, value) => {
                        dict.set(&[key], &[value]);
                        model.insert(vec![key], (vec![value], None));
                    }
                    Step::SetKeepingTime(key, value) => {
                        dict.set_keeping_time(&[key], &[value]);
                        model.entry(vec![key]).or_default().0 = vec![value];
                    }
                    Step::SetTime(key, at_ms) => {
                        if let Some(pair) = model.get_mut(&vec![key]) {
                            pair.1 = at_ms;
                            dict.set_time(&[key], at_ms);
                        }
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(dict.remove(&[key]), model.remove(&vec![key]).is_some());
                    }
                    Step::RemoveDue(now_ms) => {
                        let due: Vec<Vec<u8>> = dict.due(now_ms, usize::MAX).into_iter().map(<[u8]>::to_vec).collect();
                        let times: Vec<Option<u64>> = due.iter().map(|key| model[key].1).collect();
                        prop_assert!(times.is_sorted());
                        due.iter().for_each(|key| assert!(dict.remove(key) && model.remove(key).is_some()));
                        prop_assert!(model.values().all(|(_, at)| at.is_none_or(|at| at > now_ms)));
                    }
                    Step::Spread => (0..140_u8).map(u8::to_be_bytes).for_each(|key| {
                        dict.set(&key, b"v");
                        model.insert(key.to_vec(), (b"v".to_vec(), None));
                    }),
                }
                let times = || model.values().filter_map(|(_, at_ms)| *at_ms);
                prop_assert_eq!(dict.next_time(), times().min());
                prop_assert_eq!(dict.timed_len(), times().count());
            }
            prop_assert_eq!(pairs(&dict), model.clone());
            for (key, (_, at_ms)) in &model {
                prop_assert_eq!(dict.time_of(key), *at_ms);
            }
            let form = encoded(&dict);
            let mut cursor = Cursor::new(&form);
            let read = Dict::decode_timed(&mut cursor).expect("what was encoded decodes");
            prop_assert!(cursor.is_empty());
            prop_assert_eq!(pairs(&read), model.clone());
            prop_assert_eq!(read.digest(), dict.digest());
            // A time changes the digest.
            if let Some((key, (_, at_ms))) = model.iter().next() {
                dict.set_time(key, Some(at_ms.unwrap_or(0) + 1));
                prop_assert!(read.digest() != dict.digest());
            }
        }

        #[test]
        fn any_bytes_decode_to_what_they_are_or_are_refused(bytes in damage::bytes(100)) {
            damage::check(&bytes, Dict::decode_timed, encoded, pairs)?;
        }
    }

    #[test]
    fn a_form_with_times_is_none_of_a_map_without() {
        let mut dict = Dict::default();
        dict.set(b"k", b"v");
        dict.set_time(b"k", Some(7));
        assert!(Dict::decode(&mut Cursor::new(&encoded(&dict))).is_none());
        dict.set_time(b"k", None);
        assert!(Dict::decode(&mut Cursor::new(&encoded(&dict))).is_some());
    }

    #[test]
    fn due_keys_come_by_their_times_and_not_more_than_wanted() {
        let mut dict = Dict::default();
        for n in 0..10_u8 {
            dict.set(&[n], b"v");
            dict.set_time(&[n], Some(u64::from(100 - n)));
        }
        assert_eq!(dict.due(93, 2), [[9], [8]]);
        assert_eq!(dict.due(90, 9), Vec::<&[u8]>::new());
        assert_eq!(dict.due(u64::MAX, 99).len(), 10);
    }
}
