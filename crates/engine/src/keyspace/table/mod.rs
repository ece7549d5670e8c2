//! A hash table whose entries are in the order of their hashes.
//!
//! The bucket of an entry is given by the *high* bits of its hash. A position in hash order
//! therefore stays valid when the table grows, and the state of a scan or snapshot walk is one
//! integer: everything below it has been seen. After the table shrinks, entries that share a bucket
//! with the position are seen again; walks that must not see an entry twice mark seen entries. A
//! bucket is one cache line: six slots with a one-byte tag each; overflow goes to chained buckets.
//! Growth is incremental: every insertion and removal moves a few buckets, in order, to an array of
//! twice the size, so no single command pays for all of it. A lookup still probes one place: old
//! buckets below the frontier have moved, the others have not.
//!
//! Lookups, insertions and removals are O(1) expected; a scan step is O(entries of one bucket). The
//! cost of a random entry is described in `random`.

mod random;

/// An element of a table: has a key.
pub trait Keyed {
    /// The bytes by which the entry is found.
    fn key(&self) -> &[u8];
}

const SLOTS: usize = 6;
/// Average entries per bucket at which the table starts to grow. Above it, every fourth bucket
/// would overflow.
const FULL: usize = 5;
/// Old buckets that one insertion or removal moves during growth. With `FULL` entries per bucket,
/// growth ends long before the doubled table is full or sparse.
const MOVES: usize = 2;
/// Ratio of buckets to entries above which the table is rebuilt smaller.
const SPARSE: usize = 16;

#[repr(align(64))]
struct Bucket<E> {
    /// Low byte of each entry's hash, never 0; 0 marks a free slot.
    tags: [u8; 8],
    slots: [Option<E>; SLOTS],
    /// Next bucket of the chain. A bucket with a successor is full.
    overflow: Option<Box<Bucket<E>>>,
}

const _: () = assert!(size_of::<Bucket<Box<u8>>>() == 64, "a bucket is one cache line");

impl<E> Bucket<E> {
    const fn new() -> Self {
        Self { tags: [0; 8], slots: [const { None }; SLOTS], overflow: None }
    }

    /// Adds an entry to the chain. Returns the depth of the bucket that this added, or 0.
    fn put(&mut self, tag: u8, entry: E) -> usize {
        let (mut bucket, mut depth, mut added) = (self, 0, 0);
        loop {
            if let Some(free) = bucket.tags[..SLOTS].iter().position(|&tag| tag == 0) {
                bucket.tags[free] = tag;
                bucket.slots[free] = Some(entry);
                return added;
            }
            depth += 1;
            if bucket.overflow.is_none() {
                added = depth;
            }
            bucket = bucket.overflow.get_or_insert_with(|| Box::new(Self::new()));
        }
    }

    /// Takes an entry out of the last bucket of the chain, which must have one.
    fn pop(&mut self) -> (u8, Option<E>) {
        let mut bucket = self;
        while bucket.overflow.is_some() {
            bucket = bucket.overflow.as_deref_mut().expect("the loop has just seen it");
        }
        let slot = bucket.tags.iter().position(|&tag| tag != 0).expect("no bucket of a chain is empty");
        (std::mem::take(&mut bucket.tags[slot]), bucket.slots[slot].take())
    }

    /// Depth of the last bucket of the chain; 0 without overflow.
    fn depth(&self) -> usize {
        std::iter::successors(self.overflow.as_deref(), |bucket| bucket.overflow.as_deref()).count()
    }

    fn for_each<'a>(&'a self, visit: &mut impl FnMut(&'a E)) {
        let mut bucket = Some(self);
        while let Some(current) = bucket {
            current.slots.iter().flatten().for_each(&mut *visit);
            bucket = current.overflow.as_deref();
        }
    }

    fn for_each_mut(&mut self, visit: &mut impl FnMut(&mut E)) {
        let mut bucket = Some(self);
        while let Some(current) = bucket {
            current.slots.iter_mut().flatten().for_each(&mut *visit);
            bucket = current.overflow.as_deref_mut();
        }
    }

