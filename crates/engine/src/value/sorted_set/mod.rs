//! Sorted sets: distinct members ordered by score, then by bytes.
//!
//! A small set is packed into one buffer; a large one is a table by name, which is the member's
//! bytes, and a counted tree by order. A set that has outgrown the first representation never
//! returns to it, as in Redis; `OBJECT ENCODING` shows the representation.
//!
//! Costs are those of a large set. On a small one every operation scans at most
//! `packed::MAX_MEMBERS` members.

mod indexed;
mod member;
mod packed;
mod rank_tree;

use super::{InParts, Pieces, Value};
use crate::persist::record::{Cursor, put_varint};
use indexed::Indexed;
pub(crate) use member::compare;
use member::{get_member, put_member};
use packed::Packed;
use std::collections::HashSet;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Members with scores, which are never NaN.
#[derive(Debug, Default)]
pub struct SortedSet {
    form: Form,
}

/// Representation of a set.
#[derive(Debug)]
enum Form {
    Packed(Packed),
    Indexed(Box<Indexed>),
}

impl Default for Form {
    fn default() -> Self {
        Self::Packed(Packed::default())
    }
}

impl SortedSet {
    /// Creates a set from distinct members in order. O(n).
    pub fn from_ascending(members: &[(f64, &[u8])]) -> Self {
        // Not in release builds: one comparison for each member.
        debug_assert!(members.is_sorted_by(|one, next| compare(*one, *next).is_lt()));
        let longest = members.iter().map(|(_, member)| member.len()).max().unwrap_or(0);
        if members.len() > packed::MAX_MEMBERS || longest > packed::MAX_MEMBER_BYTES {
            let indexed = Indexed::from_ascending(members.len(), members.iter().copied());
            return Self { form: Form::Indexed(Box::new(indexed)) };
        }
        Self { form: Form::Packed(Packed::from_ascending(members)) }
    }

    /// Returns the name of the representation for `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Packed(_) => "listpack",
            Form::Indexed(_) => "skiplist",
        }
    }

    /// Returns the number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.len(),
            Form::Indexed(indexed) => indexed.len(),
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the score of a member. O(1).
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.form {
            Form::Packed(packed) => packed.find(member).map(|place| place.score),
            Form::Indexed(indexed) => indexed.score(member),
        }
    }

    /// Returns the rank of a member, from 0 at the lowest score, and its score. O(log n).
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match &self.form {
            Form::Packed(packed) => packed.find(member).map(|place| (place.rank, place.score)),
            Form::Indexed(indexed) => indexed.rank(member),
        }
    }

    /// Sets a member's score to the result of `decide`, which gets the present score or `None`. If
    /// it returns `None`, nothing changes. O(log n), or O(1) if nothing changes.
    #[inline]
    pub fn update(&mut self, member: &[u8], decide: impl FnOnce(Option<f64>) -> Option<f64>) {
        let packed = match &mut self.form {
            Form::Indexed(indexed) => return indexed.update(member, decide),
            Form::Packed(packed) => packed,
        };
        let place = packed.find(member);
        let Some(score) = decide(place.map(|place| place.score)) else { return };
        if let Some(place) = place {
            packed.remove(place);
        }
        if packed.takes(member.len()) {
            packed.insert(member, score);
        } else {
            let mut indexed = Indexed::from_ascending(
                packed.len() + 1,
                packed.iter().map(|(member, score)| (score, member)),
            );
            indexed.update(member, |_| Some(score));
            self.form = Form::Indexed(Box::new(indexed));
        }
    }

    /// Removes a member and returns its score. O(log n).
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.form {
            Form::Packed(packed) => {
                let place = packed.find(member)?;
                packed.remove(place);
                Some(place.score)
            }
            Form::Indexed(indexed) => indexed.remove(member),
        }
    }

    /// Removes the members of these ranks and passes them to `taken` in order. Ranks beyond the set
    /// are ignored. O(log n + members removed).
    pub fn remove_range(&mut self, range: Range<usize>, mut taken: impl FnMut(&[u8], f64)) {
        let range = self.clamp(range);
        match &mut self.form {
            Form::Packed(packed) => {
                packed.range(range.clone()).for_each(|(member, score)| taken(member, score));
                packed.remove_range(range);
            }
            Form::Indexed(indexed) => indexed.remove_range(range, taken),
        }
    }

    /// Returns the number of members that satisfy `precedes`. It must hold for a prefix of the
    /// order and for no member after that. O(log n).
    pub fn partition_point(&self, precedes: impl Fn(&[u8], f64) -> bool) -> usize {
        match &self.form {
            Form::Packed(packed) => {
                packed.iter().take_while(|(member, score)| precedes(member, *score)).count()
            }
            Form::Indexed(indexed) => indexed.partition_point(precedes),
        }
    }

    /// Like [`partition_point`](Self::partition_point), by names, which are ordered only if all
    /// scores are equal. Otherwise the result has no meaning, but it depends only on members and
    /// representation, not on history that a snapshot does not contain. O(log n), or O(log² n) if
    /// scores differ.
    pub fn partition_point_by_name(&self, precedes: impl Fn(&[u8]) -> bool) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.iter().take_while(|(member, _)| precedes(member)).count(),
            Form::Indexed(indexed) if indexed.has_one_score() => {
                indexed.partition_point(|member, _| precedes(member))
            }
            Form::Indexed(indexed) => {
                let (mut low, mut high) = (0, indexed.len());
                while low < high {
                    let middle = low.midpoint(high);
                    if indexed.get(middle).is_some_and(|(member, _)| precedes(member)) {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                low
            }
        }
    }

    /// Returns the member of a rank and its score. O(log n).
    pub fn get(&self, rank: usize) -> Option<(&[u8], f64)> {
        match &self.form {
            Form::Packed(packed) => packed.iter().nth(rank),
            Form::Indexed(indexed) => indexed.get(rank),
        }
    }

    /// Iterates over the members of these ranks with their scores, from either end. Ranks beyond
    /// the set are ignored. O(log n) to start and O(1) for each member.
    pub fn range(
        &self,
        range: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], f64)> + ExactSizeIterator {
        let range = self.clamp(range);
        match &self.form {
            Form::Packed(packed) => Members::Packed(packed.range(range)),
            Form::Indexed(indexed) => Members::Indexed(indexed.range(range)),
        }
    }

    /// Iterates over all members with their scores, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> + ExactSizeIterator {
        self.range(0..self.len())
    }

    /// Visits about `count` members from a cursor, or all of a small set, and returns the next
    /// cursor. 0 begins a scan and ends it. Members that stay during a whole scan are visited at
    /// least once.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        match &self.form {
            Form::Packed(packed) => {
                packed.iter().for_each(|(member, score)| visit(member, score));
                0
            }
            Form::Indexed(indexed) => indexed.scan(cursor, count, visit),
        }
    }

    /// Clamps a range of ranks to the existing members.
    fn clamp(&self, range: Range<usize>) -> Range<usize> {
        let end = range.end.min(self.len());
        range.start.min(end)..end
    }
}

