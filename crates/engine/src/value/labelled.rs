//! What filters of labels find.

use super::{Labels, Lens, Object, TimeSeries};

/// A value with labels.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Labelled<'v> {
    Series(&'v TimeSeries),
    Lens(&'v Lens),
}

impl<'v> Labelled<'v> {
    /// Returns the value if its type has labels.
    #[inline]
    pub(crate) fn of(object: &'v Object) -> Option<Self> {
        match object {
            Object::Series(series) => Some(Self::Series(series)),
            Object::Lens(lens) => Some(Self::Lens(lens)),
            _ => None,
        }
    }

    /// Returns its labels.
    pub(crate) fn labels(self) -> &'v Labels {
        match self {
            Self::Series(series) => series.labels(),
            Self::Lens(lens) => lens.labels(),
        }
    }
}
