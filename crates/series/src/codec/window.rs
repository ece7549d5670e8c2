//! The window of integers that are packed by one width, and the exceptions outside of it.

use super::packing::{bit_length, packed_words};
use super::positions::exception_words;

/// Maps small magnitudes of both signs to small integers.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// Undoes [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// A lowest integer and a width, so that most of some integers lie in the window above it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    /// The lowest integer of the window.
    pub base: i64,
    /// Width in bits of what is packed.
    pub width: u32,
    /// Number of integers outside the window.
    pub exceptions: usize,
    /// Width in bits of an exception.
    pub exception_width: u32,
    /// Size in bits, exceptions included.
    pub bits: u64,
}

/// Share of exceptions above which decoding would be slow.
const EXCEPTIONS_MAX_SHARE: usize = 8;

impl Fit {
    /// Returns the cheapest of some windows: all integers; those from the lowest up; those around the
    /// median of a sample, and the range of what is in that window or in the next wider one. O(n), no
    /// allocation.
    pub(super) fn of(values: &[i64]) -> Self {
        let (mut low, mut high) = (values[0], values[0]);
        for value in values {
            low = low.min(*value);
            high = high.max(*value);
        }
        let width = bit_length(high.wrapping_sub(low).cast_unsigned());
        let bits = 64 * packed_words(values.len(), width) as u64;
        let all = Self { base: low, width, exceptions: 0, exception_width: 0, bits };
        // Widths this small cannot pay for an exception.
        if width <= 2 {
            return all;
        }
        let above_lowest = Self::narrowed(
            values,
            &all,
            |value| bit_length(value.wrapping_sub(low).cast_unsigned()),
            |_| low,
        );
        let median = median_of_sample(values);
        let around_median = Self::narrowed(
            values,
            &all,
            |value| bit_length(zigzag(value.wrapping_sub(median))),
            |width| median.wrapping_sub(if width == 0 { 0 } else { 1_i64 << (width - 1) }),
        );
        let trimmed = [0, 1].map(|wider| {
            if around_median.exceptions == 0 {
                return all;
            }
            let nearest = around_median.width + wider;
            Self::of_range(values, &all, |value| bit_length(zigzag(value.wrapping_sub(median))) <= nearest)
        });
        [all, above_lowest, around_median, trimmed[0], trimmed[1]]
            .into_iter()
            .min_by_key(|fit| fit.bits)
            .expect("five windows")
    }

    /// Returns the window from the lowest to the highest of the integers that are `inside`, or `all`
    /// if too many are not.
    fn of_range(values: &[i64], all: &Self, inside: impl Fn(i64) -> bool) -> Self {
        let mut outside = 0;
        let mut range: Option<(i64, i64)> = None;
        for value in values {
            if inside(*value) {
                let (low, high) = range.unwrap_or((*value, *value));
                range = Some((low.min(*value), high.max(*value)));
            } else {
                outside += 1;
            }
        }
        match range {
            Some((low, high)) if outside <= values.len() / EXCEPTIONS_MAX_SHARE => {
                let width = bit_length(high.wrapping_sub(low).cast_unsigned());
                // A value outside may still lie in the window, whose width is a whole number of bits.
                let fits = |value: &&i64| bit_length(value.wrapping_sub(low).cast_unsigned()) > width;
                let exceptions = values.iter().filter(fits).count();
                Self::sized(values.len(), low, width, exceptions, all)
            }
            _ => *all,
        }
    }

    /// Returns a window with its size.
    fn sized(count: usize, base: i64, width: u32, exceptions: usize, all: &Self) -> Self {
        // A window of all integers is at most one bit wider than their range, and so is an exception.
        let exception_width = if exceptions == 0 { 0 } else { (all.width + 2).min(64) };
        let words = packed_words(count, width) + exception_words(exceptions, exception_width);
        Self { base, width, exceptions, exception_width, bits: 64 * words as u64 }
    }

    /// Returns the best window narrower than `all`, or `all`. `bits_of` returns the narrowest width
    /// at which an integer is in the window, `base_of` the lowest integer of the window of a width.
    fn narrowed(
        values: &[i64],
        all: &Self,
        bits_of: impl Fn(i64) -> u32,
        base_of: impl Fn(u32) -> i64,
    ) -> Self {
        let mut counts = [0_usize; 65];
        for value in values {
            counts[bits_of(*value) as usize] += 1;
        }
        let mut best = *all;
        let mut outside: usize = counts[all.width as usize + 1..].iter().sum();
        for width in (0..all.width).rev() {
            outside += counts[width as usize + 1];
            if outside > values.len() / EXCEPTIONS_MAX_SHARE {
                break;
            }
            let fit = Self::sized(values.len(), base_of(width), width, outside, all);
            if fit.bits < best.bits {
                best = fit;
            }
        }
        best
    }
}

/// Returns the median of some of the integers, spread evenly.
fn median_of_sample(values: &[i64]) -> i64 {
    const SAMPLE: usize = 31;
    let mut sample = [0; SAMPLE];
    for (index, slot) in sample.iter_mut().enumerate() {
        *slot = values[index * (values.len() - 1) / (SAMPLE - 1)];
    }
    *sample.select_nth_unstable(SAMPLE / 2).1
}
