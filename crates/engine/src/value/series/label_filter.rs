//! Filters of labels: which series are meant.

use super::Labels;
use regex::bytes::Regex;

/// A regular expression that fits a whole value. A search takes time linear in the value's length.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Returns the pattern of an expression that is anchored at both ends.
    pub(crate) fn new(anchored: Regex) -> Self {
        Self(anchored)
    }

    /// Whether a whole value fits.
    pub(crate) fn fits(&self, value: &[u8]) -> bool {
        self.0.is_match(value)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

/// What a label shall have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// No value: the label is absent.
    Absence,
    /// One of these values, sorted.
    OneOf(Vec<Box<[u8]>>),
    /// A value that fits; a pattern that fits the empty text fits an absent label too.
    Fitting(Pattern),
}

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matcher {
    pub(crate) name: Box<[u8]>,
    pub(crate) wanted: Wanted,
    /// Whether the opposite is meant.
    pub(crate) negated: bool,
}

impl Matcher {
    /// Whether series without the label may match, so that the index of labels cannot find them all.
    pub(crate) fn is_negative(&self) -> bool {
        self.negated
            || match &self.wanted {
                Wanted::Absence => true,
                Wanted::OneOf(_) => false,
                Wanted::Fitting(pattern) => pattern.fits(b""),
            }
    }

    fn matches(&self, labels: &Labels) -> bool {
        let mut own = labels.values(&self.name).peekable();
        let is_absent = own.peek().is_none();
        let is_met = match &self.wanted {
            Wanted::Absence => is_absent,
            Wanted::OneOf(values) => {
                own.any(|value| values.binary_search_by(|wanted| (**wanted).cmp(value)).is_ok())
            }
            Wanted::Fitting(pattern) if is_absent => pattern.fits(b""),
            Wanted::Fitting(pattern) => own.any(|value| pattern.fits(value)),
        };
        is_met != self.negated
    }
}

/// Conditions that must all be met. Without conditions, every series is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelFilter(pub(crate) Vec<Matcher>);

impl LabelFilter {
    /// Whether a series with these labels is meant.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|matcher| matcher.matches(labels))
    }

    /// Returns labels with values, of which every series that is meant has one; `None` if no condition says
    /// so.
    pub(crate) fn needs(&self) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
        self.0.iter().find_map(|matcher| match &matcher.wanted {
            Wanted::OneOf(values) if !matcher.negated => {
                Some(values.iter().map(|value| (&*matcher.name, &**value)))
            }
            _ => None,
        })
    }

    /// Returns about how much memory it uses, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_matcher = |matcher: &Matcher| {
            let wanted = match &matcher.wanted {
                Wanted::Absence => 0,
                Wanted::OneOf(values) => {
                    values.iter().map(|value| size_of::<Box<[u8]>>() + value.len()).sum()
                }
                Wanted::Fitting(pattern) => PATTERN_BYTES + pattern.0.as_str().len(),
            };
            size_of::<Matcher>() + matcher.name.len() + wanted
        };
        self.0.iter().map(of_matcher).sum()
    }
}

/// Assumed memory of a compiled pattern, and of what a search keeps of it: that of a simple one.
const PATTERN_BYTES: usize = 16 << 10;
