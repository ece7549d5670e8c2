//! What was delivered: a subscriber's receipts compared with the writer's ledger.

use super::ledger::{Fate, Ledger, Number};
use super::sequence::{SequenceCheck, SequenceFaults};
use std::collections::HashSet;

/// An emission that a subscriber has processed, in the order of processing.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    /// Index of the watched key.
    pub(crate) key: usize,
    pub(crate) lsn: u64,
    pub(crate) seq: u64,
    pub(crate) value: Vec<u8>,
}

/// Start position of a key's subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) lsn: u64,
    pub(crate) seq: u64,
}

/// The faults found. Lists contain write numbers in the order of discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// Emissions of this run's writes, correct or not.
    pub(crate) received: u64,
    /// Writes that were emitted at least once.
    pub(crate) unique: u64,
    /// Writes that happened and were not emitted.
    pub(crate) missed: Vec<Number>,
    /// One entry for each emission of a write after its first.
    pub(crate) duplicates: Vec<Number>,
    /// Emitted after a later write of the same key.
    pub(crate) out_of_order: Vec<Number>,
    /// Emitted, although they never happened.
    pub(crate) phantoms: Vec<Number>,
    /// Emissions of a value that no write set, or of another key's value.
    pub(crate) unknown: u64,
    /// Faults in the numbers of the emissions.
    pub(crate) sequence: SequenceFaults,
    pub(crate) last_received: Option<Number>,
}

impl Delivery {
    /// Judges the receipts of all keys; `starts` has the subscription of each key.
    pub(crate) fn of(ledger: &Ledger, starts: &[Start], receipts: &[Receipt]) -> Self {
        let mut delivery = Delivery::default();
        let mut seen: HashSet<Number> = HashSet::new();
        let mut latest: Vec<Number> = vec![0; starts.len()];
        let mut sequences: Vec<SequenceCheck> =
            starts.iter().map(|start| SequenceCheck::after(start.seq, start.lsn)).collect();
        for receipt in receipts {
            if let Some(sequence) = sequences.get_mut(receipt.key) {
                sequence.take(receipt.seq, receipt.lsn);
            }
            let number = ledger.number_of(&receipt.value);
            let write = number.and_then(|number| ledger.get(number)).filter(|write| write.key == receipt.key);
            let (Some(number), Some(write), Some(latest)) = (number, write, latest.get_mut(receipt.key))
            else {
                delivery.unknown += 1;
                continue;
            };
            delivery.received += 1;
            delivery.last_received = Some(number);
            if !seen.insert(number) {
                delivery.duplicates.push(number);
            } else if number < *latest {
                delivery.out_of_order.push(number);
            }
            if write.fate == Fate::Lost {
                delivery.phantoms.push(number);
            }
            *latest = number.max(*latest);
        }
        delivery.unique = seen.len() as u64;
        delivery.missed = ledger
            .iter()
            .filter(|(number, write)| write.fate == Fate::Done && !seen.contains(number))
            .map(|(number, _)| number)
            .collect();
        for sequence in &sequences {
            delivery.sequence.add(sequence.faults());
        }
        delivery
    }

    /// Returns whether every write that happened was emitted once and in order, with nothing else
    /// emitted and correct numbers.
    pub(crate) fn is_exactly_once(&self) -> bool {
        self.is_at_least_once()
            && self.is_at_most_once()
            && self.out_of_order.is_empty()
            && self.phantoms.is_empty()
            && self.unknown == 0
            && self.sequence.is_clean()
    }

    /// Returns whether every write that happened was emitted.
    pub(crate) fn is_at_least_once(&self) -> bool {
        self.missed.is_empty()
    }

    /// Returns whether no write was emitted twice. Without any receipt the answer is false.
    pub(crate) fn is_at_most_once(&self) -> bool {
        self.duplicates.is_empty() && self.received > 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Delivery, Receipt, Start};
    use crate::watch::ledger::{Fate, Ledger, Number};

