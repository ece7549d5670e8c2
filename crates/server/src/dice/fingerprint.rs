//! Fingerprint of a subscription: a number from which the read and the start of its own numbering
//! can be recovered, so the server keeps no state for absent clients.

use sha2::{Digest, Sha256};
use tidemark_engine::watch::{Query, Read};

/// Odd factor; [`INVERSE`] undoes it modulo 2^64.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = inverse(FACTOR);
/// Mask of a fingerprint's content. The lowest bit is always 1, because 0 means none.
const BITS: u64 = u64::MAX >> 1;

/// Returns the fingerprint of a subscription whose numbering starts after `base`. For the first
/// subscription to a query it is a hash of the read and the query's ID.
pub(super) fn of(query: &Query, base: u64) -> u64 {
    (hash(query.id().0, query.read()).wrapping_add(base.wrapping_mul(FACTOR)) & BITS) << 1 | 1
}

/// Returns the base of the subscription with this fingerprint; `None` if it fits no subscription.
pub(super) fn base(query: &Query, fingerprint: u64) -> Option<u64> {
    let base = (fingerprint >> 1).wrapping_sub(hash(query.id().0, query.read())).wrapping_mul(INVERSE) & BITS;
    // Another subscription's fingerprint would give a number far beyond the count.
    (fingerprint & 1 == 1 && base <= query.count()).then_some(base)
}

/// Hash of the read and its query's ID, so that a later query of the same read differs.
fn hash(id: u64, read: &Read) -> u64 {
    let mut digest = Sha256::new();
    digest.update(id.to_be_bytes());
    digest.update([read.db()]);
    for arg in read.args() {
        digest.update((arg.len() as u64).to_be_bytes());
        digest.update(arg);
    }
    digest.finalize().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Returns the inverse of an odd number modulo 2^64, by Newton's method: each step doubles the
/// correct bits, of which the start has three.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_can_be_undone() {
        assert_eq!(FACTOR.wrapping_mul(INVERSE), 1);
        for base in [0, 1, 2, 1 << 40, BITS] {
            assert_eq!(base.wrapping_mul(FACTOR).wrapping_mul(INVERSE) & BITS, base);
        }
    }
}
