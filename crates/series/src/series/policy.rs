//! What becomes of a point at a time that has one, and of points that say nothing new.

use crate::sample::Sample;

/// What becomes of a second point at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DuplicatePolicy {
    /// It is refused.
    #[default]
    Block,
    /// The first value stays.
    First,
    /// The last value stays.
    Last,
    /// The lower value stays; a NaN beside a number is refused.
    Min,
    /// The higher value stays; a NaN beside a number is refused.
    Max,
    /// The values are added; a NaN beside a number is refused.
    Sum,
}

impl DuplicatePolicy {
    /// Returns the value that stays; `None` if the second is refused. A number and a NaN have no
    /// minimum, maximum or sum.
    pub(crate) fn resolve<V: Sample>(self, old: V, new: V) -> Option<V> {
        match self {
            Self::Block => None,
            Self::First => Some(old),
            Self::Last => Some(new),
            Self::Min | Self::Max | Self::Sum if old.is_nan() != new.is_nan() => None,
            Self::Min => Some(if new < old { new } else { old }),
            Self::Max => Some(if new > old { new } else { old }),
            Self::Sum => old.plus(new),
        }
    }
}

/// Which points behind the last one say nothing new and are ignored: those that differ from it by at
/// most both bounds. Applies only to [`DuplicatePolicy::Last`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ignore {
    /// Largest difference in time.
    pub time: u64,
    /// Largest difference in value.
    pub value: f64,
}

impl Ignore {
    /// Whether a point is ignored whose time is not before that of `last`.
    pub(crate) fn covers<V: Sample>(&self, last: (i64, V), time: i64, value: V) -> bool {
        let elapsed = time.wrapping_sub(last.0).cast_unsigned();
        elapsed <= self.time && (value.to_f64() - last.1.to_f64()).abs() <= self.value
    }
}
