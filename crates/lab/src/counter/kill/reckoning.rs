//! The cost of a kill: answers compared with the store, and with later admissions.

use super::notebook::Answered;

/// Units of all keys, and of the key with the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) all: u128,
    pub(super) largest: u128,
}

impl Units {
    fn add(&mut self, units: i128) {
        let units = units.max(0).unsigned_abs();
        self.all += units;
        self.largest = self.largest.max(units);
    }
}

/// Distance of the store from the answers. Doubtful operations count whichever way makes it
/// smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Distance {
    /// Answered units that the store does not have: a quota would admit them again.
    pub(super) lost: Units,
    /// Stored units that were not answered or were given back: a quota will not admit them.
    pub(super) reserved: Units,
}

/// Units admitted by both processes, compared with the limit of each key, after the second has
/// admitted all that it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Answered units beyond the limit.
    pub(super) over_admitted: Units,
    /// Units of the limit that no caller got, without doubtful ones.
    pub(super) under_admitted: Units,
}

/// Compares each key's answers with its stored value.
pub(super) fn distance(answered: &[Answered], durable: &[i64]) -> Distance {
    assert_eq!(answered.len(), durable.len(), "both are of the same keys");
    let mut distance = Distance::default();
    for (answered, durable) in answered.iter().zip(durable) {
        let (net, durable) = (answered.net(), i128::from(*durable));
        distance.lost.add(net - i128::from(answered.doubtful_down) - durable);
        distance.reserved.add(durable - net - i128::from(answered.doubtful_up));
    }
    distance
}

/// Compares each key's units, admitted by the first and the second process, with its limit.
pub(super) fn totals(answered: &[Answered], afterwards: &[u64], limit: u64) -> Totals {
    assert_eq!(answered.len(), afterwards.len(), "both are of the same keys");
    let mut totals = Totals::default();
    for (answered, afterwards) in answered.iter().zip(afterwards) {
        let off = answered.net() + i128::from(*afterwards) - i128::from(limit);
        totals.over_admitted.add(off - i128::from(answered.doubtful_down));
        totals.under_admitted.add(-off - i128::from(answered.doubtful_up));
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::{Answered, Distance, Units, distance, totals};

    fn answered(admitted: u64, given_back: u64) -> Answered {
        Answered { admitted, given_back, ..Answered::default() }
    }

    fn units(all: u128, largest: u128) -> Units {
        Units { all, largest }
    }

    #[test]
    fn losses_of_one_key_are_not_made_up_for_by_another() {
        let answered = [answered(10, 2), answered(5, 0), answered(5, 0)];
        let found = distance(&answered, &[5, 9, 4]);
        assert_eq!(found, Distance { lost: units(4, 3), reserved: units(4, 4) });
    }

    #[test]
    fn what_is_in_doubt_is_neither_lost_nor_reserved() {
        let doubtful = Answered { doubtful_up: 2, doubtful_down: 1, ..answered(10, 0) };
        for durable in 9..=12 {
            assert_eq!(distance(&[doubtful], &[durable]), Distance::default());
        }
        assert_eq!(distance(&[doubtful], &[8]).lost, units(1, 1));
        assert_eq!(distance(&[doubtful], &[13]).reserved, units(1, 1));
    }

    #[test]
    fn both_lives_together_are_held_to_the_limit() {
        let found = totals(&[answered(60, 0), answered(100, 20), answered(90, 0)], &[40, 15, 13], 100);
        assert_eq!((found.over_admitted, found.under_admitted), (units(3, 3), units(5, 5)));
    }
}
