//! Components that end before their circuit does.
#![allow(unsafe_code, reason = "what ends calls code of users, which is for the circuit's context only")]

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// A component that is notified when it ends.
pub(crate) trait Ending: Send + Sync {
    /// Ends it, unless it has already ended.
    ///
    /// # Safety
    ///
    /// Called in the circuit's context, between two deliveries.
    unsafe fn end(self: Arc<Self>);

    /// Releases it without a notification: the circuit has ended and could not run the callback.
    ///
    /// # Safety
    ///
    /// As for `end`.
    unsafe fn forget(self: Arc<Self>);
}

/// Open components of a circuit, in the order in which they were opened. One word while there are
/// none.
#[derive(Default)]
#[allow(clippy::box_collection, reason = "most circuits have none of it, and are to be small")]
pub(crate) struct Endings(Option<Box<VecDeque<Weak<dyn Ending>>>>);

impl Endings {
    pub(crate) fn push(&mut self, open: Weak<dyn Ending>) {
        push_living(self.0.get_or_insert_default(), open);
    }

    /// Removes and returns the oldest that still exists.
    pub(crate) fn next(&mut self) -> Option<Arc<dyn Ending>> {
        let all = self.0.as_mut()?;
        while let Some(open) = all.pop_front() {
            if let Some(open) = open.upgrade() {
                return Some(open);
            }
        }
        self.0 = None;
        None
    }

    /// Returns whether none is left that still exists.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|all| all.iter().all(|open| open.strong_count() == 0))
    }
}

/// Appends one, and from time to time removes those that are gone. Needs at most a few times the
/// memory of the living. Amortised O(1).
pub(crate) fn push_living<T: ?Sized>(all: &mut VecDeque<Weak<T>>, one: Weak<T>) {
    if all.len() == all.capacity() {
        let looked_at = all.len();
        all.retain(|one| one.strong_count() > 0);
        // At least half as many must be added as were scanned before the next scan.
        all.reserve(looked_at / 2);
    }
    all.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Open;

    impl Ending for Open {
        unsafe fn end(self: Arc<Self>) {}

        unsafe fn forget(self: Arc<Self>) {}
    }

    #[test]
    fn what_is_gone_takes_no_room() {
        let mut endings = Endings::default();
        let kept: Vec<Arc<dyn Ending>> = (0..10_000)
            .filter_map(|number| {
                let open: Arc<dyn Ending> = Arc::new(Open);
                endings.push(Arc::downgrade(&open));
                (number % 1000 == 0).then_some(open)
            })
            .collect();
        assert!(endings.0.as_ref().is_some_and(|all| all.capacity() < 100));
        assert!(!endings.is_empty());
        for open in &kept {
            assert!(endings.next().is_some_and(|next| Arc::ptr_eq(&next, open)));
        }
        assert!(endings.is_empty() && endings.next().is_none());
    }
    /// Takes far too long if each addition scans the others.
    #[test]
    fn one_that_comes_and_goes_among_many_costs_little() {
        let mut all = VecDeque::new();
        let mut kept = Vec::new();
        while all.len() < 1 << 19 || all.capacity() - all.len() > 1 {
            let one = Arc::new(());
            push_living(&mut all, Arc::downgrade(&one));
            kept.push(one);
        }
        for _ in 0..1 << 19 {
            push_living(&mut all, Arc::downgrade(&Arc::new(())));
        }
        assert!(all.iter().filter_map(Weak::upgrade).eq(kept));
    }
}
