//! A map from the ids of queries, which costs hardly more than what is in it.
//!
//! Ids ascend: a query is younger than all whose ids are smaller. So most insertions are at the end, and there they fill
//! one run after the other to the brim, where a balanced tree would leave nodes behind that are half empty.
//!
//! ```text
//! firsts    3          │ 140              │ 901
//! runs      3 4 7 … 139│ 140 141 … 880    │ 901 902
//!           RUN entries  RUN entries        room for more: the run doubles until it is full
//! ```
//!
//! A lookup is two binary searches. An insertion or removal moves what is behind it in its run, and now and then, when a run
//! comes or goes, what is behind that among the runs.

use crate::watch::watched_read::{Query, SharedQuery};
use tidemark_log::Lsn;

/// The most entries of a run.
const RUN: usize = 128;

/// What belongs to one query.
pub trait OfQuery {
    /// The query's id.
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
    /// For each run an id that is not above its first and above all in the run before.
    firsts: Vec<Lsn>,
    /// In order, none of them empty.
    runs: Vec<Vec<E>>,
    len: usize,
}

impl<E> Default for ById<E> {
    fn default() -> Self {
        Self { firsts: Vec::new(), runs: Vec::new(), len: 0 }
    }
}

impl<E: OfQuery> ById<E> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What belongs to a query.
    pub fn get(&self, id: Lsn) -> Option<&E> {
        let (run, at) = self.find(id).ok()?;
        Some(&self.runs[run][at])
    }

    /// As [`ById::get`], to be changed. Its id stays.
    pub fn get_mut(&mut self, id: Lsn) -> Option<&mut E> {
        let (run, at) = self.find(id).ok()?;
        Some(&mut self.runs[run][at])
    }

    /// Adds an entry, in place of the one of the same id if there is one, which is answered.
    pub fn insert(&mut self, entry: E) -> Option<E> {
        let (mut run, mut at) = match self.find(entry.id()) {
            Ok((run, at)) => return Some(std::mem::replace(&mut self.runs[run][at], entry)),
            Err(place) => place,
        };
        self.len += 1;
        if self.runs.is_empty() {
            self.put_run(0, entry.id(), Vec::new());
        } else if self.runs[run].len() == RUN {
            // Behind a full run a new one begins; in the middle of one there is to be room for more.
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

    /// Takes out what belongs to a query.
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

    /// All, by their ids.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.runs.iter().flatten()
    }

    /// All with ids behind `after`, by their ids.
    pub fn behind(&self, after: Lsn) -> impl Iterator<Item = &E> {
        let (run, at) = match self.find(after) {
            Ok((run, at)) => (run, at + 1),
            Err(place) => place,
        };
        // There is no run if there is no entry.
        let of_run = self.runs.get(run).map_or(&[][..], |run| &run[at..]);
        of_run.iter().chain(self.runs.iter().skip(run + 1).flatten())
    }

    /// Where the entry of an id is, by run and within it, or where it would be.
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
