//! The table of all names: one node per path, found without a lock, never moved and never freed.
//!
//! ```text
//! "a.b.c" ──hash──▶ paths ─┐      ┌ path   "a.b.c"
//!                          ├─────▶┤ parent ──▶ node of "a.b"
//! ("a.b", "c") ───▶ parts ─┘      └ id, depth, where "c" starts
//! ```
//!
//! Two hash tables lead to the same nodes: by whole path, and by parent and last part. So extending
//! an existing name costs only the hash of the new part. A slot is empty or has the node and half
//! of its hash. Readers probe without a lock; writers share one lock.
//!
//! A full table is copied to one of twice the size. The old table stays, because readers may still
//! be in it. A reader that misses a newer name there looks again under the lock. All old tables
//! together are smaller than the current one.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::ArgumentError;
use crate::identity::name::{Name, Node};
use crate::sync::unpoisoned;

/// Slots of the first generation; each further one has twice as many. A table is at most half full.
const FIRST_SLOTS: usize = 1 << 11;
/// Generations up to the limit of [`Name::COUNT_MAX`] names.
const GENERATIONS: usize = (2 * Name::COUNT_MAX as usize / FIRST_SLOTS).ilog2() as usize + 1;

const _: () =
    assert!(FIRST_SLOTS << (GENERATIONS - 1) >= 2 * Name::COUNT_MAX as usize, "two slots for every name");
const _: () = assert!(Name::PATH_BYTES_MAX <= u16::MAX as usize, "offsets into a path fit 16 bits");
const _: () = assert!(Name::DEPTH_MAX <= u16::MAX as usize, "depths fit 16 bits");

pub(crate) struct Interner {
    count_max: u32,
    text_bytes_max: u64,
    generations: [OnceLock<Generation>; GENERATIONS],
    /// Index of the generation that has all names.
    current: AtomicUsize,
    writer: Mutex<Writer>,
}

/// State that requires the lock.
struct Writer {
    count: u32,
    text_bytes: u64,
}

impl Interner {
    /// Creates an empty table for at most `count_max` names and `text_bytes_max` bytes of text.
    pub(crate) const fn new(count_max: u32, text_bytes_max: u64) -> Self {
        assert!(count_max <= Name::COUNT_MAX, "the last generation has no room for more");
        Self {
            count_max,
            text_bytes_max,
            generations: [const { OnceLock::new() }; GENERATIONS],
            current: AtomicUsize::new(0),
            writer: Mutex::new(Writer { count: 0, text_bytes: 0 }),
        }
    }

    /// Returns the name of this path, if it exists.
    #[inline]
    pub(crate) fn find(&self, path: &str) -> Option<Name> {
        let generation = self.generation()?;
        let hash = hash(generation.seed, path.as_bytes());
        generation.paths.find(hash, |node| equal(node.path.as_bytes(), path.as_bytes()))
    }

    /// Returns the name of this single part below `parent`, if it exists.
    #[inline]
    pub(crate) fn find_below(&self, parent: Name, part: &str) -> Option<Name> {
        let generation = self.generation()?;
        let hash = hash(generation.seed_of(parent), part.as_bytes());
        generation.parts.find(hash, |node| is_part_of(node, parent, part))
    }

    /// Returns the name of this valid path. Makes it and its ancestors if they are new. Fails, and
    /// makes none of them, if that would exceed a limit.
    #[cold]
    pub(crate) fn add(&self, path: &str) -> Result<Name, ArgumentError> {
        assert!(Name::is_valid(path), "{path:?} was checked before");
        // No step below panics, so the lock is never released with a partly added name.
        let mut writer = unpoisoned(self.writer.lock());
        let (mut known, start) = self.longest_known(path);
        let missing = count_parts(&path[start..]);
        if let Some(known) = known
            && missing == 0
        {
            return Ok(known);
        }
        self.admit(&mut writer, missing, path.len())?;
        self.make_room(writer.count + missing);
        // The ancestors share the text of the longest path.
        let text: &'static str = Box::leak(Box::from(path));
        let mut part_start = start;
        for part in path[start..].split('.') {
            let end = part_start + part.len();
            known = Some(self.insert(Node {
                path: &text[..end],
                parent: known,
                id: writer.count,
                part_start: part_start as u16,
                depth: known.map_or(1, |parent| parent.0.depth + 1),
            }));
            writer.count += 1;
            part_start = end + 1;
        }
        Ok(known.expect("a valid path has a part"))
    }

