//! A member with its score, shared by the table by name and the tree by order.

use crate::keyspace::{Keyed, MAX_BYTES};
use crate::persist::record::{Cursor, put_bytes};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use triomphe::ThinArc;

/// A member's bytes and score in one allocation behind a thin pointer.
///
/// The score is atomic only because the allocation is shared. It changes under `&mut` of the sorted
/// set that owns both pointers; a relaxed access costs the same as a plain one.
#[derive(Debug, Clone)]
pub(super) struct Member(ThinArc<AtomicU64, u8>);

impl Member {
    pub(super) fn new(name: &[u8], score: f64) -> Self {
        Self(ThinArc::from_header_and_slice(AtomicU64::new(score.to_bits()), name))
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.0.slice
    }

    pub(super) fn score(&self) -> f64 {
        f64::from_bits(self.0.header.header.load(Relaxed))
    }

    pub(super) fn set_score(&self, score: f64) {
        self.0.header.header.store(score.to_bits(), Relaxed);
    }
}

impl Keyed for Member {
    fn key(&self) -> &[u8] {
        self.name()
    }
}

/// A member in the order; the score is copied, so that most comparisons need no other memory.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    pub(super) score: f64,
    pub(super) member: Member,
}

impl Ranked {
    /// Compares with a score and name.
    pub(super) fn compare(&self, score: f64, name: &[u8]) -> Ordering {
        compare((self.score, self.member.name()), (score, name))
    }
}

/// Normalises a score: both zeros become positive zero.
pub(super) fn stored(score: f64) -> f64 {
    assert!(!score.is_nan(), "a score is a number");
    // Adding zero turns -0 into 0 and changes no other number.
    score + 0.0
}

/// Compares by score, then by bytes. Both zeros are equal.
pub(crate) fn compare(one: (f64, &[u8]), other: (f64, &[u8])) -> Ordering {
    // Not in release builds: every search compares. `stored` admits no NaN.
    debug_assert!(!one.0.is_nan() && !other.0.is_nan(), "a score is a number");
    one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal).then_with(|| one.1.cmp(other.1))
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other.score, other.member.name())
    }
}

/// Appends the snapshot form of a member: the 64 bits of its score, then its length and bytes.
pub(super) fn put_member(into: &mut Vec<u8>, member: &[u8], score: f64) {
    into.extend_from_slice(&score.to_le_bytes());
    put_bytes(into, member);
}

/// Parses the snapshot form; `None` if it is invalid.
pub(super) fn get_member<'a>(bytes: &mut Cursor<'a>) -> Option<(f64, &'a [u8])> {
    let score = Some(f64::from_bits(bytes.u64()?)).filter(|score| !score.is_nan())?;
    Some((score, bytes.bytes().filter(|member| member.len() <= MAX_BYTES)?))
}
