//! Hash table of keys by name, for lock-free readers.
//!
//! Open addressing with linear probing over two arrays: a byte of each key's hash, and the keys. A
//! removed key leaves a tombstone; nothing else ever moves within a table. A full table is copied
//! into a new one, which is published as a whole. The old one is freed when no reader uses it.

#![allow(
    unsafe_code,
    reason = "readers follow pointers without a lock; a lock takes as long as all the rest"
)]

use super::key::{Found, Key, KeyRef};
use super::life::Life;
use super::readers::{self, Inside};
use crate::sync::{AtomicPtr, AtomicU8, Ordering};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Never used.
const EMPTY: u8 = 0;
/// Tombstone of a removed key.
const GONE: u8 = 1;

/// Capacity of an empty table.
const SMALLEST: usize = if cfg!(loom) { 2 } else { 8 };

/// A hash table. The owner of its [`Filling`] is the only writer; readers are not excluded.
pub(crate) struct Table {
    places: AtomicPtr<Places>,
    _keys: PhantomData<KeyRef>,
}

/// The writer's bookkeeping, and the exclusive right to change the table.
#[derive(Debug)]
pub(crate) struct Filling {
    keys: usize,
    gone: usize,
}

struct Places {
    marks: Box<[AtomicU8]>,
    keys: Box<[AtomicPtr<Key>]>,
    life: Life,
}

impl Places {
    fn new(capacity: usize) -> Self {
        let marks = (0..capacity).map(|_| AtomicU8::new(EMPTY)).collect();
        let keys = (0..capacity).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { marks, keys, life: Life::begin() }
    }

    fn capacity(&self) -> usize {
        self.marks.len()
    }

    /// Returns the index where the search for a hash begins. Works for any capacity, not only
    /// powers of two.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.capacity() as u128) >> 64) as usize
    }

    /// Returns the key with this name and its index. The search begins at the hash's home, and ends
    /// with `None` at an empty place.
    #[inline]
    fn search<'found>(&self, hash: u64, name: &[u8]) -> Option<(usize, Found<'found>)> {
        let (mut at, sought) = (self.home(hash), mark_of(hash));
        // This ends, because at least one of eight places is empty.
        loop {
            // A thread that sees a key's mark sees that key at its place, or a later one.
            let mark = self.marks[at].load(Ordering::Acquire);
            if mark == sought {
                // The pointer is read once: the place may have another key by now, whose name
                // differs.
                if let Some(found) = at_place(&self.keys[at])
                    && is_same(found.name(), name)
                {
                    return Some((at, found));
                }
            } else if mark == EMPTY {
                return None;
            }
            at += 1;
            if at >= self.capacity() {
                at = 0;
            }
        }
    }

    /// Inserts a key at the first free place, and returns whether that was a tombstone.
    fn insert(&self, hash: u64, key: NonNull<Key>) -> bool {
        let mut at = self.home(hash);
        loop {
            let mark = self.marks[at].load(Ordering::Relaxed);
            if mark <= GONE {
                self.keys[at].store(key.as_ptr(), Ordering::Release);
                self.marks[at].store(mark_of(hash), Ordering::Release);
                return mark == GONE;
            }
            at = if at + 1 == self.capacity() { 0 } else { at + 1 };
        }
    }
}

/// Returns the byte of a hash that is stored. It excludes the bits that select the place and the
/// shard.
#[inline]
fn mark_of(hash: u64) -> u8 {
    ((hash >> 16) as u8).max(GONE + 1)
}

impl Table {
    pub(crate) fn new() -> (Self, Filling) {
        let places = AtomicPtr::new(Box::into_raw(Box::new(Places::new(SMALLEST))));
        (Self { places, _keys: PhantomData }, Filling { keys: 0, gone: 0 })
    }

    /// The caller must be inside, or be the exclusive writer.
    #[inline]
    fn places(&self) -> &Places {
        // SAFETY: the pointer is never null. Only the exclusive writer replaces it, and it frees
        // the old places when all readers that were inside have left. Callers are inside, or are
        // the writer.
        let places = unsafe { &*self.places.load(Ordering::Acquire) };
        places.life.is_used();
        places
    }