    fn drain(&mut self, mut take: impl FnMut(E)) {
        let mut bucket = Some(self);
        while let Some(current) = bucket {
            current.tags = [0; 8];
            current.slots.iter_mut().filter_map(Option::take).for_each(&mut take);
            bucket = current.overflow.as_deref_mut();
        }
    }
}

impl<E: Keyed> Bucket<E> {
    #[inline]
    fn find(&self, tag: u8, key: &[u8]) -> Option<&E> {
        let mut bucket = self;
        loop {
            for slot in candidates(bucket.tags, tag) {
                if let Some(entry) = bucket.slots[slot].as_ref().filter(|entry| entry.key() == key) {
                    return Some(entry);
                }
            }
            bucket = bucket.overflow.as_deref()?;
        }
    }

    #[inline]
    fn find_mut(&mut self, tag: u8, key: &[u8]) -> Option<&mut E> {
        let mut bucket = self;
        loop {
            let found = candidates(bucket.tags, tag)
                .find(|&slot| bucket.slots[slot].as_ref().is_some_and(|entry| entry.key() == key));
            if let Some(slot) = found {
                return bucket.slots[slot].as_mut();
            }
            bucket = bucket.overflow.as_deref_mut()?;
        }
    }

    /// Takes an entry out of the chain. Returns it with the depth of the bucket that this removed,
    /// or 0.
    fn take(&mut self, tag: u8, key: &[u8]) -> Option<(E, usize)> {
        let mut bucket = &mut *self;
        loop {
            let found = candidates(bucket.tags, tag)
                .find(|&slot| bucket.slots[slot].as_ref().is_some_and(|entry| entry.key() == key));
            if let Some(slot) = found {
                bucket.tags[slot] = 0;
                let entry = bucket.slots[slot].take()?;
                // An entry from the end of the chain fills the gap, which keeps chains minimal.
                if let Some(next) = &mut bucket.overflow {
                    (bucket.tags[slot], bucket.slots[slot]) = next.pop();
                }
                return Some((entry, self.unlink_empty()));
            }
            bucket = bucket.overflow.as_deref_mut()?;
        }
    }

    /// Removes the last bucket of the chain if it is empty. Returns its depth, or 0.
    fn unlink_empty(&mut self) -> usize {
        let (mut bucket, mut depth) = (self, 0);
        while let Some(next) = &bucket.overflow {
            depth += 1;
            if next.tags == [0; 8] {
                bucket.overflow = None;
                return depth;
            }
            bucket = bucket.overflow.as_deref_mut().expect("the loop has just seen it");
        }
        0
    }
}

/// Slots whose tag may equal `tag`: all that do, and rarely others.
#[inline]
fn candidates(tags: [u8; 8], tag: u8) -> impl Iterator<Item = usize> {
    const LOW: u64 = 0x0001_0101_0101_0101 & 0x0000_ffff_ffff_ffff;
    const HIGH: u64 = 0x0000_8080_8080_8080;
    let difference = u64::from_le_bytes(tags) ^ (LOW.wrapping_mul(u64::from(tag)));
    let mut zeros = difference.wrapping_sub(LOW) & !difference & HIGH;
    std::iter::from_fn(move || {
        (zeros != 0).then(|| {
            let slot = zeros.trailing_zeros() as usize / 8;
            zeros &= zeros - 1;
            slot
        })
    })
}

#[inline]
fn tag(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// A growing hash table; see the module documentation.
///
/// Every method that takes a `hash` expects [`super::hash`] of the key.
pub struct Table<E> {
    /// 2^`bits` buckets, or none before the first insertion.
    buckets: Vec<Bucket<E>>,
    bits: u32,
    /// During growth: buckets of the doubled table, two for each old bucket below `next.len() / 2`.
    next: Vec<Bucket<E>>,
    growing: bool,
    len: usize,
    /// Number of buckets at each chain depth, from depth 1; the last number is not 0.
    chained: Vec<usize>,
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        Self { buckets: Vec::new(), bits: 0, next: Vec::new(), growing: false, len: 0, chained: Vec::new() }
    }
}

