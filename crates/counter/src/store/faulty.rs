//! Deterministic fault injection for tests of code that uses a store.

use super::{Batch, Claim, Error, Receipt, Rejected, Store};

/// Probabilities of faults, in percent of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// The call does not reach the store.
    pub lost_requests: u8,
    /// The store carries out the call, and its answer is lost.
    pub lost_answers: u8,
    /// The store rejects one of a batch's changes, and so the batch.
    pub refusals: u8,
}

/// A store with faults injected in front of it. The same seed and the same calls have the same
/// faults.
///
/// ```
/// use tidemark_counter::store::{Faults, Faulty, Memory, Store};
///
/// let mut store = Faulty::new(Memory::default(), Faults { lost_answers: 100, ..Faults::default() }, 1);
/// assert!(store.claim("billing").is_err());
/// store.set_faults(Faults::default());
/// assert_eq!(store.claim("billing").unwrap().epoch, 2); // the first claim was made all the same
/// ```
#[derive(Debug)]
pub struct Faulty<S> {
    store: S,
    faults: Faults,
    random: u64,
    /// Writer and number of the last batch that the store has applied.
    applied: Option<(String, u64)>,
}

impl<S: Store> Faulty<S> {
    /// Wraps `store` with `faults`.
    pub fn new(store: S, faults: Faults, seed: u64) -> Self {
        Self { store, faults, random: seed ^ 0x9E37_79B9_7F4A_7C15, applied: None }
    }

    /// Replaces the faults.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Returns a random number below `bound`, by `SplitMix64`.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    fn happens(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut S) -> Result<T, Error>) -> Result<T, Error> {
        if self.happens(self.faults.lost_requests) {
            return Err(Error::Unavailable("the request was lost".into()));
        }
        let answer = call(&mut self.store);
        if self.happens(self.faults.lost_answers) {
            return Err(Error::Unavailable("the answer was lost".into()));
        }
        answer
    }
}

impl<S: Store> Store for Faulty<S> {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        self.call(|store| store.claim(writer))
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        // A duplicate is recognized before its changes are checked.
        let is_known = self
            .applied
            .as_ref()
            .is_some_and(|(writer, sequence)| *writer == batch.writer && *sequence == batch.sequence);
        let is_refused = self.happens(self.faults.refusals) && !is_known && !batch.deltas.is_empty();
        let index = self.below(batch.deltas.len() as u64) as usize;
        let mut is_applied = false;
        let answer = self.call(|store| {
            if is_refused {
                return Err(Error::Rejected(vec![Rejected { index, reason: "refused at random".into() }]));
            }
            let answer = store.commit(batch);
            is_applied = answer.is_ok();
            answer
        });
        if is_applied {
            self.applied = Some((batch.writer.clone(), batch.sequence));
        }
        answer
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        self.call(|store| store.load(keys))
    }

    fn max_deltas(&self) -> usize {
        self.store.max_deltas()
    }
}
