//! The queries that read one key, found by what a change has touched of it.
//!
//! ```text
//! queries   [ others …  | by name … ]     a change of a field checks the others one by one,
//!                            ▲            and finds the rest by the field
//! by_name   field ─► queries ┘
//! ```

use crate::execute::noted::Noted;
use crate::keyspace::{Entry, Keyed, hash};
use crate::value::Type;
use crate::watch::part::Part;
use crate::watch::touched::Touched;
use crate::watch::watched_read::{Query, SharedQuery};
use smallvec::SmallVec;
use std::collections::HashMap;
use tidemark_log::Lsn;

/// A key that several queries read, or one query with further keys.
pub(in crate::watch) struct Watched {
    key: Box<[u8]>,
    queries: SmallVec<[SharedQuery; 1]>,
    by_name: Option<Box<ByName>>,
}

/// Queries of named elements: those at the end of `queries`.
struct ByName {
    /// Type of the elements. Queries of elements of another type, which the key cannot have
    /// meanwhile, are among the others.
    of: Type,
    /// By hash of the name. A collision only causes more queries to be checked.
    queries: HashMap<u64, SmallVec<[SharedQuery; 1]>, foldhash::fast::FixedState>,
    len: usize,
}

impl Keyed for Box<Watched> {
    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Watched {
    pub(in crate::watch) fn new(key: &[u8]) -> Self {
        Self { key: key.into(), queries: SmallVec::new(), by_name: None }
    }

    pub(in crate::watch) fn queries(&self) -> &[SharedQuery] {
        &self.queries
    }

    pub(in crate::watch) fn insert(&mut self, query: &SharedQuery) {
        let others = self.others();
        self.queries.push(query.clone());
        let Some(&Part::Elements { of, .. }) = query.part() else {
            let last = self.queries.len() - 1;
            self.queries.swap(others, last);
            return;
        };
        let by_name =
            self.by_name.get_or_insert_with(|| Box::new(ByName { of, queries: HashMap::default(), len: 0 }));
        if by_name.of == of {
            by_name.insert(query);
        } else {
            let last = self.queries.len() - 1;
            self.queries.swap(others, last);
        }
    }

    /// Removes a query. Returns whether it was present.
    pub(in crate::watch) fn remove(&mut self, query: &SharedQuery) -> bool {
        let Some(at) = self.queries.iter().position(|other| SharedQuery::ptr_eq(other, query)) else {
            return false;
        };
        let others = self.others();
        if at < others {
            // The last of the others takes its place, and a query of the rest takes that one's.
            self.queries.swap(at, others - 1);
            self.queries.swap_remove(others - 1);
        } else {
            self.queries.swap_remove(at);
            let by_name = self.by_name.as_mut().expect("a query behind the others is found by names");
            by_name.remove(query);
            self.by_name.take_if(|by_name| by_name.len == 0);
        }
        true
    }

    /// Notes the queries whose answer a change may have changed. Returns the number of the rest.
    /// `entry` returns the key's entry after the change.
    pub(in crate::watch) fn note<'e>(
        &self,
        touched: &Touched<'_>,
        entry: &impl Fn() -> Option<&'e Entry>,
        noted: &mut Vec<Noted>,
    ) -> usize {
        let mut is_concerned = |query: &SharedQuery, touched: &Touched<'_>| {
            let is_touched = query.is_touched(touched, entry);
            if is_touched {
                Query::note_touched(query, &self.key, touched, noted);
            }
            is_touched
        };
        let (others, rest) = self.queries.split_at(self.others());
        let all = asked_of(touched);
        let mut concerned = others.iter().filter(|query| is_concerned(query, all)).count();
        if let Some(by_name) = &self.by_name {
            // A query of several elements may be found for each, and counts once.
            let (mut found, mut names): (SmallVec<[Lsn; 4]>, _) = (SmallVec::new(), 0);
            let are_named = touched.each_name(by_name.of, rest.len(), |name, touched| {
                let before = found.len();
                let of_name = by_name.queries.get(&hash(name)).into_iter().flatten();
                found.extend(of_name.filter(|query| is_concerned(query, touched)).map(|query| query.id));
                names += usize::from(found.len() > before);
            });
            concerned += if are_named {
                if names > 1 {
                    found.sort_unstable();
                    found.dedup();
                }
                found.len()
            } else {
                rest.iter().filter(|query| is_concerned(query, all)).count()
            };
        }
        self.queries.len() - concerned
    }

    /// Returns the number of queries that are not found by name.
    fn others(&self) -> usize {
        self.queries.len() - self.by_name.as_ref().map_or(0, |by_name| by_name.len)
    }
}

impl ByName {
    fn insert(&mut self, query: &SharedQuery) {
        for hash in names(query) {
            let of_name = self.queries.entry(hash).or_default();
            if !of_name.iter().any(|other| SharedQuery::ptr_eq(other, query)) {
                of_name.push(query.clone());
            }
        }
        self.len += 1;
    }

    fn remove(&mut self, query: &SharedQuery) {
        for hash in names(query) {
            // A name that occurs twice among the arguments was removed the first time.
            let Some(of_name) = self.queries.get_mut(&hash) else { continue };
            of_name.retain(|other| !SharedQuery::ptr_eq(other, query));
            if of_name.is_empty() {
                self.queries.remove(&hash);
            }
        }
        self.len -= 1;
    }
}

/// Approximate bytes of a name in the index.
pub(in crate::watch) const NAME_BYTES: usize = 48;

/// Returns the hashes of the element names that a query uses.
pub(in crate::watch) fn names(query: &Query) -> impl Iterator<Item = u64> {
    let from = if let Some(&Part::Elements { from, .. }) = query.part() { from } else { usize::MAX };
    query.read.placed().into_iter().skip(from).map(hash)
}

/// Notes the only query of a key if a change may have changed its answer. Returns whether the
/// change cannot.
pub(in crate::watch) fn note_sole<'e>(
    query: &SharedQuery,
    key: &[u8],
    touched: &Touched<'_>,
    entry: &impl Fn() -> Option<&'e Entry>,
    noted: &mut Vec<Noted>,
) -> bool {
    let is_touched = query.is_touched(asked_of(touched), entry);
    if is_touched {
        Query::note_touched(query, key, touched, noted);
    }
    !is_touched
}

/// Returns what queries that are not found by name are checked against.
fn asked_of<'t, 'a>(touched: &'t Touched<'a>) -> &'t Touched<'a> {
    if touched.names_many() { &Touched::Everything } else { touched }
}
