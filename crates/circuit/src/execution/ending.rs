//! What is to end before its circuit does.
#![allow(unsafe_code, reason = "what ends calls code of users, which is for the circuit's context only")]

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// What has to be told that it ends.
pub(crate) trait Ending: Send + Sync {
    /// Ends it, unless it has ended before.
    ///
    /// # Safety
    ///
    /// In the circuit's context, between two deliveries.
    unsafe fn end(self: Arc<Self>);

    /// Lets go of it without a word: the circuit has ended, and nobody could run what it would say.
    ///
    /// # Safety
    ///
    /// As for `end`.
    unsafe fn forget(self: Arc<Self>);
}

/// What is open in a circuit, in the order in which it was opened. Takes one word while there is nothing.
#[derive(Default)]
#[allow(clippy::box_collection, reason = "most circuits have none of it, and are to be small")]
pub(crate) struct Endings(Option<Box<VecDeque<Weak<dyn Ending>>>>);

impl Endings {
    pub(crate) fn push(&mut self, open: Weak<dyn Ending>) {
        push_living(self.0.get_or_insert_default(), open);
    }

    /// Takes the oldest out that is still there.
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

    /// Whether there is nothing, or nothing any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|all| all.iter().all(|open| open.strong_count() == 0))
    }
}

/// Puts one more behind the others, and now and then forgets those that are gone. Takes no more room than a few times what the
/// living did, and costs the same however many there are.
pub(crate) fn push_living<T: ?Sized>(all: &mut VecDeque<Weak<T>>, one: Weak<T>) {
    if all.len() == all.capacity() {
        let looked_at = all.len();
        all.retain(|one| one.strong_count() > 0);
        // Before they are looked at again, half as many have to come as there were.
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
    /// Would not come to an end in reasonable time if each that comes had the others looked at.
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
