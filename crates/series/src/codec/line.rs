//! A line near rising integers.

use super::packing::bit_length;

/// Most fraction bits of a line's slope: enough to be off by less than 1 after 1,024 steps.
pub(super) const FRACTION_MAX: u32 = 20;

/// A line through the origin: `slope / 2^fraction` for each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub slope: i64,
    pub fraction: u32,
}

impl Line {
    /// The line of zeros.
    pub(super) const FLAT: Self = Self { slope: 0, fraction: 0 };

    /// Returns the line with the least squares of distances to `steps`; flat if it would overflow.
    pub(super) fn through(steps: &[i64]) -> Self {
        let (last, intervals) = (steps[steps.len() - 1], steps.len() - 1);
        let bits = bit_length(last.unsigned_abs());
        // One bit more for a slope above that of the last step.
        if intervals == 0 || bits > 61 {
            return Self::FLAT;
        }
        let fraction = FRACTION_MAX.min(61 - bits);
        let regular = steps[1].checked_mul(intervals as i64) == Some(last);
        let slope = if regular {
            steps[1] << fraction
        } else {
            (least_squares_slope(steps) * (1_i64 << fraction) as f64) as i64
        };
        let bounded = slope.unsigned_abs() <= (1 << 62) / intervals as u64;
        if bounded { Self { slope, fraction } } else { Self::FLAT }
    }

    /// Returns the height at a position.
    #[inline]
    pub(super) fn at(self, index: usize) -> i64 {
        self.slope.wrapping_mul(index as i64) >> self.fraction
    }

    /// Returns how many of the first `count` positions have at most `height`, on a line that rises.
    #[inline]
    pub(super) fn positions_up_to(self, height: i64, count: usize) -> usize {
        debug_assert!(self.slope > 0 && count > 0, "slope {}, {count} positions", self.slope);
        if height < 0 {
            return 0;
        }
        if height >= self.at(count - 1) {
            return count;
        }
        // `height` is below the line's end, which has at most 62 bits with its fraction.
        let above = ((height + 1) << self.fraction).cast_unsigned();
        above.div_ceil(self.slope.cast_unsigned()) as usize
    }
}

/// Returns the slope of the line of which the squares of the distances to `steps` are least, up to
/// rounding.
fn least_squares_slope(steps: &[i64]) -> f64 {
    const LANES: usize = 8;
    let count = steps.len() as f64;
    let middle = (count - 1.0) / 2.0;
    // Several sums, so that an addition need not wait for the one before.
    let mut sums = [0.0; LANES];
    for (chunk, steps) in steps.chunks(LANES).enumerate() {
        for (lane, (sum, step)) in sums.iter_mut().zip(steps).enumerate() {
            *sum += ((chunk * LANES + lane) as f64 - middle) * *step as f64;
        }
    }
    12.0 * sums.iter().sum::<f64>() / (count * (count * count - 1.0))
}
