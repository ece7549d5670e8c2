//! What aggregations need of a whole block.

use crate::codec::Words;
use crate::exact_sum::Halves;
use crate::sample::Sample;

/// Number of NaNs in the flags.
pub(super) const NAN_BITS: u64 = 0xffff;

/// Flag: the sum is known.
pub(super) const SUM_KNOWN: u64 = 1 << 16;

/// What aggregations need of the points of a block, so that they need not decode it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary<V> {
    /// Number of values that are NaN. If there are any, the rest describes the other values, and the
    /// first and last value may be NaN.
    pub nans: usize,
    /// Exact sum, unless it does not fit in two numbers.
    pub(crate) sum: Option<Halves>,
    /// Lowest value that is no NaN.
    pub lowest: V,
    /// Highest value that is no NaN.
    pub highest: V,
    /// Value of the first point.
    pub first: V,
    /// Value of the last point.
    pub last: V,
}

impl<V: Sample> Summary<V> {
    /// Summarises at least one value. O(n).
    pub(crate) fn of(values: &[V]) -> Self {
        let (first, last) = (values[0], values[values.len() - 1]);
        let mut numbers = Vec::with_capacity(values.len());
        let mut range: Option<(V, V)> = None;
        for value in values.iter().filter(|value| !value.is_nan()) {
            let (lowest, highest) = range.unwrap_or((*value, *value));
            let lowest = if *value < lowest { *value } else { lowest };
            let highest = if *value > highest { *value } else { highest };
            range = Some((lowest, highest));
            numbers.push(value.to_f64());
        }
        let (lowest, highest) = range.unwrap_or((first, first));
        let nans = values.len() - numbers.len();
        Self { nans, sum: Halves::of(&numbers), lowest, highest, first, last }
    }

    pub(super) fn flags(&self) -> u64 {
        self.nans as u64 | if self.sum.is_some() { SUM_KNOWN } else { 0 }
    }

    pub(super) fn encode(&self, into: &mut Words) {
        let sum = self.sum.unwrap_or_default();
        into.push(sum.high.to_bits());
        into.push(sum.low.to_bits());
        for value in [self.lowest, self.highest, self.first, self.last] {
            into.push(value.to_bits());
        }
    }

    pub(super) fn decode(words: &[u64], flags: u64) -> Self {
        let sum = Halves { high: f64::from_bits(words[0]), low: f64::from_bits(words[1]) };
        Self {
            nans: (flags & NAN_BITS) as usize,
            sum: (flags & SUM_KNOWN != 0).then_some(sum),
            lowest: V::from_bits(words[2]),
            highest: V::from_bits(words[3]),
            first: V::from_bits(words[4]),
            last: V::from_bits(words[5]),
        }
    }
}
