//! The interface of stores, an in-memory store, and one that injects faults.

mod batch;
mod claim;
mod error;
mod faulty;
mod memory;
mod writer;

pub use batch::{Batch, Delta};
pub use claim::{Claim, Receipt};
pub use error::{Error, Rejected};
pub use faulty::{Faults, Faulty};
pub use memory::Memory;
pub use writer::{WRITER_BYTES_MAX, check_writer};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store of counters' committed positions, for one writer.
///
/// # Exactly once
/// For each writer, a store keeps its *epoch* (a fencing token) and the *sequence number* of the
/// last applied batch. [`claim`](Self::claim) takes over a writer's name: it raises the epoch, and
/// from then on batches of lower epochs are refused, however late they arrive. The batch after the
/// last one is applied. A repetition of the last one is answered with [`Receipt::Duplicate`] and
/// changes nothing, so a batch whose acknowledgement was lost is resent unchanged.
///
/// A batch is applied completely or not at all, together with its number.
///
/// Remote stores connect at the first call, and again after a connection is lost; a failed call is
/// simply repeated.
pub trait Store: Send {
    /// Takes over `writer`, a name that [`check_writer`] accepts: its previous owner can write no
    /// more.
    ///
    /// # Errors
    /// [`Error::Refused`]. With [`Error::Unavailable`] nothing is claimed or, if the answer was
    /// lost, an epoch that is never used.
    fn claim(&mut self, writer: &str) -> Result<Claim, Error>;

    /// Applies a batch. Blocks until the store has answered, or its own deadline has passed.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the batch may have been applied or not, and must be resent
    /// unchanged. All others: it has not been applied.
    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error>;

    /// Returns the stored positions of these keys, in their order; `None` for a key that never had
    /// a commit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error>;

    /// Returns the most changes that a batch may have; a larger one fails with [`Error::TooLarge`].
    fn max_deltas(&self) -> usize {
        usize::MAX
    }
}

/// A store that several callers share. Calls are serialized: each waits for the current one, even
/// if the store does not answer. A caller that keeps a clone can read the store, or set its faults,
/// while it is in use.
///
/// A store that has panicked is still used (lock poisoning is ignored): consistency of half-done
/// calls is the store's own matter, and an unanswered batch is resent under its number.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tidemark_counter::store::{Faults, Faulty, Memory, Store};
///
/// let store = Arc::new(Mutex::new(Faulty::new(Memory::default(), Faults::default(), 1)));
/// let mut used = store.clone();
/// assert!(used.claim("billing").is_ok());
/// store.lock().unwrap().set_faults(Faults { lost_requests: 100, ..Faults::default() });
/// assert!(used.claim("billing").is_err());
/// ```
impl<S: Store> Store for Arc<Mutex<S>> {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        lock(self).claim(writer)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        lock(self).commit(batch)
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        lock(self).load(keys)
    }

    fn max_deltas(&self) -> usize {
        lock(self).max_deltas()
    }
}

fn lock<S>(store: &Mutex<S>) -> MutexGuard<'_, S> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Panics at its first claim, and takes three changes in a batch.
    #[derive(Default)]
    struct Moody {
        memory: Memory,
        claims: u32,
    }

    impl Store for Moody {
        fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
            self.claims += 1;
            assert_ne!(self.claims, 1, "the first claim");
            self.memory.claim(writer)
        }

        fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
            self.memory.commit(batch)
        }

        fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
            self.memory.load(keys)
        }

        fn max_deltas(&self) -> usize {
            3
        }
    }

    #[test]
    fn a_shared_store_is_one_store_with_its_own_bound_and_outlives_its_panics() {
        let (mut first, mut second) = {
            let store = Arc::new(Mutex::new(Moody::default()));
            (store.clone(), store)
        };
        assert!(catch_unwind(AssertUnwindSafe(|| first.claim("w"))).is_err());
        let claim = first.claim("w").unwrap();
        let deltas = vec![Delta { key: (*b"a").into(), amount: 2 }];
        let batch = Batch { writer: "w".into(), epoch: claim.epoch, sequence: 1, deltas };
        assert_eq!(first.commit(&batch).unwrap(), Receipt::Applied);
        assert_eq!(second.commit(&batch).unwrap(), Receipt::Duplicate);
        assert_eq!(second.load(&[b"a", b"b"]).unwrap(), [Some(2), None]);
        assert_eq!(second.max_deltas(), 3);
    }

    #[test]
    fn a_bound_is_seen_through_faults() {
        assert_eq!(Faulty::new(Moody::default(), Faults::default(), 1).max_deltas(), 3);
    }
}
