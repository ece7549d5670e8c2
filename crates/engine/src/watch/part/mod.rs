//! The part of its key's value that a read uses: the predicate before the evaluation of a watched
//! read.
//!
//! A command's table row declares it ([`crate::Command::looking_at`]). A read of a command that
//! declares nothing uses everything, and is evaluated after every change of its key.
//!
//! # Why a skipped read would have had the same answer
//!
//! [`Part::is_touched`] may return true without need, but never false if the answer differs from
//! that before the change. By induction over the changes of a record, a read that no change has
//! touched has the answer that it had after the record before, and its evaluation would emit
//! nothing. So emissions do not depend on predicates, and processes may differ in them. A change of
//! another type than the part's can only have created the key. It touches every part, because a key
//! of the wrong type is answered differently from a missing one.

mod window;

use crate::command::parse;
use crate::command::sorted_sets::range::Preset;
use crate::keyspace::{Entry, ValueRef};
use crate::value::{SortedSet, Type, TypedValue};
use crate::watch::touched::Touched;
use window::{Counted, Rank, Window};

/// Returns the part that a read of these arguments, the name first, uses. Everything, if it cannot
/// parse them.
pub(crate) type PartOf = fn(args: &[&[u8]]) -> Part;

/// The part of its only key's value that a read uses. Positions are those of its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// The whole value.
    Everything,
    /// Elements named by the arguments from position `from`: with their values, or only their
    /// presence.
    Elements { of: Type, from: usize, with_values: bool },
    /// Elements whose names match the pattern at this position, if any: with their values, or only
    /// their names.
    Matching { of: Type, pattern: Option<usize>, with_values: bool },
    /// Items of a list, or bytes of a string, between two ends. Both count from the front, or both,
    /// negative, from the back.
    Span { of: Type, first: i64, last: i64 },
    /// The number of items or bytes.
    Length { of: Type },
    /// The rank of a member of a sorted set.
    Rank(Rank),
    /// Members in a range.
    Window(Window),
    /// The number of members in a range.
    Counted(Counted),
    /// Points of a time series: with the open bucket of a compacted one, or only its own; only those
    /// between two times, or any.
    Points { with_open_bucket: bool, between: Option<(i64, i64)> },
    /// The labels of time series and lenses, whatever points they have.
    Labels,
}

impl Part {
    /// Elements named by all arguments after the key, with their values.
    pub(crate) fn elements(of: Type) -> Self {
        Self::Elements { of, from: 2, with_values: true }
    }

    /// The names of all elements, or their number.
    pub(crate) fn names(of: Type) -> Self {
        Self::Matching { of, pattern: None, with_values: false }
    }

    /// The part of an iteration over elements, whose options are in a read's canonical form: see
    /// [`crate::watch::Read`].
    pub(crate) fn scan(of: Type, args: &[&[u8]]) -> Self {
        let pattern = args.get(3).and_then(|option| parse::is(option, "MATCH").then_some(4));
        Self::Matching { of, pattern, with_values: true }
    }

    /// Items between the two ends at these positions.
    pub(crate) fn span(of: Type, args: &[&[u8]], first: usize, last: usize) -> Self {
        let end = |at: usize| args.get(at).and_then(|arg| parse::integer(arg).ok());
        match (end(first), end(last)) {
            (Some(first), Some(last)) => Self::Span { of, first, last },
            _ => Self::Everything,
        }
    }

    /// A range of a sorted set, whose bounds begin at position 2.
    pub(crate) fn window(args: &[&[u8]], preset: Preset) -> Self {
        Window::of(args, preset).map_or(Self::Everything, Self::Window)
    }

    /// The last points of time series.
    pub(crate) fn last_points(args: &[&[u8]]) -> Self {
        let with_open_bucket = args.iter().any(|word| parse::is(word, "LATEST"));
        Self::Points { with_open_bucket, between: None }
    }

