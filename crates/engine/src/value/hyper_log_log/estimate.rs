//! The estimate of a sketch from its registers: the improved raw estimator of
//! [Ertl](https://arxiv.org/abs/1702.01284), as in Redis.

use super::{REGISTERS, RUN_BITS};

/// Number of values that six bits can have. Those above [`RUN_BITS`] + 1 occur in no sketch that elements
/// were added to; they count for nothing.
pub(super) const VALUES: usize = 64;

/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// Returns the estimate. `histogram[v]` is how many registers have the value `v`. Only additions,
/// products, quotients and square roots: all machines compute the same.
pub(super) fn estimate(histogram: &[usize; VALUES]) -> i64 {
    let longest = RUN_BITS as usize + 1;
    let m = REGISTERS as f64;
    let mut sum = m * tau((m - histogram[longest] as f64) / m);
    for count in histogram[1..longest].iter().rev() {
        sum = (sum + *count as f64) * 0.5;
    }
    sum += m * sigma(histogram[0] as f64 / m);
    // Without a register that counts, the sum is 0, and the quotient saturates.
    (ALPHA * m * m / sum).round() as i64
}

/// Contribution of the registers that are zero: a share of all registers.
fn sigma(share: f64) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut factor, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let next = sum + power * factor;
        factor += factor;
        if next <= sum {
            return next;
        }
        sum = next;
    }
}

/// Contribution of the registers that have the highest value: `share` is that of the others.
fn tau(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut root, mut factor, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        factor *= 0.5;
        let next = sum - (1.0 - root) * (1.0 - root) * factor;
        if next >= sum {
            return next / 3.0;
        }
        sum = next;
    }
}
