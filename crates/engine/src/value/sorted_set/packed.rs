//! Representation of small sorted sets: members and scores in order, in one buffer.
//!
//! ```text
//! length u8 │ score f64 │ member │ length u8      the length on both sides allows both directions
//! ```

use super::member::{compare, stored};
use std::ops::Range;

/// Most members of this representation, as in Redis.
pub(super) const MAX_MEMBERS: usize = 128;
/// Longest member of this representation, in bytes, as in Redis.
pub(super) const MAX_MEMBER_BYTES: usize = 64;
const _: () = assert!(MAX_MEMBER_BYTES <= u8::MAX as usize);
const _: () = assert!(MAX_MEMBERS <= u8::MAX as usize);

/// Overhead of a member, in bytes.
const OVERHEAD: usize = 1 + size_of::<f64>() + 1;

/// At most [`MAX_MEMBERS`] members of at most [`MAX_MEMBER_BYTES`] bytes. All operations are O(n).
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    len: u8,
}

/// Position of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberPosition {
    pub(super) rank: usize,
    pub(super) score: f64,
    offset: usize,
    width: usize,
}

impl Packed {
    /// Creates a set from distinct members in order, which must fit this representation.
    pub(super) fn from_ascending(members: &[(f64, &[u8])]) -> Self {
        assert!(members.len() <= MAX_MEMBERS, "{} members in a form of {MAX_MEMBERS}", members.len());
        let mut bytes = Vec::with_capacity(members.iter().map(|(_, member)| OVERHEAD + member.len()).sum());
        for (score, member) in members {
            let length = u8::try_from(member.len()).expect("a member fits the form");
            bytes.push(length);
            bytes.extend_from_slice(&stored(*score).to_le_bytes());
            bytes.extend_from_slice(member);
            bytes.push(length);
        }
        Self { bytes, len: members.len() as u8 }
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether one more member of `member_bytes` fits this representation.
    pub(super) fn takes(&self, member_bytes: usize) -> bool {
        self.len() < MAX_MEMBERS && member_bytes <= MAX_MEMBER_BYTES
    }

    pub(super) fn iter(&self) -> Iter<'_> {
        Iter { bytes: &self.bytes, left: self.len() }
    }

    #[inline]
    pub(super) fn find(&self, member: &[u8]) -> Option<MemberPosition> {
        let mut offset = 0;
        for (rank, (other, score)) in self.iter().enumerate() {
            let width = OVERHEAD + other.len();
            if other == member {
                return Some(MemberPosition { rank, score, offset, width });
            }
            offset += width;
        }
        None
    }

    /// Adds a member. It must not be in the set.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) {
        // Not in release builds: the caller has just searched.
        debug_assert!(self.takes(member.len()) && self.find(member).is_none());
        let before = |other: &(&[u8], f64)| compare((other.1, other.0), (score, member)).is_lt();
        let at: usize = self.iter().take_while(before).map(|(other, _)| OVERHEAD + other.len()).sum();
        let (end, width) = (self.bytes.len(), OVERHEAD + member.len());
        if self.bytes.capacity() < end + width {
            // Grows by an eighth: doubling would waste the memory that this representation saves.
            self.bytes.reserve_exact(width + end / 8);
        }
        self.bytes.resize(end + width, 0);
        self.bytes.copy_within(at..end, at + width);
        let gap = &mut self.bytes[at..at + width];
        let length = member.len() as u8;
        gap[0] = length;
        gap[1..9].copy_from_slice(&stored(score).to_le_bytes());
        gap[9..width - 1].copy_from_slice(member);
        gap[width - 1] = length;
        self.len += 1;
    }

    /// Removes the member at a place that [`Packed::find`] has just returned.
    pub(super) fn remove(&mut self, place: MemberPosition) {
        self.bytes.drain(place.offset..place.offset + place.width);
        self.len -= 1;
    }

    /// Removes the members of these ranks, which must exist.
    pub(super) fn remove_range(&mut self, range: Range<usize>) {
        let bytes = self.bytes_of(&range);
        self.bytes.drain(bytes);
        self.len -= range.len() as u8;
    }

    /// Iterates over the members of these ranks, which must exist.
    pub(super) fn range(&self, range: Range<usize>) -> Iter<'_> {
        Iter { bytes: &self.bytes[self.bytes_of(&range)], left: range.len() }
    }

    /// Returns the byte range of the members of these ranks.
    fn bytes_of(&self, range: &Range<usize>) -> Range<usize> {
        // Not in release builds: the length is counted.
        debug_assert!(range.start <= range.end && range.end <= self.len());
        if *range == (0..self.len()) {
            return 0..self.bytes.len();
        }
        let mut widths = self.iter().map(|(member, _)| OVERHEAD + member.len());
        let start: usize = widths.by_ref().take(range.start).sum();
        start..start + widths.take(range.len()).sum::<usize>()
    }
}

/// Iterator over members with scores, from either end.
#[derive(Debug, Clone)]
pub(super) struct Iter<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let width = OVERHEAD + *self.bytes.first()? as usize;
        let (entry, rest) = self.bytes.split_at_checked(width)?;
        self.bytes = rest;
        self.left -= 1;
        parse(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let width = OVERHEAD + *self.bytes.last()? as usize;
        let (rest, entry) = self.bytes.split_at_checked(self.bytes.len().checked_sub(width)?)?;
        self.bytes = rest;
        self.left -= 1;
        parse(entry)
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[inline]
fn parse(entry: &[u8]) -> Option<(&[u8], f64)> {
    let (score, rest) = entry.get(1..)?.split_first_chunk::<8>()?;
    let (_, member) = rest.split_last()?;
    Some((member, f64::from_le_bytes(*score)))
}
