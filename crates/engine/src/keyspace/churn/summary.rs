//! The most frequent keys of a stream, in bounded memory: the Space-Saving algorithm (Metwally,
//! Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT
//! 2005).
//!
//! [`PLACES`] keys have a counter each. A new key replaces the key with the lowest count and starts
//! from that count, which is its *error*: the key may have been seen up to that often before. After
//! *n* observations
//!
//! - the counts of all places add up to *n*, so that the lowest is at most *n* / [`PLACES`];
//! - a key with a place was seen at most as often as its count, and at least as often as its count
//!   less its error; no error exceeds the lowest count;
//! - a key without a place was seen at most as often as the lowest count: every key seen more often
//!   than *n* / [`PLACES`] has a place.

use super::mover::Mover;

/// Number of counted keys. Determines the cost of a lookup and the error.
pub(super) const PLACES: usize = 64;

/// Maximum bytes kept of a key's name.
const NAME_BYTES: usize = 128;

/// The most frequent keys. The three vectors are parallel.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Fingerprints; searched first, so stored separately.
    marks: Vec<u64>,
    counts: Vec<u64>,
    places: Vec<SummaryPlace>,
}

#[derive(Debug)]
struct SummaryPlace {
    db: u8,
    /// The key, or its first [`NAME_BYTES`].
    name: Box<[u8]>,
    /// Length of the key.
    length: usize,
    error: u64,
    units: u64,
    committed: u64,
}

/// Observations of a key since it got its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sighting<'s> {
    pub(super) mark: u64,
    pub(super) db: u8,
    pub(super) name: &'s [u8],
    /// Length of the key; the name may be truncated.
    pub(super) length: usize,
    pub(super) seen: u64,
    /// How often it may have been seen before.
    pub(super) error: u64,
    pub(super) units: u64,
    pub(super) committed: u64,
}

impl SummaryPlace {
    fn new(mover: &Mover<'_>, error: u64) -> Self {
        let name = Box::from(name_of(mover));
        Self { db: mover.db, name, length: mover.key.len(), error, units: 0, committed: 0 }
    }

    fn is_of(&self, mover: &Mover<'_>) -> bool {
        self.db == mover.db && self.length == mover.key.len() && *self.name == *name_of(mover)
    }
}

fn name_of<'k>(mover: &Mover<'k>) -> &'k [u8] {
    mover.key.get(..NAME_BYTES).unwrap_or(mover.key)
}

impl Summary {
    /// Counts a move of a key by `units`. O([`PLACES`]).
    pub(super) fn see(&mut self, mover: &Mover<'_>, units: u64) {
        let index = self.find(mover).unwrap_or_else(|| self.give_place(mover));
        if let (Some(count), Some(place)) = (self.counts.get_mut(index), self.places.get_mut(index)) {
            *count += 1;
            place.units = place.units.saturating_add(units);
        }
        debug_assert!(
            self.marks.len() == self.counts.len() && self.counts.len() == self.places.len(),
            "a place has a mark and a count"
        );
    }

    /// Counts units that a key has committed. Returns whether the key has a place.
    pub(super) fn see_commit(&mut self, mover: &Mover<'_>, units: u64) -> bool {
        let Some(place) = self.find(mover).and_then(|index| self.places.get_mut(index)) else { return false };
        place.committed = place.committed.saturating_add(units);
        true
    }

    /// Upper bound of the observations of a key without a place.
    pub(super) fn lowest(&self) -> u64 {
        if self.counts.len() < PLACES { 0 } else { self.counts.iter().copied().min().unwrap_or(0) }
    }

