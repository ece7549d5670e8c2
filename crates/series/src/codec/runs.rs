//! Runs of equal values: where each begins, as positions or, if there are many, as a bitmap.

use super::positions::{self, Positions, position_words};
use super::words::{Reader, Words};
use crate::BLOCK_POINTS;

/// Returns the value of each run.
pub(super) fn values_of_runs(values: &[u64]) -> Vec<u64> {
    let mut runs = Vec::new();
    let mut before = None;
    for value in values {
        if before != Some(*value) {
            runs.push(*value);
            before = Some(*value);
        }
    }
    runs
}

/// Appends where the runs of `values` begin.
pub(super) fn encode(values: &[u64], runs: usize, into: &mut Words) {
    let begins = |index: usize| index == 0 || values[index] != values[index - 1];
    if as_positions(values.len(), runs) {
        let starts: Vec<u64> =
            (0..values.len()).filter(|index| begins(*index)).map(|index| index as u64).collect();
        positions::encode(&starts, into);
    } else {
        let bitmap = into.extend_zeroed(values.len().div_ceil(64));
        for index in (0..values.len()).filter(|index| begins(*index)) {
            bitmap[index / 64] |= 1 << (index % 64);
        }
    }
}

/// Whether positions are smaller than a bitmap.
fn as_positions(count: usize, runs: usize) -> bool {
    position_words(runs) <= count.div_ceil(64)
}

/// Starts of runs that [`encode`] wrote.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runs<'a> {
    /// The position of each start.
    Positions(Positions<'a>),
    /// A bit for each point: whether a run begins there.
    Bitmap(&'a [u64]),
}

impl<'a> Runs<'a> {
    /// Takes the starts of `runs` runs in `count` points; `None` if words are missing or there
    /// cannot be so many. O(1).
    pub(super) fn read(from: &mut Reader<'a>, count: usize, runs: usize) -> Option<Self> {
        if runs == 0 || runs > count || count > BLOCK_POINTS {
            return None;
        }
        if as_positions(count, runs) {
            return Positions::read(from, runs).map(Self::Positions);
        }
        from.take(count.div_ceil(64)).map(Self::Bitmap)
    }

    /// Whether there are `runs` runs, the first at the first point and the last in `count` points.
    /// O(runs), or O(count / 64) for a bitmap.
    pub(super) fn are_well_formed(&self, count: usize, runs: usize) -> bool {
        match self {
            Self::Positions(starts) => starts.are_well_formed(count) && starts.get(0) == 0,
            Self::Bitmap(bitmap) => {
                let ones: u32 = bitmap.iter().map(|word| word.count_ones()).sum();
                let last = bitmap.last().expect("a block has points");
                let beyond = if count.is_multiple_of(64) { 0 } else { last >> (count % 64) };
                ones as usize == runs && bitmap[0] & 1 == 1 && beyond == 0
            }
        }
    }

    /// Returns the run that the point at `index` is in. O(log n) or O(n / 64).
    pub(super) fn run_of(&self, index: usize) -> usize {
        match self {
            Self::Positions(starts) => starts.count_before(index + 1) - 1,
            Self::Bitmap(bitmap) => {
                let (word, bit) = (index / 64, index % 64);
                let before: u32 = bitmap[..word].iter().map(|word| word.count_ones()).sum();
                let within = (bitmap[word] << (63 - bit)).count_ones();
                (before + within) as usize - 1
            }
        }
    }

    /// Replaces the values of the runs, which are at the front of `values`, by those of `count`
    /// points. O(count), no allocation.
    pub(super) fn expand(&self, values: &mut [u64; BLOCK_POINTS], count: usize) {
        // From the last run to the first: a run begins at or behind its number, so no value is
        // overwritten before it is used.
        match self {
            Self::Positions(starts) => {
                let mut end = count;
                for run in (0..starts.len()).rev() {
                    let (start, value) = (starts.get(run), values[run]);
                    values[start..end].fill(value);
                    end = start;
                }
            }
            Self::Bitmap(bitmap) => {
                let ones: u32 = bitmap.iter().map(|word| word.count_ones()).sum();
                let mut run = ones as usize - 1;
                for index in (0..count).rev() {
                    values[index] = values[run];
                    // Without a branch, which a processor could not foresee.
                    let begins = bitmap[index / 64] >> (index % 64) & 1;
                    run = run.saturating_sub(begins as usize);
                }
            }
        }
    }
}
