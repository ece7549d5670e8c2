//! Ids of items, concatenated; with lookup in both directions.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher;

/// Ids of items, numbered in the order of insertion. An id belongs to one item at a time, the
/// youngest that was added with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    text: String,
    /// End of each id in the text. [`ITEMS_MAX`](crate::ITEMS_MAX) ids of maximum length just fit.
    ends: Vec<u32>,
    by_id: HashTable<u32>,
    /// Number of items that have lost their id.
    released: usize,
    hasher: RandomState,
}

/// Maximum number of items that claim their ids together: as many hashes are buffered.
const CLAIMED_AT_ONCE: usize = 1 << 20;
/// Number of regions in which a table is filled, one after the other. With a million items, a
/// region fits into a processor's second-level cache.
const REGIONS: usize = 256;

const _: () = assert!(crate::ITEMS_MAX * crate::ID_BYTES_MAX <= u32::MAX as usize);

impl Ids {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, item: u32) -> &str {
        get(&self.text, &self.ends, item)
    }

    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        let same = |&item: &u32| self.get(item) == id;
        self.by_id.find(self.hasher.hash_one(id), same).copied()
    }

    /// Returns whether an item, which must exist, still owns its id.
    #[inline]
    pub(crate) fn is_owner(&self, item: u32) -> bool {
        self.released == 0 || self.find(self.get(item)) == Some(item)
    }

    /// Appends an item; no other item may own its id.
    pub(crate) fn push(&mut self, id: &str) -> u32 {
        let item = self.push_text(id);
        let claimed = self.claim_all(std::iter::once(item));
        assert!(
            claimed.is_some(),
            "the id {id:?} of the new item {item} is that of item {:?}",
            self.find(id)
        );
        item
    }

    /// Appends an item without its id. The caller [claims](Self::claim_all) the ids of all such
    /// items before anything else.
    pub(crate) fn push_text(&mut self, id: &str) -> u32 {
        let item = self.ends.len() as u32;
        self.text.push_str(id);
        self.ends.push(self.text.len() as u32);
        item
    }

    /// Appends an item that has lost its id.
    pub(crate) fn push_released(&mut self, id: &str) -> u32 {
        self.released += 1;
        self.push_text(id)
    }

    /// Assigns items their ids. `None` if one of them is taken: do not use the ids after that.
    /// O(items). Fills the table region by region; with many items this takes half the time, as
    /// writes stay in a cache.
    pub(crate) fn claim_all(&mut self, mut items: impl Iterator<Item = u32>) -> Option<()> {
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        let id = |item: u32| get(text, ends, item);
        let rehash = |&other: &u32| hasher.hash_one(id(other));
        self.by_id.reserve(ends.len() - self.released - self.by_id.len(), rehash);
        // Entries of one region share the upper bits of their position. Only speed depends on this.
        let places = self.by_id.num_buckets();
        let shift = places.ilog2().saturating_sub(REGIONS.ilog2());
        let region = |hash: u64| (hash as usize & (places - 1)) >> shift;
        let mut by_region = Vec::new();
        loop {
            let batch = items.by_ref().take(CLAIMED_AT_ONCE);
            let batch: Vec<(u64, u32)> = batch.map(|item| (hasher.hash_one(id(item)), item)).collect();
            if batch.is_empty() {
                return Some(());
            }
            sort_by(&batch, |(hash, _)| region(*hash), &mut by_region);
            for &(hash, item) in &by_region {
                let same = |&other: &u32| id(other) == id(item);
                let Entry::Vacant(free) = self.by_id.entry(hash, same, rehash) else { return None };
                free.insert(item);
            }
        }
    }

    /// Releases the id of an item for reuse. The item keeps its number and the text of its id.
    pub(crate) fn release(&mut self, item: u32) {
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        let hash = hasher.hash_one(get(text, ends, item));
        let rehash = |&other: &u32| hasher.hash_one(get(text, ends, other));
        match self.by_id.entry(hash, |&other| other == item, rehash) {
            Entry::Occupied(entry) => {
                entry.remove();
                self.released += 1;
            }
            Entry::Vacant(_) => {
                unreachable!("item {item} is removed, and {:?} is not its id", self.get(item))
            }
        }
    }

    /// Undoes a [`release`](Self::release); no other item may own the id.
    pub(crate) fn take_back(&mut self, item: u32) {
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        let id = get(text, ends, item);
        assert!(self.find(id).is_none(), "item {item} gets {id:?} back, the id of item {:?}", self.find(id));
        let rehash = |&other: &u32| hasher.hash_one(get(text, ends, other));
        self.by_id.insert_unique(hasher.hash_one(id), item, rehash);
        self.released -= 1;
    }

    /// Undoes the last [`push`](Self::push).
    pub(crate) fn pop(&mut self) {
        let item = self.ends.len().checked_sub(1).expect("the last item is undone, and there is none");
        self.release(item as u32);
        self.released -= 1;
        self.ends.pop();
        self.text.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    /// Returns the heap size in bytes, roughly.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 4 + self.by_id.allocation_size()
    }
}

fn get<'a>(text: &'a str, ends: &[u32], item: u32) -> &'a str {
    let item = item as usize;
    let begin = item.checked_sub(1).map_or(0, |before| ends[before] as usize);
    &text[begin..ends[item] as usize]
}

/// Sorts by region (counting sort).
fn sort_by<T: Copy>(all: &[T], region: impl Fn(&T) -> usize, into: &mut Vec<T>) {
    into.clear();
    into.extend_from_slice(all);
    if all.len() < REGIONS {
        return;
    }
    let mut ends = [0; REGIONS + 1];
    all.iter().for_each(|one| ends[region(one) + 1] += 1);
    for region in 1..=REGIONS {
        ends[region] += ends[region - 1];
    }
    for one in all {
        let place = &mut ends[region(one)];
        into[*place] = *one;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_belongs_to_the_youngest_item_that_came_with_it() {
        let mut ids = Ids::default();
        let (car, mug) = (ids.push("car"), ids.push("mug"));
        assert_eq!((ids.find("car"), ids.find("mug"), ids.find("ca")), (Some(car), Some(mug), None));
        ids.release(car);
        assert_eq!(ids.find("car"), None);
        let other = ids.push("car");
        assert_eq!((ids.find("car"), ids.get(car), ids.get(other), ids.len()), (Some(2), "car", "car", 3));
        ids.pop();
        assert_eq!((ids.find("car"), ids.len()), (None, 2));
        ids.take_back(car);
        assert_eq!(ids.find("car"), Some(car));
        assert_eq!(ids.push("carpet"), 2);
        assert_eq!(ids.get(2), "carpet");
    }

    #[test]
    fn many_items_claim_their_ids_at_once_and_no_two_the_same() {
        for count in [1, 2, 255, 256, 5_000] {
            let mut ids = Ids::default();
            ids.push("first");
            ids.push_released("1");
            (0..count).for_each(|item| _ = ids.push_text(&item.to_string()));
            ids.claim_all(2..2 + count).expect("they differ");
            assert!((0..count).all(|item| ids.find(&item.to_string()) == Some(item + 2)), "{count}");
            assert_eq!(
                (ids.find("first"), ids.find("second"), ids.by_id.len()),
                (Some(0), None, count as usize + 1)
            );

            for twice in ["first", "0", &(count - 1).to_string()] {
                let mut ids = ids.clone();
                let (new, other) = (ids.push_text("new"), ids.push_text(twice));
                assert_eq!(ids.claim_all([new, other].into_iter()), None, "{twice} of {count}");
            }
        }
    }
}
