//! The lease of a leader: until when no other member can lead. Mirrored from the consensus into one
//! atomic, so that a read checks it with one load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::term::Term;

/// Bits of the word that hold the end of a term's number. The word of a term is replaced when the
/// term ends, so a stale one never meets a reader of a term 65,536 later.
const TERM_BITS: u32 = 16;

/// Part of the lease that readers do not use: clocks of machines differ in speed.
const TOLERANCE_DIVISOR: u32 = 16;

/// Mirror of the lease: `end in microseconds << 16 | lowest bits of the term`; 0 for none.
#[derive(Debug, Default)]
pub(crate) struct LeaseMirror(AtomicU64);

impl LeaseMirror {
    /// Notes that a quorum has acknowledged the leader of `term` with a message that it sent at
    /// `sent`.
    pub(crate) fn extend(&self, term: Term, sent: Duration, lease: Duration) {
        let until = sent + lease.saturating_sub(lease / TOLERANCE_DIVISOR);
        let word = ((until.as_micros() as u64) << TERM_BITS) | Self::bits(term);
        self.0.store(word, Ordering::Release);
    }

    /// Ends the lease, with the term.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Returns whether the lease of `term` is valid at `now`. One load.
    pub(crate) fn is_valid(&self, term: Term, now: Duration) -> bool {
        let word = self.0.load(Ordering::Acquire);
        let mask = (1 << TERM_BITS) - 1;
        word & mask == Self::bits(term) && (now.as_micros() as u64) < word >> TERM_BITS
    }

    fn bits(term: Term) -> u64 {
        term.0 & ((1 << TERM_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_of_one_term_and_ends() {
        let (mirror, ms) = (LeaseMirror::default(), Duration::from_millis);
        assert!(!mirror.is_valid(Term(0), Duration::ZERO));
        mirror.extend(Term(7), ms(1000), ms(160));
        assert!(mirror.is_valid(Term(7), ms(1149)) && !mirror.is_valid(Term(7), ms(1150)));
        assert!(!mirror.is_valid(Term(8), ms(1000)));
        mirror.clear();
        assert!(!mirror.is_valid(Term(7), ms(1000)));
    }
}
