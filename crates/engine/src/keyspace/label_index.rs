//! The labels of a database's series and lenses, and which keys have them.

use super::{Entry, Table};
use crate::value::{Labelled, Labels, Object};
use foldhash::fast::FixedState;
use std::collections::{HashMap, HashSet};

/// Hashes of keys: one in place, more in a set.
#[derive(Debug)]
enum Posting {
    One(u64),
    Many(HashSet<u64, FixedState>),
}

impl Posting {
    fn insert(&mut self, hash: u64) {
        match self {
            Self::One(only) if *only == hash => {}
            Self::One(only) => *self = Self::Many([*only, hash].into_iter().collect()),
            Self::Many(hashes) => {
                hashes.insert(hash);
            }
        }
    }

    /// Removes a key. Returns whether none is left.
    fn remove(&mut self, hash: u64) -> bool {
        match self {
            Self::One(only) => *only == hash,
            Self::Many(hashes) => {
                hashes.remove(&hash);
                hashes.is_empty()
            }
        }
    }

    fn has(&self, hash: u64) -> bool {
        match self {
            Self::One(only) => *only == hash,
            Self::Many(hashes) => hashes.contains(&hash),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(hashes) => hashes.len(),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::One(only) => Box::new(std::iter::once(*only)),
            Self::Many(hashes) => Box::new(hashes.iter().copied()),
        }
    }
}

/// The values of a label, each with the keys that have it.
type Values = HashMap<Box<[u8]>, Posting, FixedState>;

/// The labels of a database's series and lenses.
///
/// Every one is added when its entry gets it, and removed before it leaves. Keys are known by
/// their hashes, as in the list of deadlines; a reader checks the labels of what it finds.
#[derive(Debug, Default)]
pub(crate) struct LabelIndex {
    labels: HashMap<Box<[u8]>, Values, FixedState>,
    /// Number of series and lenses.
    labelled: usize,
}

impl LabelIndex {
    /// Whether there is no series and no lens, with labels or without.
    pub(crate) fn is_empty(&self) -> bool {
        self.labelled == 0
    }

    /// Adds an entry, if it has a series or a lens. O(labels).
    #[inline]
    pub(super) fn add(&mut self, hash: u64, entry: &Entry) {
        // Every command that makes a key comes here: most values are told apart by their type alone.
        if let Some(object @ (Object::Series(_) | Object::Lens(_))) = entry.object() {
            self.labelled += 1;
            self.add_labels(hash, labels_of(object));
        }
    }

    /// Removes an entry that was added. O(labels).
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, entry: &Entry) {
        if let Some(object @ (Object::Series(_) | Object::Lens(_))) = entry.object() {
            self.labelled -= 1;
            self.remove_labels(hash, labels_of(object));
        }
    }

    /// Adds the labels of a key.
    pub(crate) fn add_labels(&mut self, hash: u64, labels: &Labels) {
        for (name, value) in labels.iter() {
            if !self.labels.contains_key(name) {
                self.labels.insert(name.into(), Values::default());
            }
            let values = self.labels.get_mut(name).expect("the name was added");
            match values.get_mut(value) {
                Some(posting) => posting.insert(hash),
                None => {
                    values.insert(value.into(), Posting::One(hash));
                }
            }
        }
    }

    /// Removes the labels of a key.
    pub(super) fn remove_labels(&mut self, hash: u64, labels: &Labels) {
        for (name, value) in labels.iter() {
            // A label that was given twice is gone already.
            let Some(values) = self.labels.get_mut(name) else { continue };
            if values.get_mut(value).is_some_and(|posting| posting.remove(hash)) {
                values.remove(value);
                if values.is_empty() {
                    self.labels.remove(name);
                }
            }
        }
    }

    /// Returns the values that there are of a label, each once.
    pub(crate) fn values<'i>(&'i self, name: &[u8]) -> impl Iterator<Item = &'i [u8]> {
        self.labels.get(name).into_iter().flat_map(|values| values.keys().map(|value| &**value))
    }

    /// Finds what meets all conditions, of which there is at least one, and rarely others; some may come
    /// twice. O(keys that meet the condition which the fewest meet).
    pub(crate) fn find<'t>(
        &self,
        table: &'t Table<Entry>,
        conditions: &[Condition<'_>],
    ) -> Vec<(&'t Entry, Labelled<'t>)> {
        let hashes = self.meeting(conditions);
        // The processor waits for memory at each pointer. Each pass follows one pointer of every key,
        // with so few instructions that it waits for many of them together.
        let entries: Vec<&Entry> = hashes.iter().flat_map(|hash| table.candidates(*hash)).collect();
        assert!(entries.len() >= hashes.len(), "the index has the labels of entries");
        let objects: Vec<(&Entry, &Object)> =
            entries.into_iter().filter_map(|entry| Some((entry, entry.object()?))).collect();
        let labelled: Vec<(&Entry, Labelled<'_>)> =
            objects.into_iter().filter_map(|(entry, object)| Some((entry, Labelled::of(object)?))).collect();
        labelled.into_iter().filter(|(_, labelled)| !labelled.labels().is_empty()).collect()
    }

    /// Returns the hashes of the keys that meet all conditions; one with a label twice may come twice.
    fn meeting(&self, conditions: &[Condition<'_>]) -> Vec<u64> {
        let count = |condition: &&Condition<'_>| self.postings(**condition).map(Posting::len).sum();
        let rarest = conditions.iter().min_by_key::<usize, _>(count).expect("a filter has a condition");
        let others: Vec<Vec<&Posting>> = conditions
            .iter()
            .filter(|condition| !std::ptr::eq(*condition, rarest))
            .map(|condition| self.postings(*condition).collect())
            .collect();
        let meets_all =
            |hash: &u64| others.iter().all(|postings| postings.iter().any(|posting| posting.has(*hash)));
        self.postings(*rarest).flat_map(Posting::iter).filter(meets_all).collect()
    }

    /// Returns the keys that meet a condition, for each of its values.
    fn postings<'i>(&'i self, condition: Condition<'i>) -> impl Iterator<Item = &'i Posting> {
        let values = self.labels.get(condition.name);
        condition.values.iter().filter_map(move |value| values?.get(*value))
    }
}

/// A condition on a label: that it has one of some values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) name: &'a [u8],
    /// The values, each once.
    pub(crate) values: &'a [&'a [u8]],
}

fn labels_of(object: &Object) -> &Labels {
    Labelled::of(object).expect("a series or a lens has labels").labels()
}

/// Returns the value of an entry, if its type has labels.
#[inline]
pub(crate) fn labelled(entry: &Entry) -> Option<Labelled<'_>> {
    entry.object().and_then(Labelled::of)
}