    /// All keys with a place.
    pub(super) fn sightings(&self) -> impl Iterator<Item = Sighting<'_>> {
        let counted = self.counts.iter().zip(&self.places);
        self.marks.iter().zip(counted).map(|(&mark, (&count, place))| Sighting {
            mark,
            db: place.db,
            name: &place.name,
            length: place.length,
            seen: count - place.error,
            error: place.error,
            units: place.units,
            committed: place.committed,
        })
    }

    pub(super) fn clear(&mut self) {
        self.marks.clear();
        self.counts.clear();
        self.places.clear();
    }

    fn find(&self, mover: &Mover<'_>) -> Option<usize> {
        let mark = mover.mark();
        let marked = self.marks.iter().enumerate().filter(|&(_, &other)| other == mark);
        marked
            .map(|(index, _)| index)
            .find(|&index| self.places.get(index).is_some_and(|place| place.is_of(mover)))
    }

    /// Assigns a place to a new key, with the previous holder's count as its error.
    fn give_place(&mut self, mover: &Mover<'_>) -> usize {
        if self.places.len() < PLACES {
            self.marks.push(mover.mark());
            self.counts.push(0);
            self.places.push(SummaryPlace::new(mover, 0));
            return self.places.len() - 1;
        }
        let lowest = self.counts.iter().enumerate().min_by_key(|&(_, &count)| count);
        let (index, count) = lowest.map_or((0, 0), |(index, &count)| (index, count));
        if let (Some(mark), Some(place)) = (self.marks.get_mut(index), self.places.get_mut(index)) {
            *mark = mover.mark();
            *place = SummaryPlace::new(mover, count);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::{Mover, NAME_BYTES, PLACES, Sighting, Summary};
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Numbered keys, some of which share a hash.
    fn with_mover<R>(number: u16, then: impl FnOnce(&Mover<'_>) -> R) -> R {
        let (key, hash) = (number.to_be_bytes(), u64::from(number / 3));
        then(&Mover { db: (number % 2) as u8, hash, key: &key })
    }

    fn sighting(summary: &Summary, number: u16) -> Option<Sighting<'_>> {
        let key = number.to_be_bytes();
        summary.sightings().find(|sighting| sighting.name == key && sighting.db == (number % 2) as u8)
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut summary = Summary::default();
        for round in 0..10 {
            for number in 0..PLACES as u16 {
                with_mover(number, |mover| summary.see(mover, round));
            }
        }
        with_mover(3, |mover| assert!(summary.see_commit(mover, 7)));
        with_mover(999, |mover| {
            assert!(!summary.see_commit(mover, 7), "a key without a slot gets none by this");
        });
        for number in 0..PLACES as u16 {
            let sighting = sighting(&summary, number).expect("there is a place for each");
            let committed = if number == 3 { 7 } else { 0 };
            assert_eq!(
                (sighting.seen, sighting.error, sighting.units, sighting.committed),
                (10, 0, 45, committed)
            );
        }
    }

    #[test]
    fn a_long_key_is_kept_in_part_and_distinguished_by_its_length() {
        let mut summary = Summary::default();
        let long = [b'k'; NAME_BYTES + 2];
        for length in [NAME_BYTES, NAME_BYTES + 1, NAME_BYTES + 2, NAME_BYTES + 1] {
            summary.see(&Mover { db: 0, hash: 1, key: &long[..length] }, 1);
        }
        let counts: Vec<_> = summary.sightings().map(|s| (s.name.len(), s.length, s.seen)).collect();
        assert_eq!(
            counts,
            [(NAME_BYTES, NAME_BYTES, 1), (NAME_BYTES, NAME_BYTES + 1, 2), (NAME_BYTES, NAME_BYTES + 2, 1)]
        );
    }

    /// Key numbers distributed as in real traffic: a few frequent, many rare, and runs of new ones.
    fn traffic() -> impl Strategy<Value = Vec<u16>> {
        let key = prop_oneof![3 => 0..20_u16, 2 => 0..500_u16, 1 => any::<u16>()];
        let burst = (any::<u16>(), 1..200_u16)
            .prop_map(|(from, count)| (0..count).map(|step| from.wrapping_add(step)).collect::<Vec<_>>());
        let part = prop_oneof![4 => key.prop_map(|key| vec![key]), 1 => burst];
        proptest::collection::vec(part, 0..300).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn counts_are_as_exact_as_the_algorithm_says(traffic in traffic()) {
            let mut summary = Summary::default();
            let mut exact = HashMap::<u16, u64>::new();
            for &number in &traffic {
                with_mover(number, |mover| summary.see(mover, 2));
                *exact.entry(number).or_default() += 1;
            }
            let lowest = summary.lowest();
            prop_assert!(lowest <= (traffic.len() / PLACES) as u64);
            let sum: u64 = summary.sightings().map(|sighting| sighting.seen + sighting.error).sum();
            prop_assert_eq!(sum, traffic.len() as u64);
            prop_assert!(summary.sightings().count() <= PLACES);
            for (&number, &times) in &exact {
                match sighting(&summary, number) {
                    Some(sighting) => {
                        prop_assert!(sighting.seen <= times && times <= sighting.seen + sighting.error);
                        prop_assert!(sighting.error <= lowest);
                        prop_assert_eq!(sighting.units, sighting.seen * 2);
                    }
                    None => prop_assert!(times <= lowest),
                }
            }
        }
    }
}
