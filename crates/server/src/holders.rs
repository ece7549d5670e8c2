//! Which connection a named subscription is delivered to: one at a time, the one that asked last.

use crate::inbox::Target;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection, by its worker and within it.
pub(crate) type Holder = (usize, Target);

/// The connections that named subscriptions are delivered to.
#[derive(Debug, Default)]
pub(crate) struct Holders(Mutex<HashMap<Box<[u8]>, Holder>>);

impl Holders {
    /// Lets a connection have a name; the one that has had it so far, if that is another.
    pub(crate) fn take(&self, name: &[u8], holder: Holder) -> Option<Holder> {
        self.lock().insert(name.into(), holder).filter(|before| *before != holder)
    }

    /// Ends that a connection has a name, unless another has it by now.
    pub(crate) fn release(&self, name: &[u8], holder: Holder) {
        let mut holders = self.lock();
        if holders.get(name) == Some(&holder) {
            holders.remove(name);
        }
    }

    /// Who has a name.
    pub(crate) fn of(&self, name: &[u8]) -> Option<Holder> {
        self.lock().get(name).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Holder>> {
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
        assert_eq!(holders.take(b"n", one), None);
        assert_eq!(holders.take(b"n", one), None, "it has it");
        assert_eq!(holders.take(b"n", other), Some(one));
        holders.release(b"n", one);
        assert_eq!(holders.of(b"n"), Some(other), "it is the other's");
        holders.release(b"n", other);
        assert_eq!(holders.of(b"n"), None);
    }
}