impl<E: Keyed> Table<E> {
    /// Creates an empty table without allocating.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a table with room for `capacity` entries before it grows.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut table = Self::default();
        if capacity > 0 {
            table.allocate((capacity / FULL + 1).next_power_of_two().trailing_zeros());
        }
        table
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn bucket(&self, hash: u64) -> Option<&Bucket<E>> {
        let index = position(hash, self.bits);
        if self.growing && index < self.next.len() / 2 {
            return self.next.get(position(hash, self.bits + 1));
        }
        self.buckets.get(index)
    }

    #[inline]
    fn bucket_mut(&mut self, hash: u64) -> Option<&mut Bucket<E>> {
        let index = position(hash, self.bits);
        if self.growing && index < self.next.len() / 2 {
            return self.next.get_mut(position(hash, self.bits + 1));
        }
        self.buckets.get_mut(index)
    }

    /// Returns the entry of a key.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<&E> {
        self.bucket(hash)?.find(tag(hash), key)
    }

    /// Returns the entry of a key, to change its value. Its key must not change.
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut E> {
        self.bucket_mut(hash)?.find_mut(tag(hash), key)
    }

    /// Returns the first entry with this hash that satisfies `wanted`, for callers that stored only
    /// the hash.
    pub fn find(&self, hash: u64, wanted: impl Fn(&E) -> bool) -> Option<&E> {
        self.candidates(hash).find(|entry| super::hash(entry.key()) == hash && wanted(entry))
    }

    /// Returns all entries with this hash, and rarely others, without reading an entry.
    #[inline]
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = &E> {
        let chain = std::iter::successors(self.bucket(hash), |bucket| bucket.overflow.as_deref());
        chain.flat_map(move |bucket| {
            candidates(bucket.tags, tag(hash)).filter_map(|slot| bucket.slots[slot].as_ref())
        })
    }

    /// Adds an entry; its key must be absent.
    pub fn insert(&mut self, hash: u64, entry: E) {
        // Not in release builds: each insertion would look up and hash the key once more.
        debug_assert!(self.get(hash, entry.key()).is_none(), "the key is not in the table");
        debug_assert_eq!(hash, super::hash(entry.key()), "the hash belongs to the key");
        if self.buckets.is_empty() {
            self.allocate(0);
        }
        if self.growing {
            self.grow_step(MOVES);
        } else if self.len >= self.buckets.len() * FULL {
            self.growing = true;
            // Reserved but untouched: pages are written as the frontier advances.
            self.next = Vec::with_capacity(self.buckets.len() * 2);
            self.grow_step(MOVES);
        }
        self.len += 1;
        let bucket = self.bucket_mut(hash).expect("an allocated table has a bucket for every hash");
        let added = bucket.put(tag(hash), entry);
        if added > 0 {
            self.count_chained(added);
        }
    }

    /// Removes and returns the entry of a key.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<E> {
        let (entry, removed) = self.bucket_mut(hash)?.take(tag(hash), key)?;
        self.len -= 1;
        if removed > 0 {
            self.uncount_chained(removed);
        }
        if self.growing {
            // Otherwise a table that is emptied during growth would keep its size, because only
            // complete ones shrink.
            self.grow_step(MOVES);
        }
        self.shrink_if_sparse();
        Some(entry)
    }

    /// Visits entries from hash position `cursor`, at least one bucket, until `visit` has been
    /// called for `budget` entries or the end is reached. Returns the next position, or 0 at the
    /// end. Entries present during a whole scan are visited at least once, whatever is inserted or
    /// removed meanwhile.
    pub fn scan<'a>(&'a self, cursor: u64, budget: usize, mut visit: impl FnMut(&'a E)) -> u64 {
        let mut seen = 0;
        let mut index = position(cursor, self.bits);
        // Empty buckets cost too: a step probes at most ten buckets per entry of the budget.
        let mut probes = budget.saturating_mul(10).max(1);
        while index < self.buckets.len() {
            let mut counted = |entry: &'a E| {
                seen += 1;
                visit(entry);
            };
            match self.growing.then(|| self.next.get(index * 2..index * 2 + 2)).flatten() {
                Some(moved) => moved.iter().for_each(|bucket| bucket.for_each(&mut counted)),
                None => self.buckets[index].for_each(&mut counted),
            }
            index += 1;
            probes -= 1;
            if index < self.buckets.len() && (seen >= budget || probes == 0) {
                return (index as u64) << (64 - self.bits);
            }
        }
        0
    }

    /// As [`Table::scan`], mutable; `visit` returns the cost of the entry against the budget.
    pub fn scan_mut(&mut self, cursor: u64, budget: usize, mut visit: impl FnMut(&mut E) -> usize) -> u64 {
        let mut seen = 0_usize;
        let mut index = position(cursor, self.bits);
        let mut probes = budget.saturating_mul(10).max(1);
        while index < self.buckets.len() {
            let mut counted = |entry: &mut E| seen = seen.saturating_add(visit(entry));
            let moved = if self.growing { self.next.get_mut(index * 2..index * 2 + 2) } else { None };
            match moved {
                Some(moved) => moved.iter_mut().for_each(|bucket| bucket.for_each_mut(&mut counted)),
                None => self.buckets[index].for_each_mut(&mut counted),
            }
            index += 1;
            probes -= 1;
            if index < self.buckets.len() && (seen >= budget || probes == 0) {
                return (index as u64) << (64 - self.bits);
            }
        }
        0
    }

    /// Visits every entry in hash order.
    pub fn for_each<'a>(&'a self, visit: impl FnMut(&'a E)) {
        let end = self.scan(0, usize::MAX, visit);
        assert_eq!(end, 0, "a scan without a budget comes to the end");
    }

    /// Iterates over all entries in hash order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        let moved = self.next.len() / 2;
        let chain =
            |bucket| std::iter::successors(Some(bucket), |bucket: &&Bucket<E>| bucket.overflow.as_deref());
        self.next
            .iter()
            .chain(&self.buckets[moved..])
            .flat_map(chain)
            .flat_map(|bucket| bucket.slots.iter().flatten())
    }

    /// Counts a bucket that was added to a chain at this depth.
    #[cold]
    fn count_chained(&mut self, depth: usize) {
        if self.chained.len() < depth {
            self.chained.resize(depth, 0);
        }
        self.chained[depth - 1] += 1;
    }

    /// Counts a bucket that was removed from a chain at this depth.
    #[cold]
    fn uncount_chained(&mut self, depth: usize) {
        let (known, count) = (self.chained.len(), self.chained.get_mut(depth - 1));
        let count = count.unwrap_or_else(|| {
            panic!("a bucket goes from depth {depth} of a chain, and the deepest is at {known}")
        });
        *count -= 1;
        if *count == 0 {
            // Chains have no gaps, so deeper buckets are gone too.
            self.chained.truncate(depth - 1);
        }
    }

    fn allocate(&mut self, bits: u32) {
        self.bits = bits;
        self.buckets = Vec::with_capacity(1 << bits);
        self.buckets.resize_with(1 << bits, Bucket::new);
    }

    /// Moves up to `moves` old buckets to the doubled table.
    fn grow_step(&mut self, moves: usize) {
        assert!(self.growing, "a table of 2^{} buckets is not growing", self.bits);
        let bits = self.bits + 1;
        for _ in 0..moves {
            let index = self.next.len() / 2;
            let Some(old) = self.buckets.get_mut(index) else { break };
            let (mut left, mut right) = (Bucket::new(), Bucket::new());
            let depth = old.depth();
            old.drain(|entry| {
                let hash = super::hash(entry.key());
                assert_eq!(position(hash, bits) / 2, index, "an entry stays in hash order");
                let side = if position(hash, bits).is_multiple_of(2) { &mut left } else { &mut right };
                side.put(tag(hash), entry);
            });
            old.overflow = None;
            (1..=left.depth()).chain(1..=right.depth()).for_each(|depth| self.count_chained(depth));
            (1..=depth).rev().for_each(|depth| self.uncount_chained(depth));
            self.next.push(left);
            self.next.push(right);
        }
        if self.next.len() == self.buckets.len() * 2 {
            self.buckets = std::mem::take(&mut self.next);
            self.bits = bits;
            self.growing = false;
        }
    }

    fn shrink_if_sparse(&mut self) {
        if self.growing || self.bits < 4 || self.len * SPARSE > self.buckets.len() {
            return;
        }
        let mut smaller = Self::with_capacity(self.len * 2);
        for bucket in &mut self.buckets {
            bucket.drain(|entry| smaller.insert(super::hash(entry.key()), entry));
        }
        *self = smaller;
    }
}

