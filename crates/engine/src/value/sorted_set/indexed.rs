//! Representation of large sorted sets: a table by name and a counted tree by order.

use super::member::{Member, Ranked, compare, put_member, stored};
use super::rank_tree::{self, RankTree};
use crate::keyspace::{Keyed, Table, hash};
use crate::value::Type;
use crate::value::capture::{self, PART_BYTES, Parts, Pieces, STEP_ELEMENTS};
use std::ops::Range;

/// Members by name and by order. Both have the same members with the same scores.
#[derive(Default)]
pub(super) struct Indexed {
    names: Table<Member>,
    order: RankTree<Ranked>,
    capture: Option<Box<Capture>>,
}

/// Capture of a set by a running snapshot, which walks in order.
struct Capture {
    parts: Parts,
    /// Last member that the walk has visited, with its score at that time.
    position: Option<(f64, Box<[u8]>)>,
    /// Members ahead of the walk that it must skip: already written, or added after the cut. A
    /// member is dropped from here when it is removed or moves behind the walk.
    settled: Table<Box<[u8]>>,
}

impl Keyed for Box<[u8]> {
    fn key(&self) -> &[u8] {
        self
    }
}

impl Indexed {
    /// Creates a set from distinct members in order. `capacity` is the expected number of members.
    pub(super) fn from_ascending<'a>(
        capacity: usize,
        members: impl Iterator<Item = (f64, &'a [u8])>,
    ) -> Self {
        let mut names = Table::with_capacity(capacity);
        let order = members.map(|(score, name)| {
            let score = stored(score);
            let member = Member::new(name, score);
            names.insert(hash(name), member.clone());
            Ranked { score, member }
        });
        let order = RankTree::from_ascending(order.collect());
        Self { names, order, capture: None }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        // Not in release builds: every access asks for the length. Changes assert it per member.
        debug_assert_eq!(self.names.len(), self.order.len());
        self.order.len()
    }

    #[inline]
    pub(super) fn score(&self, name: &[u8]) -> Option<f64> {
        self.names.get(hash(name), name).map(Member::score)
    }

    pub(super) fn rank(&self, name: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(name)?;
        Some((self.order.partition_point(|ranked| ranked.compare(score, name).is_lt()), score))
    }

    #[inline]
    pub(super) fn update(&mut self, name: &[u8], decide: impl FnOnce(Option<f64>) -> Option<f64>) {
        let hash = hash(name);
        let present = self.names.get(hash, name).map(Member::score);
        let Some(score) = decide(present).map(stored) else { return };
        if let Some(capture) = &mut self.capture {
            capture.before_change(name, present, Some(score));
        }
        let Some(old) = present else {
            let member = Member::new(name, score);
            self.order.insert(Ranked { score, member: member.clone() });
            self.names.insert(hash, member);
            return;
        };
        let ranked = self.order.remove(|ranked| ranked.compare(old, name));
        let mut ranked = ranked.expect("what the table holds is in the order too");
        ranked.score = score;
        ranked.member.set_score(score);
        self.order.insert(ranked);
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<f64> {
        let score = self.names.remove(hash(name), name)?.score();
        if let Some(capture) = &mut self.capture {
            capture.before_change(name, Some(score), None);
        }
        let ranked = self.order.remove(|ranked| ranked.compare(score, name));
        assert!(ranked.is_some(), "what the table holds is in the order too");
        Some(score)
    }

    pub(super) fn remove_range(&mut self, range: Range<usize>, mut taken: impl FnMut(&[u8], f64)) {
        let Self { names, order, capture } = self;
        order.remove_range(range, |ranked| {
            let name = ranked.member.name();
            if let Some(capture) = capture {
                capture.before_change(name, Some(ranked.score), None);
            }
            let removed = names.remove(hash(name), name);
            assert!(removed.is_some(), "what the order holds is in the table too");
            taken(name, ranked.score);
        });
    }

    pub(super) fn partition_point(&self, precedes: impl Fn(&[u8], f64) -> bool) -> usize {
        self.order.partition_point(|ranked| precedes(ranked.member.name(), ranked.score))
    }

    /// Whether all members have the same score.
    pub(super) fn has_one_score(&self) -> bool {
        let score = |rank: usize| self.get(rank).map(|(_, score)| score);
        score(0) == score(self.len().wrapping_sub(1))
    }

    pub(super) fn range(&self, range: Range<usize>) -> Iter<'_> {
        Iter(self.order.range(range))
    }