    /// Returns the key with this name.
    #[inline]
    pub(crate) fn find<'inside>(
        &self,
        hash: u64,
        name: &[u8],
        _inside: &'inside Inside,
    ) -> Option<Found<'inside>> {
        self.places().search(hash, name).map(|(_, found)| found)
    }

    /// Returns the key with this name, for the exclusive writer.
    pub(crate) fn find_alone<'alone>(
        &self,
        _filling: &'alone Filling,
        hash: u64,
        name: &[u8],
    ) -> Option<Found<'alone>> {
        self.places().search(hash, name).map(|(_, found)| found)
    }

    /// Inserts a key whose name is not in the table. `hash_of` returns the hash of a name.
    pub(crate) fn insert(
        &self,
        filling: &mut Filling,
        hash: u64,
        key: KeyRef,
        hash_of: impl Fn(&[u8]) -> u64,
    ) {
        let capacity = self.places().capacity();
        // At most seven of eight places hold a key or a tombstone.
        if (filling.keys + filling.gone + 1) * 8 > capacity * 7 {
            let needed = (filling.keys + 1) * 8 / 7 + 1;
            // Grows by half: the table takes 10.3 to 15.4 bytes for each of its keys.
            self.replace(filling, needed.max(filling.keys * 12 / 7).max(SMALLEST), hash_of);
        }
        filling.gone -= usize::from(self.places().insert(hash, key.into_raw()));
        filling.keys += 1;
    }

    /// Removes the key with this name. Readers may still have found it; see [`readers::wait`].
    pub(crate) fn remove(&self, filling: &mut Filling, hash: u64, name: &[u8]) -> Option<KeyRef> {
        let (at, found) = self.places().search(hash, name)?;
        let places = self.places();
        let key = NonNull::new(places.keys[at].load(Ordering::Relaxed))?;
        debug_assert_eq!(found.name(), name);
        // The pointer stays, for readers that have seen the mark.
        places.marks[at].store(GONE, Ordering::Release);
        filling.keys -= 1;
        filling.gone += 1;
        // SAFETY: the pointer was stored by `into_raw`, and the tombstone says that the table has
        // given it up.
        Some(unsafe { KeyRef::from_raw(key) })
    }

    /// Calls `each` with every key.
    pub(crate) fn for_each(&self, _filling: &Filling, mut each: impl FnMut(Found<'_>)) {
        let places = self.places();
        for (mark, key) in places.marks.iter().zip(&places.keys) {
            if mark.load(Ordering::Relaxed) > GONE
                && let Some(found) = at_place(key)
            {
                each(found);
            }
        }
    }

    fn replace(&self, filling: &mut Filling, capacity: usize, hash_of: impl Fn(&[u8]) -> u64) {
        let new = Places::new(capacity);
        self.for_each(filling, |found| {
            new.insert(hash_of(found.name()), found.pointer());
        });
        filling.gone = 0;
        let old = self.places.swap(Box::into_raw(Box::new(new)), Ordering::AcqRel);
        readers::wait();
        // SAFETY: the pointer comes from a box, it is not in the table any more, and all readers
        // that may have found it have left.
        unsafe {
            if (*old).life.ends() {
                drop(Box::from_raw(old));
            }
        }
    }
}

/// Whether two names are equal. Most are short, and a call of `memcmp` takes longer than the
/// comparison.
#[inline]
fn is_same(name: &[u8], other: &[u8]) -> bool {
    if name.len() != other.len() {
        return false;
    }
    // The two ends meet or overlap.
    match name.len() {
        8..=16 => ends::<8>(name, other).is_some_and(|ends| {
            let [first, last, other_first, other_last] = ends.map(|end| u64::from_ne_bytes(*end));
            (first ^ other_first) | (last ^ other_last) == 0
        }),
        17..=32 => ends::<16>(name, other).is_some_and(|ends| {
            let [first, last, other_first, other_last] = ends.map(|end| u128::from_ne_bytes(*end));
            (first ^ other_first) | (last ^ other_last) == 0
        }),
        _ => name == other,
    }
}