#[inline]
fn position(hash: u64, bits: u32) -> usize {
    hash.checked_shr(64 - bits).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, Payload, hash};
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn put(table: &mut Table<Entry>, key: &[u8], value: i64) {
        match table.get_mut(hash(key), key) {
            Some(entry) => entry.set(Payload::Int(value)),
            None => table.insert(hash(key), Entry::new(key, Payload::Int(value), None)),
        }
    }

    fn value(table: &Table<Entry>, key: &[u8]) -> Option<i64> {
        table.get(hash(key), key).map(|entry| match entry.value() {
            super::super::ValueRef::Int(value) => value,
            other => panic!("unexpected {other:?}"),
        })
    }

    #[test]
    fn every_key_is_found_while_the_table_grows_and_shrinks() {
        let mut table = Table::new();
        for n in 0..5_000_i64 {
            put(&mut table, &n.to_le_bytes(), n);
            assert_eq!(value(&table, &(n / 2).to_le_bytes()), Some(n / 2));
        }
        assert_eq!(table.iter().count(), 5_000);
        for n in 0..5_000_i64 {
            assert!(table.remove(hash(&n.to_le_bytes()), &n.to_le_bytes()).is_some());
            assert_eq!(value(&table, &n.to_le_bytes()), None);
        }
        assert!(table.is_empty() && table.buckets.len() <= 8);
    }

    #[test]
    fn a_scan_sees_all_that_stays_while_the_table_grows() {
        let mut table = Table::new();
        (0..200_i64).for_each(|n| put(&mut table, &n.to_le_bytes(), n));
        let (mut cursor, mut seen, mut extra) = (0, HashSet::new(), 1000_i64);
        loop {
            cursor = table.scan(cursor, 10, |entry| {
                seen.insert(entry.key().to_vec());
            });
            if cursor == 0 {
                break;
            }
            for _ in 0..20 {
                put(&mut table, &extra.to_le_bytes(), extra);
                extra += 1;
            }
        }
        assert!((0..200_i64).all(|n| seen.contains(&n.to_le_bytes()[..])));
    }

    #[test]
    fn a_table_that_is_emptied_while_it_grows_shrinks_all_the_same() {
        let mut table = Table::new();
        let mut count = 0_i64;
        while !table.growing || table.buckets.len() < 256 {
            put(&mut table, &count.to_le_bytes(), count);
            count += 1;
        }
        for n in 1..count {
            assert!(table.remove(hash(&n.to_le_bytes()), &n.to_le_bytes()).is_some());
            assert_eq!(value(&table, &0_i64.to_le_bytes()), Some(0));
        }
        assert!(!table.growing && table.buckets.len() <= 8, "{} buckets", table.buckets.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_table_behaves_as_a_map(steps in proptest::collection::vec((0..300_u16, any::<Option<i64>>()), 0..900)) {
            let (mut table, mut model) = (Table::new(), HashMap::new());
            for (key, change) in steps {
                let key = key.to_be_bytes();
                match change {
                    Some(value) => { put(&mut table, &key, value); model.insert(key, value); }
                    None => prop_assert_eq!(table.remove(hash(&key), &key).is_some(), model.remove(&key).is_some()),
                }
                prop_assert_eq!(table.len(), model.len());
            }
            for (key, expected) in &model {
                prop_assert_eq!(value(&table, key), Some(*expected));
            }
            prop_assert_eq!(table.iter().count(), model.len());
        }
    }
}
