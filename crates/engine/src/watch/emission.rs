//! Retained emissions of one query, by number.

use crate::wire::shared_bytes::SharedBytes;
use std::collections::VecDeque;
use tidemark_log::Lsn;

/// A changed answer, or what has changed of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emission {
    /// Number among the query's emissions, from 1 without gaps.
    pub number: u64,
    /// Record that changed the answer.
    pub lsn: Lsn,
    /// Time of that record, in microseconds since 1970.
    pub time_us: u64,
    /// Whether subscribers must not see it before the record is durable, as the writer requested.
    pub durable: bool,
    /// Answer of the emission before, or the query's first answer; `None` for reads that emit changes.
    pub before: Option<SharedBytes>,
    /// Whether `answer` is what has changed: see [`crate::watch::Read::emits_changes`].
    pub is_change: bool,
    /// Answer as sent to the client, in the read's protocol.
    pub answer: SharedBytes,
}

impl Emission {
    fn before_bytes(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.len())
    }
}

/// Approximate bytes of an emission besides its answer: the struct, the answer's reference counts,
/// the entry in the retention order. `before` is shared with another emission, except for the
/// oldest.
const OVERHEAD_BYTES: usize = 112;

/// Error: requested emissions are no longer retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// Emissions up to this LSN are gone; all later ones are retained.
    pub floor: Lsn,
}

/// Retained emissions; a query without any has none of this.
#[derive(Debug, Default)]
struct Retained {
    emissions: VecDeque<Emission>,
    /// Emissions dropped out of order, whose entries in the retention order remain.
    gone: usize,
}

/// Emissions in order. Numbers are dense, so an emission's position follows from its number.
#[derive(Debug)]
pub(super) struct Emissions {
    /// `None` if nothing is retained.
    retained: Option<Box<Retained>>,
    /// Number of the latest emission, retained or not.
    count: u64,
    /// Every emission after this LSN is retained.
    floor: Lsn,
}