/// Returns the first and the last bytes of both names.
#[inline]
fn ends<'ends, const N: usize>(name: &'ends [u8], other: &'ends [u8]) -> Option<[&'ends [u8; N]; 4]> {
    Some([name.first_chunk()?, name.last_chunk()?, other.first_chunk()?, other.last_chunk()?])
}

/// Returns the key at a place.
#[inline]
fn at_place<'found>(place: &AtomicPtr<Key>) -> Option<Found<'found>> {
    let key = NonNull::new(place.load(Ordering::Acquire))?;
    // SAFETY: private, and called by threads that are inside or are the exclusive writer. The
    // table's reference to a removed key is released only when all readers that were inside have
    // left. Later readers do not read its place, because the mark is a tombstone, unless another
    // key has been stored there.
    Some(unsafe { Found::new(key) })
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: no reader is inside a table that is dropped.
        let places = unsafe { Box::from_raw(self.places.load(Ordering::Relaxed)) };
        for (mark, key) in places.marks.iter().zip(&places.keys) {
            if mark.load(Ordering::Relaxed) > GONE
                && let Some(key) = NonNull::new(key.load(Ordering::Relaxed))
            {
                // SAFETY: the table's own reference, released once.
                drop(unsafe { KeyRef::from_raw(key) });
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Counter, Kind, Promise};
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Mutex, PoisonError};

    /// Longest script and most rounds: fewer under an interpreter (Miri).
    const STEPS_MAX: usize = if cfg!(miri) { 60 } else { 400 };
    const ROUNDS: u32 = if cfg!(miri) { 2 } else { 20 };

    /// A poor hash, which causes collisions of places and of marks.
    fn hash(name: &[u8]) -> u64 {
        let number = name.iter().fold(0_u64, |sum, byte| sum * 31 + u64::from(*byte));
        (number % 5) << 61 | (number % 3) << 16
    }

    fn key(name: &[u8], position: i64) -> KeyRef {
        KeyRef::new(name, Counter::new(Kind::Plain, Promise::Relaxed { cap: 10 }, position), 0)
    }

    #[test]
    fn names_are_the_same_if_all_their_bytes_are() {
        for length in 0..70 {
            let name: Vec<u8> = (0..length).collect();
            assert!(is_same(&name, &name.clone()));
            assert!(!is_same(&name, &[&name[..], &[0]].concat()));
            for at in 0..name.len() {
                let mut other = name.clone();
                other[at] ^= 0x80;
                assert!(!is_same(&name, &other), "{length} bytes, another one at {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_table_has_what_a_map_has(script in prop::collection::vec((0..3_u8, 0..60_u16), 1..STEPS_MAX)) {
            let (table, mut filling) = Table::new();
            let mut model = HashMap::new();
            for (step, (what, number)) in script.into_iter().enumerate() {
                let name = number.to_string().into_bytes();
                match what {
                    0 if !model.contains_key(&name) => {
                        table.insert(&mut filling, hash(&name), key(&name, step as i64), hash);
                        model.insert(name.clone(), step as i64);
                    }
                    1 => {
                        let removed = table.remove(&mut filling, hash(&name), &name);
                        let removed = removed.map(|key| key.counter().position());
                        prop_assert_eq!(removed, model.remove(&name));
                    }
                    _ => {}
                }
                let inside = readers::enter().unwrap();
                let found = table.find(hash(&name), &name, &inside).map(|found| found.counter().position());
                prop_assert_eq!(found, model.get(&name).copied());
                prop_assert_eq!(filling.keys, model.len());
            }
            let mut all = HashMap::new();
            table.for_each(&filling, |found| {
                all.insert(found.name().to_vec(), found.counter().position());
            });
            prop_assert_eq!(all, model);
        }
    }

    #[test]
    fn readers_find_what_stays_while_others_come_and_go() {
        let (table, filling) = Table::new();
        let filling = Mutex::new(filling);
        let lock = || filling.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(&mut lock(), hash(b"stays"), key(b"stays", 7), hash);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for round in 0..ROUNDS {
                    for number in 0..20_u32 {
                        let name = (round * 7 + number).to_string().into_bytes();
                        let mut filling = lock();
                        if table.find_alone(&filling, hash(&name), &name).is_none() {
                            table.insert(&mut filling, hash(&name), key(&name, i64::from(number)), hash);
                        }
                    }
                    for number in 0..20_u32 {
                        let name = (round * 7 + number).to_string().into_bytes();
                        let removed = table.remove(&mut lock(), hash(&name), &name);
                        readers::wait();
                        drop(removed);
                    }
                }
                is_over.store(true, Ordering::Release);
            });
            for _ in 0..2 {
                threads.spawn(|| {
                    while !is_over.load(Ordering::Acquire) {
                        let inside = readers::enter().unwrap();
                        let found = table.find(hash(b"stays"), b"stays", &inside).unwrap();
                        assert_eq!(found.counter().position(), 7);
                        let length = table.find(hash(b"12"), b"12", &inside).map(|found| found.name().len());
                        assert!(length.is_none_or(|length| length == 2));
                    }
                });
            }
        });
    }
}

