//! What a command has touched of a key's value, so that watched reads of the rest are not
//! evaluated.
//!
//! ```text
//! handler ─► Keys::changed_in(key, event, Touched) ─► Watched::note ─► Part::is_touched: evaluate, or not
//! ```
//!
//! A command may report more than it has touched, never less: a query that is not noted keeps its
//! answer. Nothing is collected unless a query reads keys of the shard.

use crate::value::Type;
use crate::value::series::PointsBefore;

/// Most elements that queries are checked against one by one. More may cost more than an
/// evaluation.
const MAX_NAMED: usize = 64;

/// What may have changed of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Touched<'a> {
    /// Anything: the key was created, removed or replaced, or its deadline changed.
    Everything,
    /// Elements of a hash or set. The first may have created the key, the last may have removed it.
    Elements {
        of: Type,
        names: Names<'a>,
        /// No element was added or removed; only values have changed.
        are_same: bool,
    },
    /// Members of a sorted set, in the order of their moves; the key as for `Elements`.
    Moves(&'a [Move]),
    /// Items of a list, or bytes of a string; the key as for `Elements`.
    Splice { of: Type, splice: Splice },
    /// Points of a time series, as they were before: see [`crate::value::series::PointsBefore`].
    Points(&'a [(i64, Option<f64>)]),
    /// What a compacted series would get if its open bucket were over: only reads with `LATEST` see it.
    OpenBucket,
    /// What a lens shows, because a key that it sees has changed. The lens itself is the same.
    Shown,
}

/// Names among arguments: every `step`-th.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    args: &'a [&'a [u8]],
    step: usize,
}

impl<'a> Names<'a> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.args.iter().step_by(self.step).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.args.len().div_ceil(self.step)
    }
}

impl<'a> Touched<'a> {
    /// Points of a series, if they were recorded.
    pub(crate) fn points(before: &'a PointsBefore) -> Self {
        match before {
            // Nobody asks which.
            PointsBefore::Unwatched => Self::Points(&[]),
            PointsBefore::Unknown => Self::Everything,
            PointsBefore::Known(points) => Self::Points(points),
        }
    }

    /// Elements of a type, all of them added or removed.
    #[inline]
    pub(crate) fn names(of: Type, names: &'a [&'a [u8]]) -> Self {
        Self::Elements { of, names: Names { args: names, step: 1 }, are_same: false }
    }

    /// Fields of a hash. `are_same`: no field was added or removed.
    #[inline]
    pub(crate) fn fields(names: &'a [&'a [u8]], are_same: bool) -> Self {
        Self::Elements { of: Type::Hash, names: Names { args: names, step: 1 }, are_same }
    }

    /// As [`Touched::fields`], from alternating fields and values.
    #[inline]
    pub(crate) fn pairs(pairs: &'a [&'a [u8]], are_same: bool) -> Self {
        Self::Elements { of: Type::Hash, names: Names { args: pairs, step: 2 }, are_same }
    }

    /// Returns whether there are more elements than queries are checked against.
    pub(crate) fn names_many(&self) -> bool {
        matches!(self, Self::Elements { names, .. } if names.len() > MAX_NAMED)
    }

    /// Calls `each` with the name of every touched element of type `of`, and with what is touched
    /// of that element alone. Returns false, without calls, if the type differs or there are more
    /// than `most` and `MAX_NAMED` elements; the caller then checks its elements itself.
    pub(crate) fn each_name(&self, of: Type, most: usize, mut each: impl FnMut(&[u8], &Touched<'_>)) -> bool {
        match *self {
            Self::Elements { of: touched, names, are_same }
                if touched == of && names.len() <= most.max(MAX_NAMED) =>
            {
                for name in names.iter() {
                    let names = Names { args: &[name], step: 1 };
                    each(name, &Touched::Elements { of, names, are_same });
                }
                true
            }
            Self::Moves(moves) if of == Type::SortedSet => {
                moves
                    .iter()
                    .for_each(|moved| each(&moved.member, &Touched::Moves(std::slice::from_ref(moved))));
                true
            }
            _ => false,
        }
    }
}

/// Move of a member of a sorted set: its score before and after, `None` where absent.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) member: Box<[u8]>,
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
}

/// Moves that a command makes, recorded for watched reads of the key.
#[derive(Debug)]
pub(crate) enum Moves {
    /// Not recorded: no read watches the key, or there are too many moves.
    Unknown,
    Known(Vec<Move>),
}

impl Moves {
    /// Returns an empty record.
    pub(crate) fn none(are_wanted: bool) -> Self {
        if are_wanted { Self::Known(Vec::new()) } else { Self::Unknown }
    }

    #[inline]
    pub(crate) fn note(&mut self, member: &[u8], from: Option<f64>, to: Option<f64>) {
        if let Self::Known(_) = self {
            self.push(member, from, to);
        }
    }

    #[cold]
    fn push(&mut self, member: &[u8], from: Option<f64>, to: Option<f64>) {
        match self {
            Self::Known(moves) if moves.len() < MAX_NAMED => {
                moves.push(Move { member: member.into(), from, to });
            }
            _ => *self = Self::Unknown,
        }
    }

    pub(crate) fn touched(&self) -> Touched<'_> {
        match self {
            Self::Unknown => Touched::Everything,
            Self::Known(moves) => Touched::Moves(moves),
        }
    }
}

/// Replacement in a sequence of `old_len` items: those from `start` to `old_end` became those from
/// `start` to `new_end`. The items after them have moved along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Splice {
    start: usize,
    old_end: usize,
    new_end: usize,
    old_len: usize,
}

impl Splice {
    /// Items were added at the front, or removed there.
    pub(crate) fn front(old_len: usize, new_len: usize) -> Self {
        let (old_end, new_end) = (old_len.saturating_sub(new_len), new_len.saturating_sub(old_len));
        Self { start: 0, old_end, new_end, old_len }
    }

    /// Items were added at the back, or removed there.
    pub(crate) fn back(old_len: usize, new_len: usize) -> Self {
        Self { start: old_len.min(new_len), old_end: old_len, new_end: new_len, old_len }
    }

    /// Items from `start` to `end` were overwritten; missing ones were appended.
    pub(crate) fn over(old_len: usize, start: usize, end: usize) -> Self {
        Self { start: start.min(old_len), old_end: end.min(old_len), new_end: end, old_len }
    }

    pub(crate) fn resizes(&self) -> bool {
        self.old_end != self.new_end
    }

    /// Returns whether the splice may concern the items from `first` to `last`. Both count from the
    /// front, or both, negative, from the back. An end before the front may mean the first item.
    pub(crate) fn concerns(&self, first: i64, last: i64) -> bool {
        let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (start, old_end, old_len) = (signed(self.start), signed(self.old_end), signed(self.old_len));
        let is_as_long = !self.resizes();
        if first >= 0 && last >= 0 {
            return !(last < start || (is_as_long && first >= old_end));
        }
        if first >= 0 || last >= 0 {
            return true;
        }
        let is_in_kept_end = first.saturating_neg() <= old_len - old_end;
        !(is_in_kept_end || (is_as_long && last.saturating_add(old_len).max(0) < start))
    }
}
