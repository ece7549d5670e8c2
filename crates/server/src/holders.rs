//! Which connection a named subscription is delivered to: one at a time, the one that asked last.

use crate::target::Target;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection, by its worker and within it.
pub(crate) type Holder = (usize, Target);

/// Tells one time that a name was taken from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenure(u64);

/// The connections that named subscriptions are delivered to.
#[derive(Debug, Default)]
pub(crate) struct Holders(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    by_name: HashMap<Box<[u8]>, (Holder, Tenure)>,
    /// How many times a name was taken.
    taken: u64,
}

impl Holders {
    /// Lets a connection have a name; from when on, and who has had it so far.
    pub(crate) fn take(&self, name: &[u8], holder: Holder) -> (Tenure, Option<(Holder, Tenure)>) {
        let mut held = self.lock();
        held.taken += 1;
        let tenure = Tenure(held.taken);
        (tenure, held.by_name.insert(name.into(), (holder, tenure)))
    }

    /// Ends that a connection has a name, unless it was taken again since.
    pub(crate) fn release(&self, name: &[u8], tenure: Tenure) {
        let mut held = self.lock();
        if held.by_name.get(name).is_some_and(|(_, last)| *last == tenure) {
            held.by_name.remove(name);
        }
    }

    /// Ends that anybody has a name; who had it.
    pub(crate) fn evict(&self, name: &[u8]) -> Option<(Holder, Tenure)> {
        self.lock().by_name.remove(name)
    }

    /// Who has a name.
    pub(crate) fn of(&self, name: &[u8]) -> Option<(Holder, Tenure)> {
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
        let holders = Holders::default();
        let (one, other) = ((0, Target { slot: 1, client: 1 }), (1, Target { slot: 1, client: 2 }));
        let (first, before) = holders.take(b"n", one);
        assert_eq!(before, None);
        let (second, before) = holders.take(b"n", other);
        assert_eq!(before, Some((one, first)));
        let (third, before) = holders.take(b"n", one);
        assert_eq!(before, Some((other, second)));
        holders.release(b"n", first);
        holders.release(b"n", second);
        assert_eq!(holders.of(b"n"), Some((one, third)), "it was taken again since");
        holders.release(b"n", third);
        assert_eq!((holders.of(b"n"), holders.evict(b"n")), (None, None));
    }
}
