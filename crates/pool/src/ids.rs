//! The ids of items: kept one behind the other, found by an item's number and the other way round.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher;

/// Ids of items, numbered in the order in which they came. An id belongs to one item at a time, the youngest that has come with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    text: String,
    /// Where in the text each id ends. [`ITEMS_MAX`](crate::ITEMS_MAX) ids of the longest kind just fit.
    ends: Vec<u32>,
    by_id: HashTable<u32>,
    /// How many items have lost their id.
    released: usize,
    hasher: RandomState,
}

const _: () = assert!(crate::ITEMS_MAX * crate::ID_BYTES_MAX <= u32::MAX as usize);

impl Ids {
    pub(crate) fn with_capacity(items: usize) -> Self {
        Self { ends: Vec::with_capacity(items), by_id: HashTable::with_capacity(items), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The id of an item that is there.
    pub(crate) fn get(&self, item: u32) -> &str {
        get(&self.text, &self.ends, item)
    }

    /// The item of an id. O(1).
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        let same = |&item: &u32| self.get(item) == id;
        self.by_id.find(self.hasher.hash_one(id), same).copied()
    }

    /// Whether an item that is there still has its id.
    #[inline]
    pub(crate) fn is_owner(&self, item: u32) -> bool {
        self.released == 0 || self.find(self.get(item)) == Some(item)
    }

    /// Adds an item; its id must belong to nobody.
    pub(crate) fn push(&mut self, id: &str) -> u32 {
        self.claim(id).expect("callers have seen that it belongs to nobody")
    }

    /// Adds an item, unless its id belongs to another: then nothing is changed.
    pub(crate) fn claim(&mut self, id: &str) -> Option<u32> {
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        let same = |&other: &u32| get(text, ends, other) == id;
        let rehash = |&other: &u32| hasher.hash_one(get(text, ends, other));
        let Entry::Vacant(free) = self.by_id.entry(hasher.hash_one(id), same, rehash) else { return None };
        let item = self.ends.len() as u32;
        free.insert(item);
        self.text.push_str(id);
        self.ends.push(self.text.len() as u32);
        Some(item)
    }

    /// Adds an item that has lost its id.
    pub(crate) fn push_released(&mut self, id: &str) {
        self.text.push_str(id);
        self.ends.push(self.text.len() as u32);
        self.released += 1;
    }

    /// Takes the id from an item, so that another may have it. The item keeps its number and what it was called.
    pub(crate) fn release(&mut self, item: u32) {
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        let hash = hasher.hash_one(get(text, ends, item));
        let rehash = |&other: &u32| hasher.hash_one(get(text, ends, other));
        match self.by_id.entry(hash, |&other| other == item, rehash) {
            Entry::Occupied(entry) => {
                entry.remove();
                self.released += 1;
            }
            Entry::Vacant(_) => debug_assert!(false, "item {item} has its id"),
        }
    }

    /// Undoes a [`release`](Self::release), if the id has not been given to another.
    pub(crate) fn take_back(&mut self, item: u32) {
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        let id = get(text, ends, item);
        debug_assert!(self.find(id).is_none(), "{id} is free");
        let rehash = |&other: &u32| hasher.hash_one(get(text, ends, other));
        self.by_id.insert_unique(hasher.hash_one(id), item, rehash);
        self.released -= 1;
    }

    /// Undoes the last [`push`](Self::push).
    pub(crate) fn pop(&mut self) {
        let Some(item) = self.ends.len().checked_sub(1) else { return };
        self.release(item as u32);
        self.released -= 1;
        self.ends.pop();
        self.text.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    /// What it takes on the heap. Bytes, roughly.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 4 + self.by_id.allocation_size()
    }
}

fn get<'a>(text: &'a str, ends: &[u32], item: u32) -> &'a str {
    let item = item as usize;
    let begin = item.checked_sub(1).map_or(0, |before| ends[before] as usize);
    &text[begin..ends[item] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_belongs_to_the_youngest_item_that_came_with_it() {
        let mut ids = Ids::with_capacity(2);
        let (car, mug) = (ids.push("car"), ids.push("mug"));
        assert_eq!((ids.find("car"), ids.find("mug"), ids.find("ca")), (Some(car), Some(mug), None));
        ids.release(car);
        assert_eq!(ids.find("car"), None);
        assert_eq!((ids.claim("mug"), ids.len()), (None, 2));
        let other = ids.push("car");
        assert_eq!((ids.find("car"), ids.get(car), ids.get(other), ids.len()), (Some(2), "car", "car", 3));
        ids.pop();
        assert_eq!((ids.find("car"), ids.len()), (None, 2));
        ids.take_back(car);
        assert_eq!(ids.find("car"), Some(car));
        assert_eq!(ids.push("carpet"), 2);
        assert_eq!(ids.get(2), "carpet");
    }
}
