//! `faults`: damage that is made for real, and must be found before a wrong value is served.
//!
//! The faults of an iteration are drawn outside of the measured time, at the original's rates for
//! each operation. Each of them meets one write, or one read, of what holds the operation's point.
//! After it, the work is done again without a fault.

mod block_files;
mod files;
mod segments;

use super::options::TimeSeriesOptions;
use super::row::Row;
use crate::random::Random;
use std::io;
use tidemark_log::storage::faulty::{self, Plan, Site};

pub(super) fn rows(options: &TimeSeriesOptions) -> Vec<Row> {
    // In the original's order.
    let levels = [Level::MILD, Level::AGGRESSIVE];
    let in_memory = levels.iter().flat_map(|level| segments::rows(*level, options));
    let in_files = levels.iter().flat_map(|level| files::rows(*level, options));
    let in_block_files = levels.iter().map(|level| block_files::row(*level, options));
    in_memory.chain(in_files).chain(in_block_files).collect()
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The call does nothing and returns an error.
    Error,
    /// A write stores a part and returns an error.
    Torn,
    /// One bit is inverted, silently.
    BitFlip,
    /// A write stores nothing, silently.
    Lost,
    /// The call does a part of its work.
    Short,
}

/// How many of a million operations meet which fault: the original's `mild` and `aggressive`.
#[derive(Clone, Copy, Debug)]
struct Level {
    name: &'static str,
    /// Errors of writes. Every second one tears the write.
    write_error: u64,
    read_error: u64,
    bit_flip: u64,
    lost_write: u64,
    /// The original's gray failures.
    short: u64,
}

impl Level {
    const MILD: Self =
        Level { name: "mild", write_error: 100, read_error: 100, bit_flip: 10, lost_write: 0, short: 0 };
    const AGGRESSIVE: Self = Level {
        name: "aggressive",
        write_error: 10_000,
        read_error: 10_000,
        bit_flip: 1_000,
        lost_write: 5_000,
        short: 5_000,
    };

    fn of_writes(self) -> Vec<(Fault, u64)> {
        let torn = self.write_error / 2;
        vec![
            (Fault::Error, self.write_error - torn),
            (Fault::Torn, torn),
            (Fault::BitFlip, self.bit_flip),
            (Fault::Lost, self.lost_write),
            (Fault::Short, self.short),
        ]
    }

    fn of_reads(self) -> Vec<(Fault, u64)> {
        vec![(Fault::Error, self.read_error), (Fault::BitFlip, self.bit_flip), (Fault::Short, self.short)]
    }

    /// Faults of reads, and of the files that are read: as many of these are cut off, and removed, as
    /// bits are inverted.
    fn of_block_files(self) -> Vec<(Fault, u64)> {
        let mut all = self.of_reads();
        all.extend([(Fault::Torn, self.bit_flip), (Fault::Lost, self.bit_flip)]);
        all
    }
}

/// Returns the log's name of a fault.
fn planned(fault: Fault, site: Site, at: u64, seed: u64) -> Plan {
    let fault = match fault {
        Fault::Error => faulty::Fault::Error(io::ErrorKind::Other),
        Fault::Torn => faulty::Fault::Torn,
        Fault::BitFlip => faulty::Fault::BitFlip,
        Fault::Lost => faulty::Fault::Lost,
        Fault::Short => faulty::Fault::Short,
    };
    Plan { fault, at, site: Some(site), forever: false, seed }
}

/// Draws which of so many operations meet a fault, in their order. At least one does, so that even a
/// short run shows something.
fn drawn(rates: &[(Fault, u64)], operations: u64, random: &mut Random) -> Vec<(u64, Fault)> {
    let sum: u64 = rates.iter().map(|(_, rate)| rate).sum();
    let pick = |mut number: u64| {
        for (fault, rate) in rates {
            match number.checked_sub(*rate) {
                Some(rest) => number = rest,
                None => return *fault,
            }
        }
        unreachable!("the number is below the sum of the rates")
    };
    let mut all = Vec::new();
    for operation in 0..operations {
        let number = random.below(1_000_000);
        if number < sum {
            all.push((operation, pick(number)));
        }
    }
    if all.is_empty() {
        all.push((random.below(operations), pick(random.below(sum))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Fault, Level, drawn};
    use crate::random::Random;

    #[test]
    fn faults_come_at_their_rates_and_never_not_at_all() {
        let mut random = Random::new(1, 2);
        let all = drawn(&Level::AGGRESSIVE.of_writes(), 100_000, &mut random);
        let count = |fault| all.iter().filter(|(_, one)| *one == fault).count();
        assert!((1_900..2_300).contains(&all.len()), "{} of 2,100", all.len());
        assert!((400..600).contains(&count(Fault::Lost)) && (60..140).contains(&count(Fault::BitFlip)));
        assert!(all.is_sorted_by_key(|(operation, _)| *operation));
        assert_eq!(drawn(&Level::MILD.of_reads(), 10, &mut random).len(), 1);
    }
}
