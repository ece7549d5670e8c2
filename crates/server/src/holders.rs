//! Which connection a named subscription is delivered to: one at a time, the one that asked last.

use crate::target::Target;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_log::Lsn;

/// A connection, by its worker and within it.
pub(crate) type Holder = (usize, Target);

/// Tells one time that a name was taken from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenure(u64);

/// That a connection has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenancy {
    pub(crate) holder: Holder,
    pub(crate) tenure: Tenure,
    /// What the name stands for: one that has ended may begin again as another.
    pub(crate) query: Lsn,
}

/// The connections that named subscriptions are delivered to.
#[derive(Debug, Default)]
pub(crate) struct Holders(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    by_name: HashMap<Box<[u8]>, Tenancy>,
    /// How many times a name was taken.
    taken: u64,
}

impl Holders {
    /// Lets a connection have a name that stands for a query; from when on, and who has had it so far.
    pub(crate) fn take(&self, name: &[u8], holder: Holder, query: Lsn) -> (Tenure, Option<Tenancy>) {
        let mut held = self.lock();
        held.taken += 1;
        let tenure = Tenure(held.taken);
        (tenure, held.by_name.insert(name.into(), Tenancy { holder, tenure, query }))
    }

    /// Ends that a connection has a name, unless it was taken again since.
    pub(crate) fn release(&self, name: &[u8], tenure: Tenure) {
        let mut held = self.lock();
        if held.by_name.get(name).is_some_and(|last| last.tenure == tenure) {
            held.by_name.remove(name);
        }
    }

    /// Ends that anybody has a name that stands for a query; who had it.
    pub(crate) fn evict(&self, name: &[u8], query: Lsn) -> Option<Tenancy> {
        let mut held = self.lock();
        let last = held.by_name.get(name).copied().filter(|last| last.query == query)?;
        held.by_name.remove(name);
        Some(last)
    }

    /// Who has a name.
    pub(crate) fn of(&self, name: &[u8]) -> Option<Tenancy> {
        self.lock().by_name.get(name).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_asked_last_has_the_name() {
        let (holders, query, later) = (Holders::default(), Lsn(7), Lsn(9));
        let (one, other) = ((0, Target { slot: 1, client: 1 }), (1, Target { slot: 1, client: 2 }));
        let (first, before) = holders.take(b"n", one, query);
        assert_eq!(before, None);
        let (second, before) = holders.take(b"n", other, query);
        assert_eq!(before, Some(Tenancy { holder: one, tenure: first, query }));
        let (third, before) = holders.take(b"n", one, later);
        assert_eq!(before, Some(Tenancy { holder: other, tenure: second, query }));
        holders.release(b"n", first);
        holders.release(b"n", second);
        let last = Tenancy { holder: one, tenure: third, query: later };
        assert_eq!(holders.of(b"n"), Some(last), "it was taken again since");
        assert_eq!(holders.evict(b"n", query), None, "it stands for something else by now");
        assert_eq!(holders.evict(b"n", later), Some(last));
        assert_eq!(holders.of(b"n"), None);
        let (fourth, _) = holders.take(b"n", other, later);
        holders.release(b"n", fourth);
        assert_eq!(holders.of(b"n"), None);
    }
}
