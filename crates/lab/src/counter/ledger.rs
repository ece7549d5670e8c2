//! The callers' account of admitted and returned units.

/// One worker's account of its answers. Very many keys share lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    net: Vec<i64>,
    pub(super) operations: u64,
    pub(super) admitted: u64,
    pub(super) given_back: u64,
    pub(super) refused: u64,
}

/// Maximum number of lines: a large run has a ledger for each of many workers.
const LINES_MAX: usize = 1 << 16;

impl Ledger {
    pub(super) fn new(keys: usize) -> Self {
        Ledger { net: vec![0; keys.min(LINES_MAX)], ..Ledger::default() }
    }

    /// Records that an operation moved the key by `moved` units.
    #[inline]
    pub(super) fn note(&mut self, key: usize, moved: i64) {
        self.operations += 1;
        match moved {
            0 => self.refused += 1,
            1.. => self.admitted += moved.unsigned_abs(),
            _ => self.given_back += moved.unsigned_abs(),
        }
        self.net[key % LINES_MAX] += moved;
    }

    /// Adds another ledger.
    pub(super) fn add(&mut self, other: &Ledger) {
        assert_eq!(self.net.len(), other.net.len(), "ledgers of one run have as many lines");
        self.net.iter_mut().zip(&other.net).for_each(|(sum, net)| *sum += net);
        self.operations += other.operations;
        self.admitted += other.admitted;
        self.given_back += other.given_back;
        self.refused += other.refused;
    }

    /// Returns the distance of these positions from the recorded answers: of their sums, and over
    /// all lines without signs.
    pub(super) fn difference(&self, positions: &[i64]) -> Difference {
        let mut lines = vec![0_i128; self.net.len()];
        for (key, position) in positions.iter().enumerate() {
            lines[key % LINES_MAX] += i128::from(*position);
        }
        let off = lines.iter().zip(&self.net).map(|(line, net)| line - i128::from(*net));
        off.fold(Difference::default(), |sum, off| Difference {
            net: sum.net + off,
            absolute: sum.absolute + off.unsigned_abs(),
        })
    }

    /// Returns the units admitted beyond the limit of each key. Keys that share a line pool their
    /// limits.
    pub(super) fn beyond(&self, keys: usize, limit: i64) -> u64 {
        let lines = self.net.len();
        let of_line = |line: usize| (keys / lines + usize::from(line < keys % lines)) as i128;
        let beyond =
            |(line, net): (usize, &i64)| (i128::from(*net) - i128::from(limit) * of_line(line)).max(0);
        let sum: i128 = self.net.iter().enumerate().map(beyond).sum();
        u64::try_from(sum).expect("no run admits 2^64 units")
    }
}

/// Distance between two accounts. Units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) net: i128,
    pub(super) absolute: u128,
}

#[cfg(test)]
mod tests {
    use super::{Difference, LINES_MAX, Ledger};

    #[test]
    fn workers_ledgers_add_up() {
        let (mut all, mut other) = (Ledger::new(2), Ledger::new(2));
        all.note(0, 1);
        all.note(1, 1);
        other.note(1, -1);
        other.note(1, 0);
        all.add(&other);
        assert_eq!((all.operations, all.admitted, all.given_back, all.refused), (4, 2, 1, 1));
        assert_eq!(all.difference(&[1, 0]), Difference::default());
    }

    #[test]
    fn errors_of_two_keys_do_not_cancel() {
        let mut ledger = Ledger::new(2);
        ledger.note(0, 1);
        assert_eq!(ledger.difference(&[0, 1]), Difference { net: 0, absolute: 2 });
        assert_eq!(ledger.difference(&[3, 0]), Difference { net: 2, absolute: 2 });
    }

    #[test]
    fn what_is_beyond_the_limit_of_one_key_is_not_made_up_for_by_another() {
        let mut ledger = Ledger::new(2);
        (0..7).for_each(|_| ledger.note(0, 1));
        assert_eq!(ledger.beyond(2, 5), 2);
        assert_eq!(ledger.beyond(2, 7), 0);
    }

    #[test]
    fn very_many_keys_share_lines() {
        let keys = LINES_MAX + 1;
        let mut ledger = Ledger::new(keys);
        ledger.note(0, 1);
        ledger.note(LINES_MAX, 1);
        assert_eq!(ledger.net.len(), LINES_MAX);
        assert_eq!(ledger.beyond(keys, 1), 0);
        let mut positions = vec![0; keys];
        (positions[0], positions[LINES_MAX]) = (1, 1);
        assert_eq!(ledger.difference(&positions), Difference::default());
    }
}