impl Emissions {
    /// Returns an empty set after `count` emissions, the last of which was at `floor`.
    pub(super) fn new(count: u64, floor: Lsn) -> Self {
        Self { retained: None, count, floor }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the LSN of the latest emission, retained or not, or of the query's record if there
    /// is none.
    pub(super) fn last(&self) -> Lsn {
        self.retained().back().map_or(self.floor, |last| last.lsn)
    }

    #[cfg(test)]
    fn floor(&self) -> Lsn {
        self.floor
    }

    /// Adds the next emission. Returns the bytes that it takes.
    pub(super) fn add(&mut self, emission: Emission) -> usize {
        let (number, count, lsn, last) = (emission.number, self.count, emission.lsn, self.last());
        assert!(
            number == count + 1,
            "emission {number} at record {lsn} comes behind emission {count}: one is missing"
        );
        assert!(lsn > last, "emission {number} is that of record {lsn}, and the one before of record {last}");
        // The `before` of every other emission is the answer of its predecessor.
        let before = if self.retained().is_empty() { emission.before_bytes() } else { 0 };
        let bytes = OVERHEAD_BYTES + before + emission.answer.len();
        self.count = emission.number;
        self.retained.get_or_insert_default().emissions.push_back(emission);
        bytes
    }

    /// Drops the oldest emission. Returns the bytes freed. Its answer is still used as the next
    /// emission's `before`, if that has one.
    pub(super) fn drop_oldest(&mut self) -> Option<usize> {
        let retained = self.retained.as_mut()?;
        let bytes = if retained.gone > 0 {
            retained.gone -= 1;
            0
        } else {
            let oldest = retained.emissions.pop_front()?;
            self.floor = oldest.lsn;
            let is_used = retained.emissions.front().is_some_and(|next| next.before.is_some());
            let answer = if is_used { 0 } else { oldest.answer.len() };
            OVERHEAD_BYTES + oldest.before_bytes() + answer
        };
        if retained.emissions.is_empty() && retained.gone == 0 {
            // Free the memory of a query that has fallen silent.
            self.retained = None;
        }
        Some(bytes)
    }

    /// Continues after emission `count`, at `last`. The emissions between were made elsewhere, so
    /// all retained ones are dropped. Returns the bytes freed.
    ///
    /// # Panics
    /// There have been more emissions than `count`.
    pub(super) fn go_on_behind(&mut self, count: u64, last: Lsn) -> usize {
        let (had, had_last) = (self.count, self.last());
        assert!(
            count > had || (count == had && last == had_last),
            "a query with {had} emissions, the last at record {had_last}, continues after emission {count} at record {last}"
        );
        if count == had {
            return 0;
        }
        let mut bytes = 0;
        if let Some(retained) = &mut self.retained {
            if let (Some(oldest), emissions) = (retained.emissions.front(), &retained.emissions) {
                let answers: usize =
                    emissions.iter().map(|emission| OVERHEAD_BYTES + emission.answer.len()).sum();
                bytes = oldest.before_bytes() + answers;
            }
            retained.gone += retained.emissions.len();
            retained.emissions = VecDeque::new();
        }
        (self.count, self.floor) = (count, last);
        bytes
    }

    pub(super) fn after(&self, after: u64, most: usize, into: &mut Vec<Emission>) -> Result<(), Gone> {
        let first = self.position(after)?;
        into.extend(self.retained().iter().skip(first).take(most).cloned());
        Ok(())
    }

    pub(super) fn latest_after(&self, after: u64) -> Result<Option<Emission>, Gone> {
        if after >= self.count {
            return Ok(None);
        }
        // A client that wants only the latest emission does not miss the earlier ones.
        self.retained().back().cloned().map(Some).ok_or(Gone { floor: self.floor })
    }

    /// Returns the number of the last emission at or before `lsn`.
    pub(super) fn number_at(&self, lsn: Lsn) -> Result<u64, Gone> {
        if lsn < self.floor {
            return Err(Gone { floor: self.floor });
        }
        let at_or_before = self.retained().partition_point(|emission| emission.lsn <= lsn);
        Ok(self.dropped() + at_or_before as u64)
    }

    fn retained(&self) -> &VecDeque<Emission> {
        static NONE: VecDeque<Emission> = VecDeque::new();
        self.retained.as_ref().map_or(&NONE, |retained| &retained.emissions)
    }

    /// Returns the number of emissions before the first retained one.
    fn dropped(&self) -> u64 {
        self.count - self.retained().len() as u64
    }

    /// Returns the position, among the retained, of the first emission after number `after`.
    fn position(&self, after: u64) -> Result<usize, Gone> {
        match after.min(self.count).checked_sub(self.dropped()) {
            Some(position) => Ok(position as usize),
            None => Err(Gone { floor: self.floor }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emission(number: u64, lsn: u64, answer: SharedBytes) -> Emission {
        let is_change = false;
        Emission { number, lsn: Lsn(lsn), time_us: 0, durable: false, before: None, is_change, answer }
    }

    fn emissions(lsns: &[u64]) -> Emissions {
        let mut emissions = Emissions::new(10, Lsn(5));
        let mut latest = SharedBytes::from(b"before".as_slice());
        for (number, lsn) in (11..).zip(lsns) {
            let answer = SharedBytes::from(lsn.to_string().as_bytes());
            let before = Some(std::mem::replace(&mut latest, answer.clone()));
            emissions.add(Emission { before, ..emission(number, *lsn, answer) });
        }
        emissions
    }

    fn lsns_after(emissions: &Emissions, after: u64, most: usize) -> Result<Vec<u64>, Gone> {
        let mut into = Vec::new();
        emissions.after(after, most, &mut into)?;
        Ok(into.iter().map(|emission| emission.lsn.0).collect())
    }

    #[test]
    #[should_panic(expected = "emission 12 is that of record 7, and the one before of record 7")]
    fn two_emissions_of_one_record_are_a_defect() {
        emissions(&[7, 7]);
    }

    #[test]
    #[should_panic(expected = "emission 13 at record 9 comes behind emission 11: one is missing")]
    fn a_number_that_is_left_out_is_a_defect() {
        let answer = SharedBytes::from(b"later".as_slice());
        emissions(&[7]).add(emission(13, 9, answer));
    }

    #[test]
    fn emissions_are_found_by_number_and_by_lsn() {
        let emissions = emissions(&[7, 9, 20]);
        assert_eq!(emissions.count(), 13);
        assert_eq!(lsns_after(&emissions, 10, 9), Ok(vec![7, 9, 20]));
        assert_eq!(lsns_after(&emissions, 11, 1), Ok(vec![9]));
        assert_eq!(lsns_after(&emissions, 13, 9), Ok(vec![]));
        assert_eq!(lsns_after(&emissions, u64::MAX, 9), Ok(vec![]));
        assert_eq!(lsns_after(&emissions, 9, 9), Err(Gone { floor: Lsn(5) }));
        for (lsn, number) in [(5, 10), (6, 10), (7, 11), (8, 11), (9, 12), (19, 12), (20, 13), (99, 13)] {
            assert_eq!(emissions.number_at(Lsn(lsn)), Ok(number), "at {lsn}");
        }
        assert_eq!(emissions.number_at(Lsn(4)), Err(Gone { floor: Lsn(5) }));
        assert_eq!(emissions.latest_after(12).map(|latest| latest.map(|it| it.lsn)), Ok(Some(Lsn(20))));
        assert_eq!(emissions.latest_after(0).map(|latest| latest.map(|it| it.lsn)), Ok(Some(Lsn(20))));
        assert_eq!(emissions.latest_after(13), Ok(None));
    }

    #[test]
    fn what_was_dropped_raises_the_floor_and_is_said_to_be_gone() {
        let mut emissions = emissions(&[7, 9, 20]);
        assert_eq!(emissions.drop_oldest(), Some("before".len() + OVERHEAD_BYTES));
        assert_eq!(emissions.floor(), Lsn(7));
        assert_eq!(lsns_after(&emissions, 10, 9), Err(Gone { floor: Lsn(7) }));
        assert_eq!(lsns_after(&emissions, 11, 9), Ok(vec![9, 20]));
        assert_eq!(emissions.number_at(Lsn(7)), Ok(11));
        assert_eq!(emissions.drop_oldest(), Some(1 + OVERHEAD_BYTES), "the first answer, before the second");
        assert_eq!(emissions.drop_oldest(), Some(1 + 2 + OVERHEAD_BYTES), "nothing is retained any more");
        assert_eq!((emissions.count(), emissions.floor(), emissions.drop_oldest()), (13, Lsn(20), None));
        assert_eq!(lsns_after(&emissions, 13, 9), Ok(vec![]));
    }

    #[test]
    fn a_change_is_counted_until_it_is_dropped_itself() {
        let mut emissions = Emissions::new(0, Lsn(1));
        let bytes = |length: u64| OVERHEAD_BYTES + length as usize;
        for number in 1..=3 {
            let change = SharedBytes::from(&vec![0; number as usize][..]);
            let added = emissions.add(Emission { is_change: true, ..emission(number, number + 1, change) });
            assert_eq!(added, bytes(number));
        }
        assert_eq!([1, 2, 3].map(|_| emissions.drop_oldest()), [1, 2, 3].map(|length| Some(bytes(length))));
        assert_eq!(emissions.drop_oldest(), None);
    }
}