    pub(super) fn get(&self, rank: usize) -> Option<(&[u8], f64)> {
        self.order.get(rank).map(shown)
    }

    pub(super) fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        // A position in hash order has its significant bits on top. Reversed, it is no larger than
        // the table, so clients can keep it in signed or floating-point numbers.
        self.names
            .scan(cursor.reverse_bits(), count, |member| visit(member.name(), member.score()))
            .reverse_bits()
    }
}

impl Indexed {
    /// Whether a snapshot should write the set in parts.
    pub(super) fn is_large(&self) -> bool {
        let size = |member: &Member| size_of::<f64>() + member.name().len();
        capture::is_large(self.len(), self.names.iter().map(size))
    }

    /// Starts a capture of the present state, which a snapshot writes in parts.
    pub(super) fn begin_capture(&mut self, number: u64) {
        assert!(self.capture.is_none(), "value {number} is captured already");
        let parts = Parts::new(number, Type::SortedSet, self.len());
        self.capture = Some(Box::new(Capture { parts, position: None, settled: Table::new() }));
    }

    /// Whether a capture is running.
    pub(super) fn is_captured(&self) -> bool {
        self.capture.is_some()
    }

    /// Aborts the capture.
    pub(super) fn end_capture(&mut self) {
        self.capture = None;
    }

    /// Adds the next parts of a captured set, in order, so that loading them appends members.
    /// Returns whether there are more.
    pub(super) fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        let Some(capture) = &mut self.capture else { return false };
        let first =
            self.order.partition_point(|ranked| !capture.is_ahead(ranked.score, ranked.member.name()));
        let (mut last, mut bytes) = (None, 0);
        let mut rest = self.order.range(first..self.order.len());
        for ranked in rest.by_ref().take(STEP_ELEMENTS) {
            let name = ranked.member.name();
            if capture.settled.remove(hash(name), name).is_none() {
                capture.parts.push(|part| put_member(part, name, ranked.score));
            }
            last = Some(ranked);
            bytes += name.len();
            if bytes >= PART_BYTES {
                break;
            }
        }
        if let Some(last) = last {
            capture.position = Some((last.score, last.member.name().into()));
        }
        capture.parts.give_to(pieces);
        let more = rest.next().is_some();
        if !more && let Some(capture) = self.capture.take() {
            let left = capture.settled.len();
            assert!(left == 0, "the walk is at its end, and has not passed {left} members that are settled");
            capture.parts.end(pieces);
        }
        more
    }
}

impl Capture {
    /// Whether the walk has not reached this score and member yet.
    fn is_ahead(&self, score: f64, name: &[u8]) -> bool {
        self.position.as_ref().is_none_or(|(at, last)| compare((score, name), (*at, last)).is_gt())
    }

    /// Call it before a member is added or removed or its score changes.
    #[cold]
    fn before_change(&mut self, name: &[u8], present: Option<f64>, next: Option<f64>) {
        let ahead = present.filter(|&score| self.is_ahead(score, name));
        let will_be_ahead = next.is_some_and(|score| self.is_ahead(score, name));
        let hash = hash(name);
        let was_settled = self.settled.get(hash, name).is_some();
        assert!(!was_settled || ahead.is_some(), "a member that the walk has passed is settled");
        if let Some(score) = ahead.filter(|_| !was_settled) {
            self.parts.push(|part| put_member(part, name, score));
        }
        match (was_settled, will_be_ahead) {
            (false, true) => self.settled.insert(hash, name.into()),
            (true, false) => drop(self.settled.remove(hash, name)),
            (false, false) | (true, true) => {}
        }
    }
}

impl std::fmt::Debug for Indexed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.range(0..self.len())).finish()
    }
}

/// Iterator over members with scores, from either end.
pub(super) struct Iter<'a>(rank_tree::Iter<'a, Ranked>);

fn shown(ranked: &Ranked) -> (&[u8], f64) {
    (ranked.member.name(), ranked.score)
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(shown)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(shown)
    }
}

impl ExactSizeIterator for Iter<'_> {}