    /// Six writes that alternate between two keys; the fifth is in doubt and the sixth lost.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::new(1);
        for (index, fate) in [Fate::Done, Fate::Done, Fate::Done, Fate::Done, Fate::InDoubt, Fate::Lost]
            .into_iter()
            .enumerate()
        {
            let (number, _) = ledger.begin(index % 2);
            ledger.settle(number, fate);
        }
        ledger
    }

    /// Receipts of these writes, in this order and numbered as the contract requires.
    fn receipts(numbers: &[Number]) -> Vec<Receipt> {
        let ledger = ledger();
        let mut seqs = [0, 0];
        let receipt = |(index, number): (usize, &Number)| {
            let key = (*number as usize + 1) % 2;
            seqs[key] += 1;
            Receipt { key, lsn: 10 + index as u64, seq: seqs[key], value: ledger.value(*number) }
        };
        numbers.iter().enumerate().map(receipt).collect()
    }

    fn judge(receipts: &[Receipt]) -> Delivery {
        Delivery::of(&ledger(), &[Start { lsn: 9, seq: 0 }; 2], receipts)
    }

    #[test]
    fn every_write_once_and_in_order_is_exactly_once_with_or_without_the_one_in_doubt() {
        for numbers in [&[1, 2, 3, 4][..], &[1, 2, 3, 4, 5], &[2, 4, 1, 3], &[1, 3, 5, 2, 4]] {
            let delivery = judge(&receipts(numbers));
            assert!(delivery.is_exactly_once(), "{numbers:?}: {delivery:?}");
            assert_eq!(delivery.unique, numbers.len() as u64);
        }
    }

    #[test]
    fn a_missed_write_is_found_even_if_the_numbers_hide_it() {
        let delivery = judge(&receipts(&[1, 2, 4]));
        assert_eq!(delivery.missed, [3]);
        assert!(delivery.sequence.is_clean());
        assert!(!delivery.is_exactly_once() && !delivery.is_at_least_once() && delivery.is_at_most_once());
    }

    #[test]
    fn a_write_emitted_twice_is_found_even_if_it_was_in_doubt() {
        let delivery = judge(&receipts(&[1, 2, 3, 4, 5, 5]));
        assert_eq!(delivery.duplicates, [5]);
        assert!(!delivery.is_exactly_once() && delivery.is_at_least_once() && !delivery.is_at_most_once());
    }

    #[test]
    fn a_write_emitted_after_a_later_one_of_its_key_is_found() {
        let delivery = judge(&receipts(&[3, 1, 2, 4]));
        assert_eq!(delivery.out_of_order, [1]);
        assert!(!delivery.is_exactly_once() && delivery.is_at_least_once() && delivery.is_at_most_once());
    }

    #[test]
    fn what_never_happened_must_not_be_emitted() {
        let delivery = judge(&receipts(&[1, 2, 3, 4, 6]));
        assert_eq!(delivery.phantoms, [6]);
        assert!(!delivery.is_exactly_once());
    }

    #[test]
    fn unwritten_and_foreign_values_are_detected() {
        let mut strange = receipts(&[1, 2, 3, 4]);
        strange[3].value = b"seq=4|run=other".to_vec();
        assert_eq!((judge(&strange).unknown, judge(&strange).missed), (1, vec![4]));
        let mut crossed = receipts(&[1, 2, 3, 4]);
        (crossed[0].value, crossed[1].value) = (crossed[1].value.clone(), crossed[0].value.clone());
        assert_eq!((judge(&crossed).unknown, judge(&crossed).missed), (2, vec![1, 2]));
    }

    #[test]
    fn right_values_with_wrong_numbers_are_not_exactly_once() {
        let mut gap = receipts(&[1, 2, 3, 4]);
        gap[3].seq += 1;
        assert_eq!(judge(&gap).sequence.missing, 1);
        assert!(!judge(&gap).is_exactly_once());
        let mut standing = receipts(&[1, 2, 3, 4]);
        standing[2].lsn = standing[0].lsn;
        assert_eq!(judge(&standing).sequence.out_of_order, 1);
        assert!(!judge(&standing).is_exactly_once());
    }

    #[test]
    fn receiving_nothing_keeps_no_promise() {
        let delivery = judge(&[]);
        assert_eq!(delivery.missed, [1, 2, 3, 4]);
        assert!(!delivery.is_exactly_once() && !delivery.is_at_least_once() && !delivery.is_at_most_once());
    }
}
