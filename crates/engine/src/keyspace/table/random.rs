//! Uniform random choice of a table's entry.
//!
//! ```text
//! number ─► bucket and slot (every chain as long as the longest) ─► entry, or another number
//! ```
//!
//! Choosing a random bucket and then an entry in it would favour entries of sparse buckets.
//! Instead, a draw chooses among all slots and repeats if the slot is empty (rejection sampling):
//! every entry is in exactly one slot, so all are equally likely.
//!
//! # Cost
//!
//! A draw examines `S · buckets / entries` slots on average, where `S` is the number of slots of
//! the longest chain: 6, 12 or 18, and 24 above a million entries. That is 4 to 9 slots in a table
//! that has grown. A table keeps at least one entry per 16 buckets, and chains are minimal; after
//! mass deletion, just before the table shrinks, the cost is therefore `16 · S`, about 100. A table
//! with fewer than `2 · S` entries walks to the entry of a random rank instead, over at most
//! `32 · S` buckets. The walk also ends a draw after as many misses as there are buckets, so a draw
//! ends for every sequence of random numbers.

use super::{Bucket, Keyed, SLOTS, Table};

impl<E: Keyed> Table<E> {
    /// Returns a uniformly chosen entry; `None` if the table is empty. `random` must return uniform
    /// `u64` values.
    ///
    /// O(1) expected; see the module `random` for the constants.
    pub fn random(&self, mut random: impl FnMut() -> u64) -> Option<&E> {
        let width = SLOTS * (1 + self.chained.len());
        let buckets = self.bucket_count();
        if self.len >= 2 * width {
            for _ in 0..buckets {
                let place = below(random(), buckets * width);
                let entry = self.bucket_at(place / width).entry_at(place % width);
                if entry.is_some() {
                    return entry;
                }
            }
        }
        if self.is_empty() { None } else { self.iter().nth(below(random(), self.len)) }
    }

    /// Number of buckets that a scan visits.
    fn bucket_count(&self) -> usize {
        self.next.len() + self.buckets.len() - self.next.len() / 2
    }

    /// The bucket that a scan visits at this position; during growth, moved buckets come first.
    fn bucket_at(&self, index: usize) -> &Bucket<E> {
        match index.checked_sub(self.next.len()) {
            None => &self.next[index],
            Some(behind) => &self.buckets[self.next.len() / 2 + behind],
        }
    }
}

impl<E> Bucket<E> {
    /// Entry in a slot of the chain, counted from its first bucket.
    fn entry_at(&self, slot: usize) -> Option<&E> {
        let mut bucket = self;
        for _ in 0..slot / SLOTS {
            bucket = bucket.overflow.as_deref()?;
        }
        bucket.slots[slot % SLOTS].as_ref()
    }
}

