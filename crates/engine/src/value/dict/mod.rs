//! A map from byte strings to byte strings: one packed block while it is small, then a hash table.
//!
//! Hashes are such maps; sets are such maps with empty values. A map that has outgrown its block
//! stays a table even if it shrinks, so that a size around the limit causes no repeated conversion.
//!
//! Small maps keep insertion order. Lookups and changes are O(1) expected in a table, and O(n) in a
//! block of at most 128 pairs.
//!
//! A key may have a time, at which it is due: see [`times`]. A map with such keys is a table.

mod times;

use super::Type;
use super::capture::{self, PART_BYTES, Parts, Pieces, STEP_ELEMENTS};
use super::packed::Packed;
use crate::keyspace::{Entry, MAX_BYTES, Payload, Table, ValueRef, hash};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::random::Random;
use std::collections::HashSet;
use times::{KeyTimes, put_time, timed_digest};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Pairs per draw below which a table is scanned once for all draws: one random draw costs about as
/// much as scanning this many pairs.
const FEW_DRAWS: usize = 8;

/// A map; see the module docs.
pub(crate) struct Dict(Form);

enum Form {
    Packed(Packed),
    Table(Box<Large>),
}

/// Representation of large maps.
struct Large {
    table: Table<Entry>,
    /// Number of the latest capture, which written pairs and pairs added after the cut have.
    epoch: u16,
    capture: Option<Box<Capture>>,
    /// The keys that have a time; `None` if none ever had one.
    times: Option<Box<KeyTimes>>,
}

/// Capture of a map by a running snapshot.
struct Capture {
    parts: Parts,
    /// Position of the walk in hash order.
    position: u64,
}

impl Large {
    fn new(table: Table<Entry>) -> Self {
        Self { table, epoch: 0, capture: None, times: None }
    }

    /// Writes the pair of a key to the snapshot. Call it before the pair changes or is removed.
    #[inline]
    fn before_change(&mut self, hash: u64, key: &[u8]) {
        if let Some(capture) = &mut self.capture
            && let Some(entry) = self.table.get_mut(hash, key)
        {
            capture.see(entry, self.epoch);
        }
    }

    /// Adds a pair whose key is absent.
    #[inline]
    fn insert(&mut self, hash: u64, key: &[u8], value: &[u8]) {
        let mut entry = Entry::new(key, Payload::Raw(value), None);
        entry.set_epoch(self.epoch);
        self.table.insert(hash, entry);
    }

    /// Removes a key. Returns whether it was present.
    #[inline]
    fn remove(&mut self, hash: u64, key: &[u8]) -> bool {
        let Some(entry) = self.table.remove(hash, key) else { return false };
        if let Some(at_ms) = entry.deadline() {
            self.unlist(hash, at_ms);
        }
        true
    }

    /// Writes the next pairs of a captured map. Returns whether there are more.
    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        let Some(capture) = &mut self.capture else { return false };
        // A table that has shrunk visits some pairs again; their epoch marks them as written.
        let next = self.table.scan_mut(capture.position, STEP_ELEMENTS, |entry| {
            capture.see(entry, self.epoch);
            1 + (entry.key().len() + value(entry).len()) / (PART_BYTES / STEP_ELEMENTS)
        });
        capture.position = next;
        capture.parts.give_to(pieces);
        if next != 0 {
            return true;
        }
        if let Some(capture) = self.capture.take() {
            capture.parts.end(pieces);
        }
        false
    }
}

impl Capture {
    fn see(&mut self, entry: &mut Entry, epoch: u16) {
        if entry.epoch() != epoch {
            entry.set_epoch(epoch);
            self.parts.push(|part| put_pair(part, entry.key(), value(entry), entry.deadline()));
        }
    }
}

impl Default for Dict {
    fn default() -> Self {
        Self(Form::Packed(Packed::default()))
    }
}

impl std::fmt::Debug for Dict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy;
        f.debug_map().entries(self.iter().map(|(key, value)| (text(key), text(value)))).finish()
    }
}

