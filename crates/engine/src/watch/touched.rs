//! What a command has touched of a key's value, so that watched reads of the rest need not be answered anew.
//!
//! ```text
//! handler ─► Keys::changed_in(key, event, Touched) ─► Watched::note ─► Part::is_touched: answer anew, or not
//! ```
//!
//! A command may say that it has touched more than it has, never less: whoever is not told keeps the answer that it has.
//! Nothing of this is made up unless somebody reads keys of the shard.

use crate::value::Type;

/// Most elements that reads are asked about one by one. To ask about more may take longer than to answer.
const MAX_NAMED: usize = 64;

/// What may have changed of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Touched<'a> {
    /// Anything: the key has come, gone or been given another value, or it has another deadline.
    Everything,
    /// These elements of a hash or a set; the key may have come with the first or gone with the last of them.
    Elements {
        of: Type,
        names: Names<'a>,
        /// No element has come or gone: only values have changed.
        are_same: bool,
    },
    /// These members of a sorted set, in the order in which they have moved; the key as above.
    Moves(&'a [Move]),
    /// Items of a list, or bytes of a string; the key as above.
    Splice { of: Type, splice: Splice },
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
    /// Elements of a type, all of which have come or gone.
    #[inline]
    pub(crate) fn names(of: Type, names: &'a [&'a [u8]]) -> Self {
        Self::Elements { of, names: Names { args: names, step: 1 }, are_same: false }
    }

    /// Fields of a hash; whether there are the same ones as before.
    #[inline]
    pub(crate) fn fields(names: &'a [&'a [u8]], are_same: bool) -> Self {
        Self::Elements { of: Type::Hash, names: Names { args: names, step: 1 }, are_same }
    }

    /// As [`Touched::fields`], of fields and values that alternate.
    #[inline]
    pub(crate) fn pairs(pairs: &'a [&'a [u8]], are_same: bool) -> Self {
        Self::Elements { of: Type::Hash, names: Names { args: pairs, step: 2 }, are_same }
    }

    /// Whether it names more elements than reads are to be asked about.
    pub(crate) fn names_many(&self) -> bool {
        matches!(self, Self::Elements { names, .. } if names.len() > MAX_NAMED)
    }

    /// Calls for each element with its name and what is touched of it alone, if these are elements of this type, and no more
    /// than `most` or a few; otherwise whoever looks at elements by name is to look for himself.
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

/// What has become of a member of a sorted set: its scores before and after, as far as it was and is there.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) member: Box<[u8]>,
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
}

/// The moves that a command makes, noted for whoever watches the key.
#[derive(Debug)]
pub(crate) enum Moves {
    /// Nobody does, or there are too many.
    Unknown,
    /// All of them.
    Known(Vec<Move>),
}

impl Moves {
    /// None yet.
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

/// Of `old_len` items, those from `start` to `old_end` were replaced by what is now from `start` to `new_end`; what was behind
/// them is behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Splice {
    start: usize,
    old_end: usize,
    new_end: usize,
    old_len: usize,
}

impl Splice {
    /// Items were put in front of all, or taken from there.
    pub(crate) fn front(old_len: usize, new_len: usize) -> Self {
        let (old_end, new_end) = (old_len.saturating_sub(new_len), new_len.saturating_sub(old_len));
        Self { start: 0, old_end, new_end, old_len }
    }

    /// Items were put behind all, or taken from there.
    pub(crate) fn back(old_len: usize, new_len: usize) -> Self {
        Self { start: old_len.min(new_len), old_end: old_len, new_end: new_len, old_len }
    }

    /// The items from `start` to `end` were overwritten; if there were not so many, what was missing has been added.
    pub(crate) fn over(old_len: usize, start: usize, end: usize) -> Self {
        Self { start: start.min(old_len), old_end: end.min(old_len), new_end: end, old_len }
    }

    /// Whether there are more or fewer items than before.
    pub(crate) fn resizes(&self) -> bool {
        self.old_end != self.new_end
    }

    /// Whether it may concern the items from `first` to `last`, which both count from the front, or both, negative, from the
    /// back. An end that lies before the front may mean the first item.
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
