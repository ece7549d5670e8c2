//! The counters of a shard that move most: a random sample of the moves in the last 30 to 60
//! seconds.
//!
//! **Each move is sampled with the same probability**, whatever its key and history. A busy key
//! therefore cannot stay unseen, and an idle one is never shown. Tracking all moves of some keys
//! would be exact for those but could miss the busiest key, which is the one of interest. Counts
//! are scaled by the sampling rate: the estimate of *m* moves has a standard deviation of √(*m* ×
//! sample). Commits are rare, and all are counted.
//!
//! The window consists of two halves, with one [`Summary`] for the current and one for the previous
//! half. Its bounds hold in each.

mod mover;
mod summary;

use crate::random::Random;
pub(crate) use mover::Mover;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use summary::{Sighting, Summary};

/// Length of half a window, in milliseconds.
pub(crate) const HALF_MS: u64 = 30_000;

/// The sampled moves of a shard's counters.
#[derive(Debug)]
pub(crate) struct Churn {
    /// Average number of moves per sampled one. At least 1.
    sample: u32,
    /// Moves until the next sampled one, inclusive. At least 1.
    left: u64,
    random: Random,
    /// Number of the half, counted from 1970, that `current` covers.
    half: u64,
    current: Summary,
    previous: Summary,
}

/// Moves of a counter within the window. Figures are estimates unless every move is sampled. Moves
/// before the key entered the summary are not included, except in `error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChurn {
    /// Its database.
    pub db: u8,
    /// Name of the key, truncated if it is long.
    pub name: Box<[u8]>,
    /// Whether the name is complete.
    pub is_whole: bool,
    mark: u64,
    /// Number of moves, up or down.
    pub moves: u64,
    /// Maximum number of further moves that were not counted.
    pub error: u64,
    /// Units moved, up or down.
    pub units: u64,
    /// Units by which commits moved the committed position, up or down.
    pub committed: u64,
}

impl KeyChurn {
    /// Share of the units that was never committed, because other moves cancelled it or it is still
    /// uncommitted. 0 to 1; 0 without moves.
    pub fn churn(&self) -> f64 {
        if self.units == 0 { 0.0 } else { self.cancelled() as f64 / self.units as f64 }
    }

    /// Anonymous identifier of database and name, stable for the life of the process: 16
    /// hexadecimal digits.
    ///
    /// A keyed hash, so that names cannot be guessed from it. It differs from the tables' hash,
    /// which must stay secret.
    pub fn id(&self) -> String {
        static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        format!("{:016x}", STATE.hash_one((self.mark, self.db, &self.name)))
    }

    /// Units that were never committed.
    pub fn cancelled(&self) -> u64 {
        self.units.saturating_sub(self.committed)
    }
}

impl Churn {
    /// Samples one of `sample` moves, which is at least 1.
    pub(crate) fn new(sample: u32, seed: u64) -> Self {
        let mut churn = Self {
            sample: sample.max(1),
            left: 1,
            random: Random::new(seed),
            half: 0,
            current: Summary::default(),
            previous: Summary::default(),
        };
        churn.left = churn.gap();
        churn
    }

    #[inline]
    pub(crate) fn see(&mut self, mover: &Mover<'_>, units: u64, now_ms: u64) {
        // Not in release builds: every move of a counter passes here, and only a sample depends on
        // it.
        debug_assert!(self.left > 0, "one of the moves to come is looked at");
        self.left -= 1;
        if self.left == 0 {
            self.look(mover, units, now_ms);
        }
    }

    pub(crate) fn see_commit(&mut self, mover: &Mover<'_>, units: u64, now_ms: u64) {
        self.turn_to(now_ms);
        // In the half where the counter was last seen; only the sum is reported.
        if !self.current.see_commit(mover, units) {
            self.previous.see_commit(mover, units);
        }
    }

