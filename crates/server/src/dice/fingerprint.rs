//! What a client calls its subscription: a number that says which read it is of and where its own numbers begin, so that
//! nothing is kept for a client that is away.

use sha2::{Digest, Sha256};
use tidemark_engine::watch::{Query, Read};

/// Multiplying by it and then by [`INVERSE`] changes nothing, modulo 2^64.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = inverse(FACTOR);
/// A fingerprint is odd, because 0 means that there is none: all but the lowest bit carry something.
const BITS: u64 = u64::MAX >> 1;

/// The fingerprint of a subscription to a query whose first number is that behind `base`. For the first subscription to a
/// query it is a hash of the read alone.
pub(super) fn of(query: &Query, base: u64) -> u64 {
    (hash(query.id().0, query.read()).wrapping_add(base.wrapping_mul(FACTOR)) & BITS) << 1 | 1
}

/// Where the numbers of a subscription to this query begin that has this fingerprint; `None` if there can be none.
pub(super) fn base(query: &Query, fingerprint: u64) -> Option<u64> {
    let base = (fingerprint >> 1).wrapping_sub(hash(query.id().0, query.read())).wrapping_mul(INVERSE) & BITS;
    // A fingerprint of something else would give a number far beyond any count.
    (fingerprint & 1 == 1 && base <= query.count()).then_some(base)
}

/// A hash of the read and of its query's id, so that one which is forgotten and watched anew is another one.
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

/// The number by which an odd number has to be multiplied to give 1, modulo 2^64. Each step doubles the bits that are right,
/// and three are from the start.
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