/// All interleavings of a reader and a writer, explored by loom.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::{Counter, Kind, Promise};
    use loom::sync::Arc;
    use loom::thread;

    /// The same hash for all, so that every key collides with every other.
    const HASH: u64 = 5 << 16;

    fn key(name: &[u8]) -> KeyRef {
        KeyRef::new(name, Counter::new(Kind::Plain, Promise::Relaxed { cap: 10 }, 0), 0)
    }

    fn insert(table: &Table, filling: &mut Filling, name: &[u8]) {
        table.insert(filling, HASH, key(name), |_| HASH);
    }

    /// A lookup in another slot, which uses the key while it is inside.
    fn find(table: &Table, name: &[u8]) -> bool {
        let inside = readers::enter_as(1).expect("it is not inside");
        table.find(HASH, name, &inside).is_some_and(|found| {
            assert_eq!(found.name(), name);
            found.touch();
            true
        })
    }

    #[test]
    fn loom_a_key_that_is_taken_out_is_not_used_when_it_is_freed() {
        loom::model(|| {
            let (table, mut filling) = Table::new();
            insert(&table, &mut filling, b"a");
            let table = Arc::new(table);
            let other = table.clone();
            let reader = thread::spawn(move || find(&other, b"a"));
            let removed = table.remove(&mut filling, HASH, b"a");
            assert!(removed.is_some());
            readers::wait();
            drop(removed);
            reader.join().unwrap();
            assert!(!find(&table, b"a"));
        });
    }

    #[test]
    fn loom_a_key_that_stays_is_found_while_the_table_grows() {
        loom::model(|| {
            let (table, mut filling) = Table::new();
            insert(&table, &mut filling, b"a");
            let table = Arc::new(table);
            let other = table.clone();
            let reader = thread::spawn(move || (find(&other, b"a"), find(&other, b"b")));
            // There is no place for it: the table is copied into a new one, and the old one is
            // freed.
            insert(&table, &mut filling, b"b");
            let (first, _) = reader.join().unwrap();
            assert!(first);
            assert!(find(&table, b"b"));
        });
    }

    #[test]
    fn loom_a_place_that_is_used_again_is_never_taken_for_the_other_key() {
        loom::model(|| {
            let (table, mut filling) = Table::new();
            insert(&table, &mut filling, b"a");
            let table = Arc::new(table);
            let other = table.clone();
            let reader = thread::spawn(move || {
                find(&other, b"a");
                find(&other, b"b")
            });
            let removed = table.remove(&mut filling, HASH, b"a");
            // Into its place, before any wait.
            assert!(table.places().insert(HASH, key(b"b").into_raw()));
            readers::wait();
            drop(removed);
            reader.join().unwrap();
            assert!(find(&table, b"b"));
        });
    }
    #[test]
    fn loom_a_late_reader_of_a_slot_does_not_see_the_freed_entry() {
        loom::model(|| {
            let (table, mut filling) = Table::new();
            insert(&table, &mut filling, b"a");
            let table = Arc::new(table);
            let other = table.clone();
            let reader = thread::spawn(move || find(&other, b"b"));
            let removed = table.remove(&mut filling, HASH, b"a");
            readers::wait();
            drop(removed);
            assert!(table.places().insert(HASH, key(b"b").into_raw()));
            reader.join().unwrap();
            assert!(find(&table, b"b"));
        });
    }
}