    /// The moves of the busiest keys, in any order.
    pub(crate) fn keys(&mut self, now_ms: u64) -> Vec<KeyChurn> {
        self.turn_to(now_ms);
        let (lowest_now, lowest_before) = (self.current.lowest(), self.previous.lowest());
        let mut before: Vec<Option<Sighting<'_>>> = self.previous.sightings().map(Some).collect();
        let mut keys = Vec::new();
        for now in self.current.sightings() {
            let is_same = |before: &Sighting<'_>| {
                before.mark == now.mark
                    && (before.db, before.length, before.name) == (now.db, now.length, now.name)
            };
            let same = before.iter_mut().find(|before| before.as_ref().is_some_and(is_same));
            keys.push(match same.and_then(Option::take) {
                Some(before) => self.sum(&now, &before, 0),
                None => self.sum(
                    &now,
                    &Sighting { seen: 0, error: 0, units: 0, committed: 0, ..now },
                    lowest_before,
                ),
            });
        }
        let only_before = before.into_iter().flatten();
        keys.extend(only_before.map(|before| {
            self.sum(&before, &Sighting { seen: 0, error: 0, units: 0, committed: 0, ..before }, lowest_now)
        }));
        keys
    }

    fn sum(&self, one: &Sighting<'_>, other: &Sighting<'_>, unseen: u64) -> KeyChurn {
        let scale = u64::from(self.sample);
        KeyChurn {
            db: one.db,
            name: one.name.into(),
            is_whole: one.name.len() == one.length,
            mark: one.mark,
            moves: (one.seen + other.seen).saturating_mul(scale),
            error: (one.error + other.error + unseen).saturating_mul(scale),
            units: one.units.saturating_add(other.units).saturating_mul(scale),
            committed: one.committed.saturating_add(other.committed),
        }
    }

    #[cold]
    fn look(&mut self, mover: &Mover<'_>, units: u64, now_ms: u64) {
        self.left = self.gap();
        self.turn_to(now_ms);
        self.current.see(mover, units);
    }

    /// Switches to the half of `now_ms`. Clocks of threads differ slightly, so the previous half is
    /// accepted as current. After a clock change, all samples are discarded.
    fn turn_to(&mut self, now_ms: u64) {
        let half = now_ms / HALF_MS;
        if half == self.half || half.checked_add(1) == Some(self.half) {
            return;
        }
        if self.half.checked_add(1) == Some(half) {
            std::mem::swap(&mut self.current, &mut self.previous);
        } else {
            self.previous.clear();
        }
        self.current.clear();
        self.half = half;
    }

    /// Draws the number of moves until the next sampled one, inclusive: geometrically distributed
    /// with mean `sample`.
    fn gap(&mut self) -> u64 {
        if self.sample == 1 {
            return 1;
        }
        // Above 0, at most 1.
        let chance = ((self.random.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let unseen = 1.0 - 1.0 / f64::from(self.sample);
        // Casts of floats saturate.
        ((chance.ln() / unseen.ln()) as u64).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Churn, HALF_MS, KeyChurn, Mover};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn mover(key: &[u8]) -> Mover<'_> {
        Mover { db: 0, hash: crate::keyspace::hash(key), key }
    }

    fn of(churn: &mut Churn, key: &[u8], now_ms: u64) -> Option<(u64, u64, u64, u64)> {
        let found: Option<KeyChurn> = churn.keys(now_ms).into_iter().find(|found| *found.name == *key);
        found.map(|key| (key.moves, key.error, key.units, key.committed))
    }

    #[test]
    fn a_window_is_two_halves() {
        let mut churn = Churn::new(1, 1);
        let at = 10 * HALF_MS;
        churn.see(&mover(b"a"), 5, at);
        churn.see(&mover(b"a"), 5, at + HALF_MS - 1);
        assert_eq!(of(&mut churn, b"a", at), Some((2, 0, 10, 0)));
        churn.see_commit(&mover(b"a"), 3, at + HALF_MS);
        assert_eq!(
            of(&mut churn, b"a", at + HALF_MS),
            Some((2, 0, 10, 3)),
            "a key that moved before is still known"
        );
        churn.see(&mover(b"a"), 1, at + HALF_MS);
        churn.see(&mover(b"b"), 1, at + HALF_MS);
        assert_eq!(of(&mut churn, b"a", at + HALF_MS), Some((3, 0, 11, 3)));
        assert_eq!(of(&mut churn, b"a", at + 2 * HALF_MS), Some((1, 0, 1, 0)), "the first half is over");
        assert_eq!(of(&mut churn, b"a", at + 3 * HALF_MS), None);
        assert_eq!(of(&mut churn, b"b", at + 3 * HALF_MS), None);
    }

    #[test]
    fn a_thread_whose_clock_is_a_little_late_ends_no_half() {
        let mut churn = Churn::new(1, 1);
        churn.see(&mover(b"a"), 1, 5 * HALF_MS);
        churn.see(&mover(b"a"), 1, 5 * HALF_MS - 1);
        assert_eq!(of(&mut churn, b"a", 5 * HALF_MS), Some((2, 0, 2, 0)));
        assert_eq!(of(&mut churn, b"a", HALF_MS), None, "a clock that was set back is believed");
        churn.see(&mover(b"a"), 1, HALF_MS);
        assert_eq!(of(&mut churn, b"a", HALF_MS), Some((1, 0, 1, 0)));
    }

    #[test]
    fn the_error_of_the_half_in_which_a_key_was_not_counted_is_reported() {
        let mut churn = Churn::new(1, 1);
        for round in 0..3 {
            for number in 0..64_u8 {
                churn.see(&mover(&[number]), 1, round);
            }
        }
        churn.see(&mover(b"new"), 1, HALF_MS);
        assert_eq!(
            of(&mut churn, b"new", HALF_MS),
            Some((1, 3, 1, 0)),
            "it may have moved as often as the others"
        );
        assert_eq!(of(&mut churn, &[5], HALF_MS), Some((3, 0, 3, 0)), "the second half has a place for all");
    }

    #[test]
    fn churn_is_what_was_not_committed() {
        let mut key = KeyChurn {
            db: 0,
            name: Box::from(&b"k"[..]),
            is_whole: true,
            mark: 0,
            moves: 4,
            error: 0,
            units: 40,
            committed: 10,
        };
        assert_eq!((key.churn(), key.cancelled()), (0.75, 30));
        // The units are reserved in advance.
        key.committed = 50;
        assert_eq!((key.churn(), key.cancelled()), (0.0, 0));
        key.units = 0;
        assert_eq!((key.churn(), key.cancelled()), (0.0, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn every_move_is_looked_at_with_the_same_chance(seed in any::<u64>(), sample in 2..40_u32) {
            // Two alternating keys, which a regular choice could confuse; six standard deviations.
            let (moves, mut churn) = (60_000_u32, Churn::new(sample, seed));
            for number in 0..moves {
                churn.see(&mover(if number % 2 == 0 { b"even" } else { b"odd" }), 3, 0);
            }
            let keys: HashMap<_, _> = churn.keys(0).into_iter().map(|key| (key.name.clone(), key)).collect();
            let (expected, deviation) = (f64::from(moves / 2), (f64::from(moves / 2) * f64::from(sample)).sqrt());
            for name in [&b"even"[..], b"odd"] {
                let key = &keys[name];
                prop_assert!((key.moves as f64 - expected).abs() < 6.0 * deviation, "{key:?}");
                prop_assert_eq!(key.units, 3 * key.moves);
                prop_assert_eq!(key.error, 0);
            }
        }
    }
}
