//! A map with one value per name. It only grows; lookups take no lock.
//!
//! ```text
//!  table ──► [ ∅ | entry 7 | ∅ | entry 12 | entry 4 | ... ]     open addressing by the name's number, at most half full
//! ```
//!
//! Growth makes a larger table. The old one is kept until the map is dropped, for concurrent
//! readers. All tables together are at most twice as large as the last.
#![allow(unsafe_code, reason = "tables and entries are read without a lock, and freed only with the map")]

use std::ptr;

use crate::identity::name::Name;
use crate::sync::{AtomicPtr, Mutex, OnceLock, Ordering, UnsafeCell, lock};

/// Slots of the first table: a power of two.
const FIRST_SLOTS: usize = if cfg!(loom) { 2 } else { 8 };

struct Entry<T> {
    /// Never changes. In a cell so that loom detects a reader that has not synchronised with the
    /// entry's creation.
    name: UnsafeCell<Name>,
    value: OnceLock<T>,
}

impl<T> Entry<T> {
    fn new(name: Name) -> Self {
        Self { name: UnsafeCell::new(name), value: OnceLock::new() }
    }

    #[inline]
    fn name(&self) -> Name {
        // SAFETY: the name is never changed.
        self.name.with(|name| unsafe { *name })
    }
}

struct Table<T> {
    slots: Box<[AtomicPtr<Entry<T>>]>,
}

pub(crate) struct NameMap<T> {
    table: AtomicPtr<Table<T>>,
    /// Every table so far, the current one last, and the number of its entries.
    tables: Mutex<Tables<T>>,
}

#[allow(clippy::vec_box, reason = "the address of a table is shared, it must not move")]
struct Tables<T> {
    all: Vec<Box<Table<T>>>,
    entries: usize,
}

// SAFETY: the pointers are to tables and entries that the map owns; values are accessed by shared
// references from any thread.
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

    /// Returns the name's entry, or the slot where it would be.
    #[inline]
    fn find(&self, name: Name) -> Result<&Entry<T>, &AtomicPtr<Entry<T>>> {
        let mask = self.slots.len() - 1;
        // Ids are consecutive, so they need no hash.
        let mut index = name.id() as usize & mask;
        loop {
            let slot = &self.slots[index];
            // SAFETY: entries live as long as the map.
            match unsafe { slot.load(Ordering::Acquire).as_ref() } {
                Some(entry) if entry.name() == name => return Ok(entry),
                Some(_) => index = (index + 1) & mask,
                // Always reached: a table is never full.
                None => return Err(slot),
            }
        }
    }
}

impl<T> NameMap<T> {
    /// Returns the value of the name, if there is one.
    #[inline]
    pub(crate) fn get(&self, name: Name) -> Option<&T> {
        // SAFETY: tables live as long as the map.
        let table = unsafe { self.table.load(Ordering::Acquire).as_ref() }?;
        table.find(name).ok()?.value.get()
    }

    /// Returns the value of the name, made by `make` if there is none. At most one caller makes it;
    /// concurrent callers wait.
    #[inline]
    pub(crate) fn get_or_make(&self, name: Name, make: impl FnOnce() -> T) -> &T {
        match self.get(name) {
            Some(value) => value,
            // Not under the lock, so `make` may look up other names.
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
        // The pointer is taken after the push: moving a box invalidates pointers into it.
        let table = tables.all.last().map_or(ptr::null_mut(), |table| ptr::from_ref(&**table).cast_mut());
        self.table.store(table, Ordering::Release);
    }

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
        // The last table has all entries.
        for slot in tables.all.last().iter().flat_map(|table| &table.slots) {
            let entry = slot.load(Ordering::Relaxed);
            if !entry.is_null() {
                // SAFETY: the map is being dropped, so there are no references to its entries.
                drop(unsafe { Box::from_raw(entry) });
            }
        }
    }
}