/// Maps a uniform `u64` to a number below `bound`.
fn below(random: u64, bound: usize) -> usize {
    ((u128::from(random) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::super::super::{Entry, Payload, hash};
    use super::*;
    use crate::random::Random;
    use std::collections::{BTreeMap, HashMap};

    fn insert(table: &mut Table<Entry>, number: usize) {
        let key = number.to_le_bytes();
        table.insert(hash(&key), Entry::new(&key, Payload::Int(0), None));
    }

    fn remove(table: &mut Table<Entry>, number: usize) {
        let key = number.to_le_bytes();
        assert!(table.remove(hash(&key), &key).is_some());
    }

    fn filled(entries: usize) -> Table<Entry> {
        let mut table = Table::new();
        (0..entries).for_each(|number| insert(&mut table, number));
        table
    }

    /// A value that chi-square exceeds by chance less than once in 10⁹ times, by the approximation
    /// of Wilson and Hilferty, which is too high for few degrees of freedom.
    fn critical(degrees: usize) -> f64 {
        let (degrees, deviations) = (degrees as f64, 5.998);
        let spread = 2.0 / (9.0 * degrees);
        degrees * (1.0 - spread + deviations * spread.sqrt()).powi(3)
    }

    /// Checks counts against their expected values.
    fn check(what: &str, counts: impl Iterator<Item = (u64, f64)>) {
        let (mut statistic, mut classes) = (0.0, 0);
        for (count, expected) in counts {
            statistic += (count as f64 - expected).powi(2) / expected;
            classes += 1;
        }
        if classes > 1 {
            let critical = critical(classes - 1);
            assert!(statistic < critical, "{what}: chi-square {statistic} of at most {critical}");
        }
    }

    /// Draws from a table and checks the frequency of each entry, or in a large table that of the
    /// entries whose bucket has equally many, where a bias would show.
    fn check_draws(what: &str, table: &Table<Entry>, random: &mut Random) {
        let class_of = |bucket: &Bucket<Entry>, entry: &Entry| {
            let mut len = 0;
            bucket.for_each(&mut |_| len += 1);
            if table.len() <= 1000 {
                usize::from_le_bytes(entry.key().try_into().expect("8 bytes"))
            } else {
                len
            }
        };
        let (mut classes, mut class_by_key) = (BTreeMap::<usize, (u64, f64)>::new(), HashMap::new());
        for bucket in (0..table.bucket_count()).map(|index| table.bucket_at(index)) {
            bucket.for_each(&mut |entry| {
                let class = class_of(bucket, entry);
                classes.entry(class).or_default().1 += 1.0;
                class_by_key.insert(entry.key(), class);
            });
        }
        assert_eq!(class_by_key.len(), table.len(), "every entry is in one of the buckets");
        let draws = table.len().clamp(20, 1000) * 100;
        for _ in 0..draws {
            let entry = table.random(|| random.next()).expect("the table has entries");
            classes.get_mut(&class_by_key[entry.key()]).expect("a class").0 += 1;
        }
        // Classes with too small an expected count are merged with the previous one.
        let (mut counts, mut rest) = (Vec::new(), (0, 0.0));
        for (count, entries) in classes.into_values() {
            rest = (rest.0 + count, rest.1 + entries * draws as f64 / table.len() as f64);
            if rest.1 >= 20.0 {
                counts.push(std::mem::take(&mut rest));
            }
        }
        if let Some(last) = counts.last_mut() {
            *last = (last.0 + rest.0, last.1 + rest.1);
        }
        check(what, counts.into_iter());
    }

    #[test]
    fn each_entry_is_equally_likely_at_every_size() {
        let mut random = Random::new(1);
        for entries in [1, 2, 16, 200, 1000, 10_000, 1_000_000] {
            check_draws(&format!("{entries} entries"), &filled(entries), &mut random);
        }
        assert!(Table::<Entry>::new().random(|| 7).is_none());
    }

    #[test]
    fn each_entry_is_equally_likely_while_the_table_grows() {
        let mut random = Random::new(2);
        let (mut table, mut seen) = (Table::new(), 0);
        for number in 0..45_000 {
            insert(&mut table, number);
            let moved = table.next.len() / 2;
            let is_of_interest = [1, 3, 8, 50, 1000, 3000].contains(&(moved / super::super::MOVES));
            if table.growing && is_of_interest {
                check_draws(&format!("{number} entries, {moved} buckets moved"), &table, &mut random);
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen} growing tables");
    }

    #[test]
    fn each_entry_is_equally_likely_after_mass_deletion_and_takes_few_looks() {
        let mut random = Random::new(3);
        let mut table = filled(20_000);
        let mut largest = 0.0_f64;
        for left in (1..20_000).rev() {
            remove(&mut table, left);
            let sparse = table.bucket_count() >= 15 * left;
            if sparse || [1, 2, 16, 200, 5000].contains(&left) {
                check_draws(&format!("{left} left of 20,000"), &table, &mut random);
                let mut numbers = 0_u32;
                for _ in 0..200 {
                    let found = table.random(|| {
                        numbers += 1;
                        random.next()
                    });
                    assert!(found.is_some());
                }
                largest = largest.max(f64::from(numbers) / 200.0);
            }
        }
        assert!(largest < 16.0 * 18.0 * 1.3, "{largest} numbers for a draw");
    }

    #[test]
    fn a_table_that_is_much_too_large_takes_few_draws() {
        let mut table = Table::with_capacity(1 << 16);
        insert(&mut table, 1);
        let (mut random, mut draws) = (Random::new(4), 0);
        let found = table.random(|| {
            draws += 1;
            random.next()
        });
        assert_eq!(found.map(Entry::key), Some(&1_usize.to_le_bytes()[..]));
        assert_eq!(draws, 1);
    }

    #[test]
    fn a_draw_ends_whatever_the_numbers_are() {
        let table = filled(1000);
        for number in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(table.random(|| number).is_some());
        }
    }

    #[test]
    fn chains_are_as_short_as_what_is_in_them() {
        let mut table = filled(1000);
        let check = |table: &Table<Entry>| {
            let mut chained = Vec::new();
            for bucket in (0..table.bucket_count()).map(|index| table.bucket_at(index)) {
                let mut len = 0_usize;
                bucket.for_each(&mut |_| len += 1);
                assert_eq!(bucket.depth(), len.div_ceil(SLOTS).saturating_sub(1), "{len} entries");
                for depth in 0..bucket.depth() {
                    chained.resize(chained.len().max(depth + 1), 0);
                    chained[depth] += 1;
                }
            }
            assert_eq!(table.chained, chained);
        };
        check(&table);
        for number in 1000..3000 {
            insert(&mut table, number);
            check(&table);
        }
        for number in 0..3000 {
            remove(&mut table, number);
            check(&table);
        }
    }
}