    /// Points of a time series, whose ends and options begin at a position.
    pub(crate) fn points(args: &[&[u8]], at: usize) -> Self {
        let has = |option: &str| args.iter().skip(at).any(|word| parse::is(word, option));
        let with_open_bucket = has("LATEST");
        // Neighbours of the range may count in its buckets.
        let is_exact = !with_open_bucket && !has("AGGREGATION");
        let end = |at: usize, open: &[u8], none: i64| {
            let word = args.get(at)?;
            if *word == open { Some(none) } else { parse::canonical_integer(word) }
        };
        let between = if is_exact { end(at, b"-", 0).zip(end(at + 1, b"+", i64::MAX)) } else { None };
        Self::Points { with_open_bucket, between }
    }

    /// The number of members with scores in a range.
    pub(crate) fn counted_scores(args: &[&[u8]]) -> Self {
        Counted::of_scores(args).map_or(Self::Everything, Self::Counted)
    }

    /// The number of members in a range of members.
    pub(crate) fn counted_members() -> Self {
        Self::Counted(Counted::of_members())
    }

    /// The rank of the member at position 2, from either end.
    pub(crate) fn place(is_from_end: bool) -> Self {
        Self::Rank(Rank { is_from_end })
    }

    /// Returns whether a change may have changed the part that a read of these arguments uses.
    /// `entry` returns the key's entry after the change, if there is one.
    pub(crate) fn is_touched<'e>(
        &self,
        args: &[&[u8]],
        touched: &Touched<'_>,
        entry: impl FnOnce() -> Option<&'e Entry>,
    ) -> bool {
        let arg = |at: usize| args[at];
        match (self, touched) {
            (
                Self::Elements { of, from, with_values },
                Touched::Elements { of: touched, names, are_same },
            ) => {
                let named = &args[*from..];
                let is_named = |name: &[u8]| named.contains(&name);
                of != touched || ((*with_values || !are_same) && names.iter().any(is_named))
            }
            (
                Self::Matching { of, pattern, with_values },
                Touched::Elements { of: touched, names, are_same },
            ) => {
                let matches = |name: &[u8]| pattern.is_none_or(|at| parse::glob(arg(at), name));
                of != touched || ((*with_values || !are_same) && names.iter().any(matches))
            }
            (Self::Elements { of: Type::SortedSet, from, .. }, Touched::Moves(moves)) => {
                let named = &args[*from..];
                moves.iter().any(|moved| named.contains(&&*moved.member))
            }
            (Self::Matching { of: Type::SortedSet, pattern, with_values }, Touched::Moves(moves)) => {
                moves.iter().any(|moved| {
                    (*with_values || moved.from.is_some() != moved.to.is_some())
                        && pattern.is_none_or(|at| parse::glob(arg(at), &moved.member))
                })
            }
            (Self::Span { of, first, last }, Touched::Splice { of: touched, splice }) => {
                of != touched || splice.concerns(*first, *last)
            }
            (Self::Length { of }, Touched::Splice { of: touched, splice }) => {
                of != touched || splice.resizes()
            }
            (Self::Rank(place), Touched::Moves(moves)) => {
                place.is_touched(arg(2), moves, entry().and_then(sorted_set))
            }
            (Self::Window(window), Touched::Moves(moves)) => {
                window.is_touched(&arg, moves, entry().and_then(sorted_set))
            }
            (Self::Counted(counted), Touched::Moves(moves)) => {
                counted.is_touched(&arg, moves, entry().and_then(sorted_set))
            }
            (Self::Points { with_open_bucket, .. }, Touched::OpenBucket) => *with_open_bucket,
            (Self::Labels, Touched::Points(_) | Touched::OpenBucket | Touched::Shown) => false,
            (Self::Points { between: Some((from, to)), .. }, Touched::Points(points)) => {
                points.iter().any(|(time, _)| (from..=to).contains(&time))
            }
            _ => true,
        }
    }
}

fn sorted_set(entry: &Entry) -> Option<&SortedSet> {
    match entry.value() {
        ValueRef::Object(object) => SortedSet::from_object(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
