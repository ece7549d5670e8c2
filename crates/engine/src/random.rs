//! Randomness for choices that only a reply shows. A choice that changes state is logged as its
//! result.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Increment of the generator's state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Source of secret bytes: fills the whole buffer with bytes that no one can predict.
pub type SecretSource = Box<dyn Fn(&mut [u8]) -> io::Result<()> + Send + Sync>;

/// The random source that all threads share. Written by hand, because a generator whose state is a
/// counter advances with one atomic addition, without a lock or a state for each thread.
pub(crate) struct Chance {
    /// State of the shared sequence; each number goes to one thread.
    sequence: AtomicU64,
    secrets: SecretSource,
}

impl Chance {
    /// Creates the sequence of a seed, with the system's source of secrets.
    pub(crate) fn new(seed: u64) -> Self {
        let secrets =
            |bytes: &mut [u8]| getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()));
        Self { sequence: AtomicU64::new(seed), secrets: Box::new(secrets) }
    }

    pub(crate) fn with_secrets(self, secrets: SecretSource) -> Self {
        Self { secrets, ..self }
    }

    pub(crate) fn next(&self) -> u64 {
        mix(self.sequence.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// Returns `N` secret bytes.
    pub(crate) fn secret<const N: usize>(&self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        (self.secrets)(&mut bytes)?;
        Ok(bytes)
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chance").finish_non_exhaustive()
    }
}

/// A reproducible random sequence: `SplitMix64` (Steele, Lea, Flood 2014), as in [`Chance`].
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a number below `bound`, which must not be 0. The probabilities differ by less than
    /// `bound` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a number below zero does not exist");
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Visits `count` items chosen uniformly with replacement, until `visit` fails. Visits none if
    /// there are no items.
    pub(crate) fn repeat<T: Copy, E>(
        &mut self,
        items: &[T],
        count: usize,
        mut visit: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        if items.is_empty() {
            return Ok(());
        }
        (0..count).try_for_each(|_| visit(items[self.below(items.len())]))
    }

    /// Selects `wanted` of `len` items (all, if there are fewer) uniformly and in order. One pass:
    /// selection sampling (Knuth, volume 2, algorithm 3.4.2 S).
    pub(crate) fn select<T>(&mut self, items: impl Iterator<Item = T>, len: usize, wanted: usize) -> Vec<T> {
        let mut chosen = Vec::with_capacity(wanted.min(len));
        let mut left = len;
        for item in items {
            if chosen.len() == wanted || left == 0 {
                break;
            }
            if self.below(left) < wanted - chosen.len() {
                chosen.push(item);
            }
            left -= 1;
        }
        assert_eq!(chosen.len(), wanted.min(len), "the iterator has {len} items");
        chosen
    }
}

#[inline]
fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_has_the_size_asked_for_and_no_item_twice() {
        let mut random = Random::new(7);
        for wanted in 0..12 {
            let chosen = random.select(0..10, 10, wanted);
            assert_eq!(chosen.len(), wanted.min(10));
            assert!(chosen.is_sorted_by(|one, next| one < next));
        }
    }

    #[test]
    fn every_item_is_selected_about_equally_often() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            random.select(0..10, 10, 3).into_iter().for_each(|item: usize| counts[item] += 1);
        }
        assert!(counts.iter().all(|count| (2_700..3_300).contains(count)), "{counts:?}");
    }
}
