//! Items in the order of their IDs, in shared chunks.
//!
//! ```text
//! chunks   [ 1-0 2-0 … ]  [ … ]  [ … 9-5 ]     each a reference: a copy shares them all
//! ```
//!
//! Deliveries add at the end, acknowledgements mostly remove at the front: both cost O(log n). Elsewhere
//! an insertion or removal moves the items of one chunk, and at most a reference for each chunk.

use super::id::Id;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most items of a chunk.
const CHUNK_ITEMS: usize = 128;

/// An item with its place in the order.
pub(super) trait Keyed: Clone {
    fn id(&self) -> Id;
}

impl Keyed for Id {
    fn id(&self) -> Id {
        *self
    }
}

/// Items with distinct IDs. No chunk is empty.
#[derive(Debug, Clone)]
pub(super) struct Ordered<T> {
    chunks: VecDeque<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), len: 0 }
    }
}

/// A chunk, and an offset in it.
type Place = (usize, usize);

impl<T: Keyed> Ordered<T> {
    /// Returns the number of items.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of chunks.
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Iterates over the items of some chunks.
    pub(super) fn of_chunks(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &T> {
        self.chunks.range(range).flat_map(|chunk| chunk.iter())
    }

    /// Returns where an ID is, or where it would be inserted.
    fn find(&self, id: Id) -> Result<Place, Place> {
        let number = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| last.id() < id));
        let Some(chunk) = self.chunks.get(number) else {
            let last = self.chunks.len().saturating_sub(1);
            return Err((last, self.chunks.back().map_or(0, |chunk| chunk.len())));
        };
        match chunk.binary_search_by_key(&id, Keyed::id) {
            Ok(offset) => Ok((number, offset)),
            Err(offset) => Err((number, offset)),
        }
    }

    /// Returns an item.
    pub(super) fn get(&self, id: Id) -> Option<&T> {
        let (chunk, offset) = self.find(id).ok()?;
        Some(&self.chunks[chunk][offset])
    }

    /// Returns an item, to change anything but its ID.
    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let (chunk, offset) = self.find(id).ok()?;
        Some(&mut Arc::make_mut(&mut self.chunks[chunk])[offset])
    }

    /// Returns the first item.
    pub(super) fn first(&self) -> Option<&T> {
        self.chunks.front().and_then(|chunk| chunk.first())
    }

    /// Returns the last item.
    pub(super) fn last(&self) -> Option<&T> {
        self.chunks.back().and_then(|chunk| chunk.last())
    }

    /// Iterates over the items from an ID on.
    pub(super) fn iter_from(&self, id: Id) -> impl Iterator<Item = &T> {
        let (chunk, offset) = self.find(id).unwrap_or_else(|place| place);
        self.chunks.range(chunk.min(self.chunks.len())..).flat_map(|chunk| chunk.iter()).skip(offset)
    }

    /// Adds an item; `false` if its ID is there already, and then nothing changes.
    pub(super) fn insert(&mut self, item: T) -> bool {
        let Err((number, offset)) = self.find(item.id()) else { return false };
        self.len += 1;
        let is_end = offset == self.chunks.get(number).map_or(0, |chunk| chunk.len());
        if is_end && self.chunks.get(number).is_none_or(|chunk| chunk.len() >= CHUNK_ITEMS) {
            // Only behind the last chunk: elsewhere the place is before an item.
            self.chunks.push_back(Arc::new(vec![item]));
            return true;
        }
        let chunk = Arc::make_mut(&mut self.chunks[number]);
        if chunk.len() < CHUNK_ITEMS {
            chunk.insert(offset, item);
            return true;
        }
        let mut behind = chunk.split_off(CHUNK_ITEMS / 2);
        if offset <= chunk.len() {
            chunk.insert(offset, item);
        } else {
            behind.insert(offset - chunk.len(), item);
        }
        self.chunks.insert(number + 1, Arc::new(behind));
        true
    }

    /// Removes an item and returns it.
    pub(super) fn remove(&mut self, id: Id) -> Option<T> {
        let (number, offset) = self.find(id).ok()?;
        self.len -= 1;
        let chunk = Arc::make_mut(&mut self.chunks[number]);
        let removed = chunk.remove(offset);
        if chunk.is_empty() {
            self.chunks.remove(number);
        } else if chunk.len() < CHUNK_ITEMS / 4 {
            if chunk.capacity() > 4 * chunk.len() {
                chunk.shrink_to(2 * chunk.len());
            }
            self.merge(number);
        }
        Some(removed)
    }

    /// Joins a small chunk to a neighbour, if both together leave room: otherwise scattered removals
    /// would leave many chunks of one item.
    fn merge(&mut self, number: usize) {
        let fits = |one: usize| {
            let len = |number: usize| self.chunks.get(number).map_or(CHUNK_ITEMS, |chunk| chunk.len());
            len(one) + len(one + 1) <= CHUNK_ITEMS / 2
        };
        let candidates = [Some(number), number.checked_sub(1)];
        let Some(first) = candidates.into_iter().flatten().find(|first| fits(*first)) else { return };
        if let Some(behind) = self.chunks.remove(first + 1) {
            Arc::make_mut(&mut self.chunks[first]).extend(behind.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn id(ms: u64) -> Id {
        Id { ms, seq: 1 }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_does_what_a_sorted_set_does(
            steps in prop::collection::vec((any::<bool>(), 0..600_u64, 0..200_u64), 0..60),
        ) {
            let (mut ordered, mut model) = (Ordered::<Id>::default(), BTreeSet::new());
            for (adds, from, count) in steps {
                let kept = (ordered.clone(), model.clone());
                for ms in from..from + count {
                    if adds {
                        prop_assert_eq!(ordered.insert(id(ms)), model.insert(id(ms)));
                    } else {
                        prop_assert_eq!(ordered.remove(id(ms)).is_some(), model.remove(&id(ms)));
                    }
                }
                let is_same = |ordered: &Ordered<Id>, model: &BTreeSet<Id>| {
                    ordered.len() == model.len()
                        && ordered.iter_from(Id::MIN).eq(model)
                        && ordered.iter_from(id(from)).eq(model.range(id(from)..))
                        && ordered.first() == model.first()
                        && ordered.last() == model.last()
                        && ordered.get(id(from)) == model.get(&id(from))
                };
                prop_assert!(is_same(&ordered, &model));
                prop_assert!(is_same(&kept.0, &kept.1), "a copy stays as it was");
                let is_sound = |chunk: &Arc<Vec<Id>>| (1..=CHUNK_ITEMS).contains(&chunk.len());
                prop_assert!(ordered.chunks.iter().all(is_sound));
            }
        }
    }

    #[test]
    fn scattered_items_do_not_keep_a_chunk_each() {
        let mut ordered = Ordered::default();
        (0..12_800).for_each(|ms| assert!(ordered.insert(id(ms))));
        (0..12_800).filter(|ms| ms % 128 != 0).for_each(|ms| assert!(ordered.remove(id(ms)).is_some()));
        assert_eq!(ordered.len(), 100);
        assert!(ordered.chunks.len() <= 8, "{} chunks", ordered.chunks.len());
    }
}
