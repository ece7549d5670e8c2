//! What `PFSELFTEST` tests.

use super::{Sketch, add, create, invalidate, make_dense};

/// Most elements that are added; Redis adds a hundred times as many, and blocks for seconds.
const ELEMENTS_MAX: u64 = 100_000;

/// Tests with random elements that sparse and dense sketches agree, and that their estimates are as exact
/// as promised. Takes some milliseconds.
///
/// # Errors
/// What was found.
pub(crate) fn test(seed: u64) -> Result<(), String> {
    let (mut sparse, mut dense) = (Vec::new(), Vec::new());
    create(&mut sparse);
    create(&mut dense);
    make_dense(&mut dense);
    let mut added = 0;
    for target in [1, 10, 100, 1000, 10_000, ELEMENTS_MAX] {
        while added < target {
            // Distinct, because multiplication by an odd number is a permutation.
            let element = (seed ^ added).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
            if add(&mut sparse, &element) != add(&mut dense, &element) {
                return Err(format!("dense/sparse disagree on element {added}"));
            }
            added += 1;
        }
        let estimates = [&mut sparse, &mut dense].map(|bytes| {
            invalidate(bytes);
            Sketch::of(bytes).map(Sketch::count)
        });
        let [Ok(estimate), Ok(other)] = estimates else {
            return Err(format!("a sketch of {target} elements is not valid"));
        };
        if estimate != other {
            return Err(format!("dense/sparse disagree: {estimate} and {other} of {target}"));
        }
        // Six standard errors; a collision among the first elements weighs more.
        let allowed = (0.0081 * 6.0 * target as f64).ceil().max(1.0);
        if (estimate as f64 - target as f64).abs() > allowed {
            return Err(format!("Too big error. card:{target} estimate:{estimate}"));
        }
    }
    Ok(())
}
