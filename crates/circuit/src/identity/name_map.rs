//! A map from names to what there is one of per name. Grows only; looking up takes no lock.
//!
//! ```text
//!  table ──► [ ∅ | entry 7 | ∅ | entry 12 | entry 4 | ... ]     open addressing by the name's number, at most half full
//! ```
//!
//! Growth makes a larger table and keeps the old one until the map is dropped, for those who are looking into it. All tables
//! together are at most twice as large as the last.
#![allow(unsafe_code, reason = "tables and entries are read without a lock, and freed only with the map")]

use std::ptr;

use crate::identity::name::Name;
use crate::sync::{AtomicPtr, Mutex, OnceLock, Ordering, UnsafeCell, lock};

/// How many slots the first table has: a power of two.
const FIRST_SLOTS: usize = if cfg!(loom) { 2 } else { 8 };

struct Entry<T> {
    /// Never changes. In a cell so that models notice who reads it without having been told of the entry.
    name: UnsafeCell<Name>,
    value: OnceLock<T>,
}

impl<T> Entry<T> {
    fn new(name: Name) -> Self {
        Self { name: UnsafeCell::new(name), value: OnceLock::new() }
    }

    #[inline]
    fn name(&self) -> Name {
        // SAFETY: nobody changes it.
        self.name.with(|name| unsafe { *name })
    }
}

struct Table<T> {
    slots: Box<[AtomicPtr<Entry<T>>]>,
}

/// See the module.
pub(crate) struct NameMap<T> {
    table: AtomicPtr<Table<T>>,
    /// Every table that there was, the last one in use, and how many entries it has.
    tables: Mutex<Tables<T>>,
}

#[allow(clippy::vec_box, reason = "the address of a table is shared, it must not move")]
struct Tables<T> {
    all: Vec<Box<Table<T>>>,
    entries: usize,
}

// SAFETY: the pointers are to tables and entries that the map owns; values are reached by shared references from any thread.
unsafe impl<T: Send> Send for NameMap<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for NameMap<T> {}

impl<T> Default for NameMap<T> {
    fn default() -> Self {
        let tables = Tables { all: Vec::new(), entries: 0 };
        Self { table: AtomicPtr::new(ptr::null_mut()), tables: Mutex::new(tables) }
    }
}

impl<T> Table<T> {
    #[allow(clippy::unnecessary_box_returns, reason = "a table must not move")]
    fn with_slots(count: usize) -> Box<Self> {
        assert!(count.is_power_of_two(), "a table has {count} slots, not a power of two");
        Box::new(Self { slots: (0..count).map(|_| AtomicPtr::new(ptr::null_mut())).collect() })
    }

    /// The name's entry, or the slot where it would be.
    #[inline]
    fn find(&self, name: Name) -> Result<&Entry<T>, &AtomicPtr<Entry<T>>> {
        let mask = self.slots.len() - 1;
        // Numbers are handed out one after the other: they spread by themselves.
        let mut index = name.id() as usize & mask;
        loop {
            let slot = &self.slots[index];
            // SAFETY: entries live as long as the map.
            match unsafe { slot.load(Ordering::Acquire).as_ref() } {
                Some(entry) if entry.name() == name => return Ok(entry),
                Some(_) => index = (index + 1) & mask,
                // A table is never full.
                None => return Err(slot),
            }
        }
    }
}

impl<T> NameMap<T> {
    /// What there is for the name, if there is something.
    #[inline]
    pub(crate) fn get(&self, name: Name) -> Option<&T> {
        // SAFETY: tables live as long as the map.
        let table = unsafe { self.table.load(Ordering::Acquire).as_ref() }?;
        table.find(name).ok()?.value.get()
    }

    /// What there is for the name, made by `make` if there is nothing; at most one caller makes it, the others wait.
    #[inline]
    pub(crate) fn get_or_make(&self, name: Name, make: impl FnOnce() -> T) -> &T {
        match self.get(name) {
            Some(value) => value,
            // Not under the lock, so that making one may look up others.
            None => self.entry(name).value.get_or_init(make),
        }
    }

    #[cold]
    fn entry(&self, name: Name) -> &Entry<T> {
        let mut tables = lock(&self.tables);
        if tables.all.last().is_none_or(|table| tables.entries * 2 >= table.slots.len()) {
            self.grow(&mut tables);
        }
        let table = ptr::from_ref(&**tables.all.last().expect("there is a table"));
        // SAFETY: tables live as long as the map.
        match unsafe { &*table }.find(name) {
            Ok(entry) => entry,
            Err(slot) => {
                let entry = Box::into_raw(Box::new(Entry::new(name)));
                slot.store(entry, Ordering::Release);
                tables.entries += 1;
                // SAFETY: entries live as long as the map.
                unsafe { &*entry }
            }
        }
    }

    fn grow(&self, tables: &mut Tables<T>) {
        let old = tables.all.last();
        let table = Table::with_slots(old.map_or(FIRST_SLOTS, |old| old.slots.len() * 2));
        for slot in old.iter().flat_map(|old| &old.slots) {
            let entry = slot.load(Ordering::Relaxed);
            // SAFETY: entries live as long as the map.
            if let Some(name) = unsafe { entry.as_ref() }.map(Entry::name)
                && let Err(free) = table.find(name)
            {
                free.store(entry, Ordering::Relaxed);
            }
        }
        tables.all.push(table);
        // From where it stays: a box that is moved must be the only way to what is in it.
        let table = tables.all.last().map_or(ptr::null_mut(), |table| ptr::from_ref(&**table).cast_mut());
        self.table.store(table, Ordering::Release);
    }

    /// Everything that was made so far.
    pub(crate) fn values(&self) -> Vec<&T> {
        let tables = lock(&self.tables);
        let slots = tables.all.last().into_iter().flat_map(|table| &table.slots);
        // SAFETY: entries live as long as the map.
        slots
            .filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() }?.value.get())
            .collect::<Vec<&T>>()
    }
}

impl<T> Drop for NameMap<T> {
    fn drop(&mut self) {
        let tables = lock(&self.tables);
        // The last table has all entries; the others had some of them.
        for slot in tables.all.last().iter().flat_map(|table| &table.slots) {
            let entry = slot.load(Ordering::Relaxed);
            if !entry.is_null() {
                // SAFETY: the map is dropped, so nobody looks at its entries.
                drop(unsafe { Box::from_raw(entry) });
            }
        }
    }
}
