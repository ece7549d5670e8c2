//! The stream of operations.

use crate::random::Random;

/// The operations of one worker: independent draws that never repeat, determined by the seed and
/// the worker's number.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    random: Random,
    keys: u64,
    churn: u64,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) key: usize,
    /// Whether it gives a unit back.
    pub(super) is_minus: bool,
}

impl Traffic {
    pub(super) fn new(seed: u64, worker: usize, keys: usize, churn: u32) -> Self {
        assert!(keys > 0 && churn <= 100, "{keys} keys, {churn} of 100 operations negative");
        Traffic { random: Random::new(seed, worker as u64 + 1), keys: keys as u64, churn: u64::from(churn) }
    }

    /// Returns the next operation. One draw decides both: the upper half the key, the lower half
    /// the sign.
    #[inline]
    pub(super) fn next(&mut self) -> Operation {
        let draw = self.random.next();
        let key = ((draw >> 32) * self.keys) >> 32;
        let percentile = ((draw & 0xFFFF_FFFF) * 100) >> 32;
        Operation { key: key as usize, is_minus: percentile < self.churn }
    }
}

#[cfg(test)]
mod tests {
    use super::{Operation, Traffic};

    fn draws(seed: u64, worker: usize, count: usize) -> Vec<Operation> {
        let mut traffic = Traffic::new(seed, worker, 128, 25);
        (0..count).map(|_| traffic.next()).collect()
    }

    #[test]
    fn a_seed_repeats_and_workers_differ() {
        assert_eq!(draws(1, 0, 1000), draws(1, 0, 1000));
        assert_ne!(draws(1, 0, 1000), draws(1, 1, 1000));
        assert_ne!(draws(1, 0, 1000), draws(2, 0, 1000));
    }

    #[test]
    fn it_does_not_come_around() {
        // The original repeats the same 8,192 operations.
        let all = draws(1, 0, 4 * 8_192);
        let (first, others) = all.split_at(8_192);
        assert!(others.chunks(8_192).all(|chunk| chunk != first));
    }

    #[test]
    fn keys_are_equally_likely_and_so_many_operations_are_negative() {
        let mut hits = [0_u32; 128];
        let mut negative = 0;
        for operation in draws(1, 0, 128_000) {
            hits[operation.key] += 1;
            negative += u32::from(operation.is_minus);
        }
        // Six standard deviations.
        assert!(hits.iter().all(|hits| (810..1190).contains(hits)), "{hits:?}");
        assert!((31_000..33_000).contains(&negative), "{negative}");
        let mut never = Traffic::new(1, 0, 1, 0);
        let mut always = Traffic::new(1, 0, 1, 100);
        assert!((0..1000).all(|_| !never.next().is_minus && always.next().is_minus));
    }
}