    /// Returns the number of names that would have to be made for this valid path: itself and its
    /// missing ancestors.
    pub(crate) fn count_missing(&self, path: &str) -> u32 {
        debug_assert!(Name::is_valid(path));
        count_parts(&path[self.longest_known(path).1..])
    }

    /// Returns the longest existing ancestor (or the name itself), and the start of the part after
    /// it.
    fn longest_known(&self, path: &str) -> (Option<Name>, usize) {
        let mut known = None;
        let mut start = 0;
        for part in path.split('.') {
            let next = match known {
                None => self.find(part),
                Some(parent) => self.find_below(parent, part),
            };
            match next {
                None => break,
                Some(name) => known = Some(name),
            }
            start += part.len() + 1;
        }
        (known, start.min(path.len()))
    }

    fn admit(&self, writer: &mut Writer, names: u32, bytes: usize) -> Result<(), ArgumentError> {
        if names > self.count_max - writer.count {
            return Err(ArgumentError::new(
                "name",
                format!(
                    "the limit of {} names is reached: a name is never freed, so put what varies without end into \
                     values, not into names",
                    self.count_max
                ),
            ));
        }
        let text_bytes = writer.text_bytes + bytes as u64;
        if text_bytes > self.text_bytes_max {
            return Err(ArgumentError::new(
                "name",
                format!(
                    "the limit of {} bytes of text of names is reached: a name is never freed, so use fewer or \
                     shorter ones",
                    self.text_bytes_max
                ),
            ));
        }
        writer.text_bytes = text_bytes;
        Ok(())
    }

    /// Ensures that the current generation is at most half full with `count` names.
    fn make_room(&self, count: u32) {
        let mut at = self.current.load(Ordering::Relaxed);
        if self.generations[at].get().is_none() {
            let seed = RandomState::new().build_hasher().finish();
            self.generations[at].get_or_init(|| Generation::new(seed, FIRST_SLOTS));
        }
        while let Some(old) = self.generations[at].get()
            && 2 * count as usize > old.paths.slots.len()
        {
            at += 1;
            self.generations[at].get_or_init(|| old.doubled());
        }
        self.current.store(at, Ordering::Release);
    }

    /// Adds the node to both tables and returns its name.
    fn insert(&self, node: Node) -> Name {
        let node: &'static Node = Box::leak(Box::new(node));
        if let Some(generation) = self.generation() {
            generation.paths.insert(hash(generation.seed, node.path.as_bytes()), node);
            if let Some(parent) = node.parent {
                generation.parts.insert(hash(generation.seed_of(parent), node.part().as_bytes()), node);
            }
        }
        Name(node)
    }

    #[inline]
    fn generation(&self) -> Option<&Generation> {
        self.generations.get(self.current.load(Ordering::Acquire))?.get()
    }
}

fn count_parts(rest: &str) -> u32 {
    rest.split('.').filter(|part| !part.is_empty()).count() as u32
}

/// Returns whether this is the node of that part below the parent.
#[inline]
fn is_part_of(node: &Node, parent: Name, part: &str) -> bool {
    node.parent == Some(parent)
        && equal(&node.path.as_bytes()[usize::from(node.part_start)..], part.as_bytes())
}

/// Both tables at one size.
struct Generation {
    /// Random, so that clients cannot choose names that collide.
    seed: u64,
    paths: Table,
    parts: Table,
}

impl Generation {
    fn new(seed: u64, slots: usize) -> Self {
        Self { seed, paths: Table::new(slots), parts: Table::new(slots) }
    }

    fn doubled(&self) -> Self {
        Self { seed: self.seed, paths: self.paths.doubled(), parts: self.parts.doubled() }
    }

    #[inline]
    fn seed_of(&self, parent: Name) -> u64 {
        self.seed ^ u64::from(parent.id() + 1).wrapping_mul(MIX[1])
    }
}

