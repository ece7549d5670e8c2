//! A map by query id with little overhead per entry.
//!
//! Ids ascend: new queries have the largest. So most insertions are at the end, where they fill one
//! run after the other completely; a balanced tree would leave half-empty nodes.
//!
//! ```text
//! firsts    3          │ 140              │ 901
//! runs      3 4 7 … 139│ 140 141 … 880    │ 901 902
//!           RUN entries  RUN entries        room for more: the run doubles until it is full
//! ```
//!
//! A lookup is two binary searches. An insertion or removal moves the later entries of its run and,
//! when a run is added or removed, the later runs.

use crate::watch::watched_read::{Query, SharedQuery};
use tidemark_log::Lsn;

/// Most entries of a run.
const RUN: usize = 128;

/// An entry that belongs to one query.
pub trait OfQuery {
    /// Returns the query's id.
    fn id(&self) -> Lsn;
}

impl OfQuery for SharedQuery {
    fn id(&self) -> Lsn {
        Query::id(self)
    }
}

impl<T> OfQuery for (Lsn, T) {
    fn id(&self) -> Lsn {
        self.0
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct ById<E> {
    /// For each run, an id not above its first and above all of the run before.
    firsts: Vec<Lsn>,
    /// Runs in order, none of them empty.
    runs: Vec<Vec<E>>,
    len: usize,
}

impl<E> Default for ById<E> {
    fn default() -> Self {
        Self { firsts: Vec::new(), runs: Vec::new(), len: 0 }
    }
}

impl<E: OfQuery> ById<E> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the entry of a query.
    pub fn get(&self, id: Lsn) -> Option<&E> {
        let (run, at) = self.find(id).ok()?;
        Some(&self.runs[run][at])
    }

    /// Returns the entry of a query for modification. Its id must not change.
    pub fn get_mut(&mut self, id: Lsn) -> Option<&mut E> {
        let (run, at) = self.find(id).ok()?;
        Some(&mut self.runs[run][at])
    }

    /// Adds an entry. Returns the entry of the same id that it replaces, if there is one.
    pub fn insert(&mut self, entry: E) -> Option<E> {
        let (mut run, mut at) = match self.find(entry.id()) {
            Ok((run, at)) => return Some(std::mem::replace(&mut self.runs[run][at], entry)),
            Err(place) => place,
        };
        self.len += 1;
        if self.runs.is_empty() {
            self.put_run(0, entry.id(), Vec::new());
        } else if self.runs[run].len() == RUN {
            // After a full run a new one begins; a run that fills up in the middle is split in
            // half.
            let kept = if at == RUN { RUN } else { RUN / 2 };
            let behind = self.runs[run].split_off(kept);
            self.runs[run].shrink_to_fit();
            let first = behind.first().map_or(entry.id(), E::id);
            self.put_run(run + 1, first, behind);
            if at >= kept {
                (run, at) = (run + 1, at - kept);
            }
        }
        self.firsts[run] = self.firsts[run].min(entry.id());
        self.runs[run].insert(at, entry);
        None
    }

    /// Removes and returns the entry of a query.
    pub fn remove(&mut self, id: Lsn) -> Option<E> {
        let (number, at) = self.find(id).ok()?;
        let run = &mut self.runs[number];
        let removed = run.remove(at);
        self.len -= 1;
        if run.is_empty() {
            self.runs.remove(number);
            self.firsts.remove(number);
        } else if run.len() <= run.capacity() / 4 {
            run.shrink_to(run.len() * 2);
        }
        Some(removed)
    }

    /// Iterates over all entries in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.runs.iter().flatten()
    }

    /// Iterates over the entries with ids above `after`, in order.
    pub fn behind(&self, after: Lsn) -> impl Iterator<Item = &E> {
        let (run, at) = match self.find(after) {
            Ok((run, at)) => (run, at + 1),
            Err(place) => place,
        };
        // There is no run if there is no entry.
        let of_run = self.runs.get(run).map_or(&[][..], |run| &run[at..]);
        of_run.iter().chain(self.runs.iter().skip(run + 1).flatten())
    }

    /// Returns the run and position of an id's entry, or where it would be inserted.
    fn find(&self, id: Lsn) -> Result<(usize, usize), (usize, usize)> {
        let run = self.firsts.partition_point(|first| *first <= id).saturating_sub(1);
        let Some(entries) = self.runs.get(run) else { return Err((0, 0)) };
        match entries.binary_search_by_key(&id, E::id) {
            Ok(at) => Ok((run, at)),
            Err(at) => Err((run, at)),
        }
    }

    fn put_run(&mut self, number: usize, first: Lsn, run: Vec<E>) {
        self.firsts.insert(number, first);
        self.runs.insert(number, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn filled(ids: impl IntoIterator<Item = u64>) -> ById<(Lsn, u64)> {
        let mut by_id = ById::default();
        ids.into_iter().for_each(|id| assert_eq!(by_id.insert((Lsn(id), id)), None));
        by_id
    }

    #[test]
    fn ids_that_ascend_fill_what_they_take() {
        let by_id = filled(0..1000 * RUN as u64);
        assert_eq!(by_id.runs.len(), 1000);
        assert!(by_id.runs.iter().all(|run| run.len() == RUN && run.capacity() == RUN));
    }

    #[test]
    fn what_has_left_takes_nothing() {
        let mut by_id = filled(0..10 * RUN as u64);
        for id in (0..10 * RUN as u64).filter(|id| !id.is_multiple_of(64)) {
            assert_eq!(by_id.remove(Lsn(id)), Some((Lsn(id), id)));
        }
        assert!(by_id.runs.iter().all(|run| run.capacity() <= 8), "{by_id:?}");
        for id in (0..10 * RUN as u64).step_by(64) {
            by_id.remove(Lsn(id));
        }
        assert!(by_id.is_empty() && by_id.runs.is_empty() && by_id.firsts.is_empty());
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..3_u8, 0..700_u64), 0..2000)) {
            let (mut by_id, mut model) = (filled((0..700).step_by(2)), BTreeMap::new());
            model.extend((0..700).step_by(2).map(|id| (id, id)));
            for (number, (step, id)) in (1000..).zip(steps) {
                match step {
                    0 => {
                        let replaced = by_id.insert((Lsn(id), number));
                        prop_assert_eq!(replaced.map(|it| it.1), model.insert(id, number));
                    }
                    1 => prop_assert_eq!(by_id.remove(Lsn(id)).map(|it| it.1), model.remove(&id)),
                    _ => {
                        let behind: Vec<u64> = by_id.behind(Lsn(id)).map(|it| it.0.0).collect();
                        let expected: Vec<u64> = model.range(id + 1..).map(|(id, _)| *id).collect();
                        prop_assert_eq!(behind, expected);
                        prop_assert_eq!(by_id.get(Lsn(id)).map(|it| it.1), model.get(&id).copied());
                        prop_assert_eq!(by_id.get_mut(Lsn(id)).map(|it| it.1), model.get(&id).copied());
                    }
                }
                prop_assert_eq!(by_id.len(), model.len());
            }
            let all: Vec<(u64, u64)> = by_id.iter().map(|it| (it.0.0, it.1)).collect();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }
}