impl Dict {
    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.len(),
            Form::Table(large) => large.table.len(),
        }
    }

    /// Whether the map is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        match &self.0 {
            Form::Packed(packed) => packed.find(key).map(|place| packed.value(place)),
            Form::Table(large) => large.table.get(hash(key), key).map(value),
        }
    }

    /// Whether the map contains a key.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key, which has no time then. Returns whether the key is new.
    #[inline]
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) -> bool {
        if let Form::Packed(packed) = &mut self.0
            && Packed::admits(key, value)
        {
            if let Some(place) = packed.find(key) {
                packed.replace(place, value);
                return false;
            }
            if packed.has_room() {
                packed.push(key, value);
                return true;
            }
        }
        let large = self.large();
        let hash = hash(key);
        large.before_change(hash, key);
        if let Some(entry) = large.table.get_mut(hash, key) {
            entry.set(Payload::Raw(value));
            if entry.deadline().is_some() {
                large.move_time(hash, key, None);
            }
            return false;
        }
        large.insert(hash, key, value);
        true
    }

    /// Adds a key if it is absent. Returns whether it was added.
    #[inline]
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        if let Form::Packed(packed) = &mut self.0 {
            if packed.find(key).is_some() {
                return false;
            }
            if Packed::admits(key, value) && packed.has_room() {
                packed.push(key, value);
                return true;
            }
        }
        let large = self.large();
        let hash = hash(key);
        if large.table.get(hash, key).is_some() {
            return false;
        }
        large.insert(hash, key, value);
        true
    }

    /// Removes a key. Returns whether it was present.
    #[inline]
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        match &mut self.0 {
            Form::Packed(packed) => match packed.find(key) {
                Some(place) => {
                    packed.remove(place);
                    true
                }
                None => false,
            },
            Form::Table(large) => {
                let hash = hash(key);
                large.before_change(hash, key);
                large.remove(hash, key)
            }
        }
    }

    /// Iterates over all pairs; those of a small map are in insertion order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (packed, table) = match &self.0 {
            Form::Packed(packed) => (Some(packed), None),
            Form::Table(large) => (None, Some(&large.table)),
        };
        let entries = table.into_iter().flat_map(Table::iter).map(|entry| (entry.key(), value(entry)));
        packed.into_iter().flat_map(Packed::iter).chain(entries)
    }

    /// Visits pairs from `cursor` (0: the start), at least `budget` of them if there are so many; a
    /// small map is visited whole. Returns the next cursor, or 0 at the end. Pairs that stay in the
    /// map during a whole scan are visited at least once.
    pub(crate) fn scan<'a>(
        &'a self,
        cursor: u64,
        budget: usize,
        mut visit: impl FnMut(&'a [u8], &'a [u8]),
    ) -> u64 {
        match &self.0 {
            Form::Packed(packed) => {
                packed.iter().for_each(|(key, value)| visit(key, value));
                0
            }
            // A position in hash order has its significant bits on top. Reversed, it is no larger
            // than the table, so clients can keep it in signed or floating-point numbers.
            Form::Table(large) => large
                .table
                .scan(cursor.reverse_bits(), budget, |entry| visit(entry.key(), value(entry)))
                .reverse_bits(),
        }
    }

    /// Returns a random pair; `None` if the map is empty.
    pub(crate) fn random(&self, random: &mut Random) -> Option<(&[u8], &[u8])> {
        match &self.0 {
            Form::Packed(packed) if packed.len() == 0 => None,
            Form::Packed(packed) => packed.iter().nth(random.below(packed.len())),
            Form::Table(large) => {
                large.table.random(|| random.next()).map(|entry| (entry.key(), value(entry)))
            }
        }
    }

    /// Returns `count` different random pairs, or all if there are fewer. O(count) in a table if
    /// `count` is less than a third of the map, otherwise O(n).
    pub(crate) fn sample(&self, count: usize, random: &mut Random) -> Vec<(&[u8], &[u8])> {
        let Form::Table(large) = &self.0 else { return random.select(self.iter(), self.len(), count) };
        let table = &large.table;
        if count.saturating_mul(3) > table.len() {
            return random.select(self.iter(), self.len(), count);
        }
        // At least two of three draws are new, so the loop ends after about `count` draws.
        let mut seen: HashSet<&[u8], foldhash::fast::RandomState> =
            HashSet::with_capacity_and_hasher(count, foldhash::fast::RandomState::default());
        let mut chosen = Vec::with_capacity(count);
        while chosen.len() < count {
            let Some(entry) = table.random(|| random.next()) else { break };
            if seen.insert(entry.key()) {
                chosen.push((entry.key(), value(entry)));
            }
        }
        chosen
    }

    /// Draws `count` random pairs with repetition, until `visit` fails. O(count); O(n) if a scan is
    /// cheaper than so many draws from a table.
    pub(crate) fn draw<'a, E>(
        &'a self,
        count: usize,
        random: &mut Random,
        mut visit: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.0 {
            Form::Table(large) if count < large.table.len() / FEW_DRAWS => {
                for _ in 0..count {
                    let Some(entry) = large.table.random(|| random.next()) else { break };
                    visit(entry.key(), value(entry))?;
                }
                Ok(())
            }
            Form::Table(large) => {
                let entries: Vec<&Entry> = large.table.iter().collect();
                random.repeat(&entries, count, |entry| visit(entry.key(), value(entry)))
            }
            // Reaching a pair means scanning the block, so it is scanned once for all draws.
            Form::Packed(packed) => {
                let pairs: Vec<_> = packed.iter().collect();
                random.repeat(&pairs, count, |(key, value)| visit(key, value))
            }
        }
    }

    /// Appends the snapshot form: the number of pairs, then key and value of each.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, self.len() as u64);
        self.iter_timed().for_each(|(key, value, at_ms)| put_pair(into, key, value, at_ms));
    }

    /// Parses the snapshot form; `None` if it is invalid or has a duplicate key.
    pub(crate) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let mut dict = Self::default();
        // Memory is reserved as pairs are read: a corrupt count cannot reserve more than the input.
        for _ in 0..bytes.varint()? {
            dict.decode_pair(bytes)?;
        }
        Some(dict)
    }

    /// Parses and adds a pair in its snapshot form; `None` if it is invalid or its key is present.
    pub(super) fn decode_pair(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        let (key, value) = (bytes.bytes()?, bytes.bytes()?);
        let fits = key.len() <= MAX_BYTES && value.len() <= MAX_BYTES;
        (fits && self.insert(key, value)).then_some(())
    }

    /// Whether a snapshot should write the map in parts.
    pub(super) fn is_large(&self) -> bool {
        match &self.0 {
            Form::Packed(_) => false,
            Form::Table(large) => {
                let size = |entry: &Entry| entry.key().len() + value(entry).len();
                capture::is_large(large.table.len(), large.table.iter().map(size))
            }
        }
    }

    /// Starts a capture of the present state of a large map, which a snapshot writes in parts.
    pub(super) fn begin_capture(&mut self, number: u64, kind: Type) {
        let large = self.large();
        assert!(large.capture.is_none(), "value {number} is captured already");
        large.epoch = large.epoch.wrapping_add(1);
        let parts = Parts::new(number, kind, large.table.len());
        large.capture = Some(Box::new(Capture { parts, position: 0 }));
    }

    /// Whether a capture is running.
    pub(super) fn is_captured(&self) -> bool {
        matches!(&self.0, Form::Table(large) if large.capture.is_some())
    }

    /// Aborts the capture.
    pub(super) fn end_capture(&mut self) {
        if let Form::Table(large) = &mut self.0 {
            large.capture = None;
        }
    }

    /// Writes the next parts of a captured map. Returns whether there are more.
    pub(super) fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        match &mut self.0 {
            Form::Packed(_) => false,
            Form::Table(large) => large.capture_step(pieces),
        }
    }

    /// Returns a digest of the pairs that does not depend on their order.
    pub(crate) fn digest(&self) -> u64 {
        self.iter_timed().fold(0, |sum, (key, value, at_ms)| {
            let pair = pair_digest(key, value);
            sum.wrapping_add(at_ms.map_or(pair, |at_ms| timed_digest(pair, at_ms)))
        })
    }

    /// Returns the representation of large maps, converting a packed block.
    #[inline]
    fn large(&mut self) -> &mut Large {
        if let Form::Packed(packed) = &self.0 {
            self.0 = Form::Table(Box::new(Large::new(spread(packed))));
        }
        match &mut self.0 {
            Form::Table(large) => large,
            Form::Packed(_) => unreachable!("the block has just become a table"),
        }
    }
}

