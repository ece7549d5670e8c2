//! What part of its key's value a read looks at: the predicate that stands before the evaluation of a watched read.
//!
//! A command of the table declares it, beside what it reads ([`crate::Command::looking_at`]). A command that declares nothing
//! looks at everything, and is answered anew whenever its key has changed.
//!
//! # Why a read that is passed over would have had the same answer
//!
//! [`Part::is_touched`] may say yes without need, and never no if the answer differs from that before the change. Then, by
//! induction over the changes of a record, a read that no change has touched has the answer that it had behind the record before, and
//! evaluating it would have emitted nothing. So emissions do not depend on predicates, and any process may have others.
//! A change that is of another type than the part is can only have made the key: it touches all of it, because a key of the
//! wrong type is answered otherwise than one that is not there.

mod window;

use crate::command::parse;
use crate::command::sorted_sets::range::Preset;
use crate::keyspace::{Entry, ValueRef};
use crate::value::{Collection, SortedSet, Type};
use crate::watch::touched::Touched;
use window::{Counted, Place, Window};

/// Says what a read of these arguments, the name first, looks at. Arguments that it cannot make sense of look at everything.
pub(crate) type PartOf = fn(args: &[&[u8]]) -> Part;

/// What a read looks at of the value of its only key. Positions are those of its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// Whatever there is.
    Everything,
    /// The elements that the arguments from this one on name, and what they hold or only whether they are there.
    Elements { of: Type, from: usize, with_values: bool },
    /// Elements whose names match the pattern at this position, if there is one, and what they hold or only which there are.
    Matching { of: Type, pattern: Option<usize>, with_values: bool },
    /// Items of a list, or bytes of a string, between two ends: both counted from the front, or both, negative, from the back.
    Span { of: Type, first: i64, last: i64 },
    /// How many items or bytes there are.
    Length { of: Type },
    /// How many members of a sorted set come before one of them.
    Place(Place),
    /// Members in a range.
    Window(Window),
    /// How many members are in a range.
    Counted(Counted),
}

impl Part {
    /// The elements that all arguments behind the key name, with what they hold.
    pub(crate) fn elements(of: Type) -> Self {
        Self::Elements { of, from: 2, with_values: true }
    }

    /// Which elements there are, or how many.
    pub(crate) fn names(of: Type) -> Self {
        Self::Matching { of, pattern: None, with_values: false }
    }

    /// What an iteration over elements looks at, whose options are those of a watched read: see [`crate::watch::Read`].
    pub(crate) fn scan(of: Type, args: &[&[u8]]) -> Self {
        let pattern = args.get(3).and_then(|option| parse::is(option, "MATCH").then_some(4));
        Self::Matching { of, pattern, with_values: true }
    }

    /// Items between two ends that stand at these positions.
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

    /// How many members have scores in a range.
    pub(crate) fn counted_scores(args: &[&[u8]]) -> Self {
        Counted::of_scores(args).map_or(Self::Everything, Self::Counted)
    }

    /// How many members are in a range of members.
    pub(crate) fn counted_members() -> Self {
        Self::Counted(Counted::of_members())
    }

    /// How many members come before the one at position 2, from either end.
    pub(crate) fn place(is_from_end: bool) -> Self {
        Self::Place(Place { is_from_end })
    }

    /// Whether a change may have changed what a read of these arguments looks at. `entry` gives the key's entry after the change, if
    /// there is one.
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
            (Self::Place(place), Touched::Moves(moves)) => {
                place.is_touched(arg(2), moves, entry().and_then(sorted_set))
            }
            (Self::Window(window), Touched::Moves(moves)) => {
                window.is_touched(&arg, moves, entry().and_then(sorted_set))
            }
            (Self::Counted(counted), Touched::Moves(moves)) => {
                counted.is_touched(&arg, moves, entry().and_then(sorted_set))
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