/// An open-addressing table of nodes. Its length is a power of two and it is at most half full, so
/// every probe ends.
struct Table {
    slots: Box<[OnceLock<Entry>]>,
    /// A probe starts at the tag shifted right by this. Tags are in the slots, so a table is copied
    /// without reading nodes.
    shift: u32,
}

/// Packed to fit 16 bytes together with the state of its `OnceLock`.
#[derive(Clone, Copy)]
#[repr(Rust, packed(4))]
struct Entry {
    /// The high half of the hash.
    tag: u32,
    node: &'static Node,
}

const _: () = assert!(size_of::<OnceLock<Entry>>() == 16);

impl Table {
    fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "a table has {slots} slots, not a power of two");
        Self { slots: (0..slots).map(|_| OnceLock::new()).collect(), shift: u32::BITS - slots.ilog2() }
    }

    #[inline]
    fn find(&self, hash: u64, same: impl Fn(&'static Node) -> bool) -> Option<Name> {
        let tag = (hash >> 32) as u32;
        let mut at = (tag >> self.shift) as usize;
        loop {
            let slot = self.slots[at].get()?;
            if slot.tag == tag && same(slot.node) {
                return Some(Name(slot.node));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Requires the writer lock.
    fn insert(&self, hash: u64, node: &'static Node) {
        self.fill(Entry { tag: (hash >> 32) as u32, node });
    }

    fn fill(&self, slot: Entry) {
        let mut at = (slot.tag >> self.shift) as usize;
        while self.slots[at].set(slot).is_err() {
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn doubled(&self) -> Self {
        let larger = Self::new(2 * self.slots.len());
        self.slots.iter().filter_map(OnceLock::get).for_each(|slot| larger.fill(*slot));
        larger
    }
}

/// Odd numbers without a bit pattern.
const MIX: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

/// Computes a hash in which every bit depends on every byte. Optimised for short texts, as names
/// are.
#[inline]
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ (bytes.len() as u64).wrapping_mul(MIX[0]);
    let (first, last) = match ends(bytes) {
        Ends::Same(first, last) => (first, last),
        Ends::Blocks(blocks, last) => {
            for (first, last) in blocks.iter().map(halves) {
                state = fold(first ^ state, last ^ MIX[1]);
            }
            halves(last)
        }
    };
    fold(first ^ state, last ^ MIX[1])
}

/// Compares two texts inline: names are short, and a call would cost more.
#[inline]
fn equal(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && match (ends(left), ends(right)) {
            (Ends::Same(left_first, left_last), Ends::Same(right_first, right_last)) => {
                left_first == right_first && left_last == right_last
            }
            (Ends::Blocks(left, left_last), Ends::Blocks(right, right_last)) => {
                left_last == right_last && left.iter().zip(right).all(|(left, right)| left == right)
            }
            _ => false,
        }
}

/// All bytes of a text in pieces of fixed size, which may overlap.
enum Ends<'a> {
    /// Up to 16 bytes: the first and the last eight.
    Same(u64, u64),
    /// More: whole blocks from the start, and the last 16 bytes.
    Blocks(&'a [[u8; 16]], &'a [u8; 16]),
}

#[inline]
fn ends(bytes: &[u8]) -> Ends<'_> {
    if bytes.len() > 16
        && let Some(last) = bytes.last_chunk()
    {
        Ends::Blocks(bytes.as_chunks().0, last)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        Ends::Same(u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        Ends::Same(u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>()) {
        Ends::Same(u16::from_le_bytes(*first).into(), u16::from_le_bytes(*last).into())
    } else {
        Ends::Same(bytes.first().copied().map_or(0, u64::from), 0)
    }
}

#[inline]
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

/// Combines the two halves of the product.
#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn names_survive_many_doublings_and_their_ids_are_dense() {
        static INTERNER: Interner = Interner::new(20_000, 1 << 20);
        let paths: Vec<String> =
            (0..10_000).map(|i| if i % 2 == 0 { format!("n{i}") } else { format!("n{}.x", i - 1) }).collect();
        let names: Vec<Name> = paths.iter().map(|path| INTERNER.add(path).unwrap()).collect();
        for (id, (path, name)) in paths.iter().zip(&names).enumerate() {
            assert_eq!(name.path(), path);
            assert_eq!(name.id() as usize, id);
            assert_eq!(INTERNER.find(path), Some(*name));
            assert_eq!(INTERNER.add(path).unwrap(), *name);
            if let Some(parent) = name.enclosure() {
                assert_eq!(INTERNER.find_below(parent, "x"), Some(*name));
                assert_eq!(INTERNER.find_below(parent, "y"), None);
            }
        }
    }

    #[test]
    fn threads_that_make_the_same_names_get_the_same_nodes() {
        const THREADS: usize = 8;
        const NAMES: usize = if cfg!(miri) { 50 } else { 3_000 };
        static INTERNER: Interner = Interner::new(10_000, 1 << 20);
        let make = |thread: usize| {
            move || -> Vec<(usize, Name)> {
                // Each thread visits all names, with its own stride.
                let order = (0..NAMES).map(|i| (i * [1, 7, 11, 13, 17, 19, 23, 29][thread]) % NAMES);
                order
                    .map(|i| {
                        let path = format!("group{}.member{i}", i % 7);
                        (i, INTERNER.find(&path).unwrap_or_else(|| INTERNER.add(&path).unwrap()))
                    })
                    .collect()
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| thread::spawn(make(thread))).collect();
        let mut seen = vec![None; NAMES];
        for thread in threads {
            for (i, name) in thread.join().unwrap() {
                assert_eq!(name.path(), format!("group{}.member{i}", i % 7));
                assert_eq!(*seen[i].get_or_insert(name), name);
            }
        }
        let ids: HashSet<u32> = seen.iter().flatten().map(|name| name.id()).collect();
        assert_eq!(ids.len(), NAMES);
        assert!(ids.iter().all(|id| (*id as usize) < NAMES + 7));
    }

    #[test]
    fn beyond_the_limit_of_names_none_is_made() {
        static INTERNER: Interner = Interner::new(3, 1 << 20);
        INTERNER.add("a.b").unwrap();
        let error = INTERNER.add("a.c.d").unwrap_err();
        assert!(error.to_string().contains("limit of 3 names"), "{error}");
        assert_eq!(INTERNER.find("a.c"), None);
        let last = INTERNER.add("a.c").unwrap();
        assert_eq!(INTERNER.add("a.c").unwrap(), last);
        INTERNER.add("e").unwrap_err();
    }

    #[test]
    fn beyond_the_limit_of_text_none_is_made() {
        static INTERNER: Interner = Interner::new(10, 5);
        INTERNER.add("a.b").unwrap();
        let error = INTERNER.add("a.c").unwrap_err();
        assert!(error.to_string().contains("limit of 5 bytes"), "{error}");
        assert_eq!(INTERNER.find("a.c"), None);
        INTERNER.add("xy").unwrap();
    }

    #[test]
    fn ancestors_share_the_text() {
        static INTERNER: Interner = Interner::new(10, 100);
        let name = INTERNER.add("alpha.beta.gamma").unwrap();
        let parent = INTERNER.find("alpha.beta").unwrap();
        assert_eq!(name.path().as_ptr(), parent.path().as_ptr());
    }

    #[test]
    fn texts_are_equal_if_all_their_bytes_are() {
        for length in 0..70 {
            let text = vec![b'x'; length];
            assert!(equal(&text, &text.clone()));
            assert!(!equal(&text, &vec![b'x'; length + 1]));
            for at in 0..length {
                let mut other = text.clone();
                other[at] = b'y';
                assert!(!equal(&text, &other), "byte {at} of {length}");
            }
        }
    }

    #[test]
    fn each_byte_of_a_text_changes_its_hash() {
        for length in 1..70 {
            let text = vec![b'x'; length];
            let mut hashes = HashSet::from([hash(1, &text), hash(2, &text), hash(1, &text[1..])]);
            for at in 0..length {
                let mut other = text.clone();
                other[at] = b'y';
                assert!(hashes.insert(hash(1, &other)), "byte {at} of {length}");
            }
        }
    }
}