/// Members of either representation.
enum Members<'a> {
    Packed(packed::Iter<'a>),
    Indexed(indexed::Iter<'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Packed(members) => members.next(),
            Self::Indexed(members) => members.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Packed(members) => members.size_hint(),
            Self::Indexed(members) => members.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Members<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Self::Packed(members) => members.next_back(),
            Self::Indexed(members) => members.next_back(),
        }
    }
}

impl ExactSizeIterator for Members<'_> {}

/// First byte of the snapshot form of a small set. The number of members and the members in order
/// follow.
const PACKED: u8 = 0;
/// First byte of the snapshot form of a large set, which may have few members by now.
const INDEXED: u8 = 1;

/// Minimum size of a member in a snapshot: its score and the length of its name. Bytes.
const ENCODED_MIN: usize = size_of::<f64>() + 1;

impl Value for SortedSet {
    collection_methods!();

    fn encode(&self, into: &mut Vec<u8>) {
        into.push(if matches!(self.form, Form::Packed(_)) { PACKED } else { INDEXED });
        put_varint(into, self.len() as u64);
        self.iter().for_each(|(member, score)| put_member(into, member, score));
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let form = bytes.u8()?;
        let count = usize::try_from(bytes.varint()?).ok()?;
        // An empty set is deleted, never written. A corrupt count cannot reserve more than a few
        // times the size of the snapshot.
        if count == 0 || count > bytes.remaining() / ENCODED_MIN {
            return None;
        }
        let mut members = Vec::with_capacity(count);
        for _ in 0..count {
            let member = get_member(bytes)?;
            if members.last().is_some_and(|last| compare(*last, member).is_ge()) {
                return None;
            }
            members.push(member);
        }
        // A name could occur twice with different scores, which the order alone does not show.
        let names: HashSet<&[u8], foldhash::fast::RandomState> =
            members.iter().map(|member| member.1).collect();
        if names.len() != count {
            return None;
        }
        match (form, Self::from_ascending(&members)) {
            (PACKED, set) if matches!(set.form, Form::Packed(_)) => Some(set),
            // It keeps its representation even if it would fit the other one by now.
            (INDEXED, _) => {
                let indexed = Indexed::from_ascending(count, members.into_iter());
                Some(Self { form: Form::Indexed(Box::new(indexed)) })
            }
            _ => None,
        }
    }

    fn digest(&self) -> u64 {
        const SEED: u64 = 0x7a73_6574;
        // A sum, so the order of the members does not matter; nor does the representation.
        let digests = self.iter().map(|(member, score)| xxh3_64_with_seed(member, score.to_bits() ^ SEED));
        digests.fold(self.len() as u64, u64::wrapping_add)
    }
}

impl InParts for SortedSet {
    fn needs_parts(&self) -> bool {
        matches!(&self.form, Form::Indexed(indexed) if indexed.is_large())
    }

    fn begin_capture(&mut self, number: u64) {
        if let Form::Indexed(indexed) = &mut self.form {
            indexed.begin_capture(number);
        }
    }

    fn end_capture(&mut self) {
        if let Form::Indexed(indexed) = &mut self.form {
            indexed.end_capture();
        }
    }

    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn is_captured(&self) -> bool {
        matches!(&self.form, Form::Indexed(indexed) if indexed.is_captured())
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        match &mut self.form {
            Form::Packed(_) => false,
            Form::Indexed(indexed) => indexed.capture_step(pieces),
        }
    }

    fn decode_element(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        let (score, member) = get_member(bytes)?;
        let mut is_new = false;
        self.update(member, |present| {
            is_new = present.is_none();
            is_new.then_some(score)
        });
        is_new.then_some(())
    }
}

#[cfg(test)]
mod tests;