/// Returns a digest of one pair, equal in every process.
pub(crate) fn pair_digest(key: &[u8], value: &[u8]) -> u64 {
    const SEED: u64 = 0x7469_6465_6d61_726b;
    xxh3_64_with_seed(value, xxh3_64_with_seed(key, SEED))
}

/// Converts a block to a table with room to grow.
#[cold]
fn spread(packed: &Packed) -> Table<Entry> {
    let mut table = Table::with_capacity(packed.len() * 2);
    for (key, value) in packed.iter() {
        table.insert(hash(key), Entry::new(key, Payload::Raw(value), None));
    }
    table
}

/// Appends a pair in its snapshot form, behind its time if it has one.
fn put_pair(into: &mut Vec<u8>, key: &[u8], value: &[u8], at_ms: Option<u64>) {
    if let Some(at_ms) = at_ms {
        put_time(into, at_ms);
    }
    put_bytes(into, key);
    put_bytes(into, value);
}

#[inline]
fn value(entry: &Entry) -> &[u8] {
    match entry.value() {
        ValueRef::Raw(bytes) => bytes,
        other => unreachable!("values of a map are stored as bytes, not {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::damage;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Debug, Clone)]
    enum Step {
        Set(Vec<u8>, Vec<u8>),
        Insert(Vec<u8>, Vec<u8>),
        Remove(Vec<u8>),
    }

    /// Few keys, so that steps collide; some keys and values are too long for a block.
    fn step() -> impl Strategy<Value = Step> {
        let key = || {
            prop_oneof![
                9 => (0..200_u16).prop_map(|n| n.to_string().into_bytes()),
                1 => (60..70_usize).prop_map(|len| vec![b'k'; len]),
            ]
        };
        let value = || proptest::collection::vec(any::<u8>(), 0..66);
        prop_oneof![
            4 => (key(), value()).prop_map(|(key, value)| Step::Set(key, value)),
            2 => (key(), value()).prop_map(|(key, value)| Step::Insert(key, value)),
            1 => key().prop_map(Step::Remove),
        ]
    }

    fn pairs(dict: &Dict) -> BTreeMap<Vec<u8>, Vec<u8>> {
        dict.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    fn numbered(count: usize) -> Dict {
        let mut dict = Dict::default();
        (0..count).for_each(|n| assert!(dict.set(n.to_string().as_bytes(), b"v")));
        dict
    }

    #[test]
    fn a_small_map_keeps_the_order_of_its_keys() {
        let mut dict = Dict::default();
        for key in ["c", "a", "b"] {
            dict.set(key.as_bytes(), b"1");
        }
        dict.set(b"a", b"another value");
        let keys: Vec<&[u8]> = dict.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"c", b"a", b"b"]);
    }

    #[test]
    fn a_map_becomes_a_table_with_the_129th_key_or_the_65th_byte() {
        assert!(matches!(numbered(128).0, Form::Packed(_)));
        assert!(matches!(numbered(129).0, Form::Table(_)));
        for (key, value) in [(64, 64), (65, 0), (0, 65)] {
            let mut dict = Dict::default();
            dict.set(&vec![b'k'; key], &vec![b'v'; value]);
            assert_eq!(matches!(dict.0, Form::Packed(_)), key <= 64 && value <= 64);
            assert_eq!(dict.get(&vec![b'k'; key]), Some(&vec![b'v'; value][..]));
        }
    }

    #[test]
    fn an_empty_key_and_an_empty_value_are_as_good_as_any() {
        let mut dict = Dict::default();
        assert!(dict.insert(b"", b"") && !dict.insert(b"", b"x"));
        assert_eq!(dict.get(b""), Some(&b""[..]));
        assert!(dict.remove(b"") && dict.is_empty());
    }

    #[test]
    fn a_scan_visits_everything_and_its_cursors_stay_small() {
        for count in [0, 1, 128, 129, 5_000] {
            let dict = numbered(count);
            let (mut cursor, mut seen, mut calls) = (0, BTreeMap::new(), 0);
            loop {
                cursor = dict.scan(cursor, 10, |key, value| {
                    seen.insert(key.to_vec(), value.to_vec());
                });
                assert!(cursor < 1 << 16, "a cursor is not larger than the table");
                calls += 1;
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(seen, pairs(&dict));
            assert!(count <= 128 || calls > count / 100, "{count} keys in {calls} calls");
        }
    }

    #[test]
    fn a_sample_has_no_key_twice_and_draws_come_from_everywhere() {
        let mut random = Random::new(3);
        for (count, wanted) in
            [(0, 1), (1, 5), (100, 20), (100, 100), (1_000, 10), (1_000, 999), (1_000, 2_000)]
        {
            let dict = numbered(count);
            let sample: BTreeMap<_, _> = dict.sample(wanted, &mut random).into_iter().collect();
            assert_eq!(sample.len(), wanted.min(count));
            let mut drawn = BTreeSet::new();
            let all = dict.draw(count * 20, &mut random, |key, _| {
                drawn.insert(key.to_vec());
                Ok::<(), ()>(())
            });
            assert!(all.is_ok() && drawn.len() * 10 >= count * 9);
            assert_eq!(dict.random(&mut random).is_some(), count > 0);
        }
    }

    #[test]
    fn a_damaged_form_is_refused() {
        let mut twice = Vec::new();
        put_varint(&mut twice, 2);
        [b"k", b"1", b"k", b"2"].iter().for_each(|part| put_bytes(&mut twice, *part));
        assert!(Dict::decode(&mut Cursor::new(&twice)).is_none(), "a key twice");
        let mut endless = Vec::new();
        put_varint(&mut endless, u64::MAX);
        assert!(Dict::decode(&mut Cursor::new(&endless)).is_none(), "more pairs than bytes");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_dict_behaves_as_a_map(steps in proptest::collection::vec(step(), 0..400)) {
            let (mut dict, mut model) = (Dict::default(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Set(key, value) => {
                        prop_assert_eq!(dict.set(&key, &value), model.insert(key, value).is_none());
                    }
                    Step::Insert(key, value) => {
                        prop_assert_eq!(dict.insert(&key, &value), !model.contains_key(&key));
                        model.entry(key).or_insert(value);
                    }
                    Step::Remove(key) => prop_assert_eq!(dict.remove(&key), model.remove(&key).is_some()),
                }
                prop_assert_eq!(dict.len(), model.len());
            }
            prop_assert_eq!(pairs(&dict), model.clone());
            for (key, value) in &model {
                prop_assert_eq!(dict.get(key), Some(&value[..]));
            }
            // The same pairs in another order and representation have the same digest. Encoding
            // preserves them.
            let mut other = numbered(200);
            model.iter().rev().for_each(|(key, value)| { other.set(key, value); });
            (0..200).map(|n| n.to_string().into_bytes()).filter(|key| !model.contains_key(key)).for_each(|key| {
                other.remove(&key);
            });
            prop_assert_eq!(other.digest(), dict.digest());
            let mut form = Vec::new();
            dict.encode(&mut form);
            let mut cursor = Cursor::new(&form);
            let read = Dict::decode(&mut cursor).expect("what was encoded decodes");
            prop_assert!(cursor.is_empty());
            prop_assert_eq!(pairs(&read), model);
        }

        #[test]
        fn any_bytes_decode_to_what_they_are_or_are_refused(bytes in damage::bytes(100)) {
            let encode = |dict: &Dict| {
                let mut form = Vec::new();
                dict.encode(&mut form);
                form
            };
            damage::check(&bytes, Dict::decode, encode, pairs)?;
        }
    }
}
