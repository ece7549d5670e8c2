//! What becomes of a series' points.

use super::expression::Expression;
use crate::window::Aggregation;

/// What a point becomes together with the point before it. The first point has none before it, and
/// becomes nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Difference {
    /// The value less the one before.
    Delta,
    /// [`Difference::Delta`], with a step down as a counter that began again at zero.
    Increase,
    /// [`Difference::Increase`] divided by the time since the point before.
    Rate {
        /// How many units of time the result is for, such as 1,000 for a rate by second of times in
        /// milliseconds.
        per: f64,
    },
    /// The value divided by the one before, less 1.
    Return,
    /// Natural logarithm of the value divided by the one before.
    LogReturn,
}

/// Which points a moving aggregation has: the point itself, and some before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// So many points, at least 1; fewer at the beginning of a series.
    Points(usize),
    /// Those less than this time older than the point; at least 1.
    Time(i64),
}

/// Which values lie between two points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gap {
    /// The one before.
    Previous,
    /// That on the straight line between the two.
    Linear,
    /// Always this one.
    Constant(f64),
}

/// What becomes of a series' points. `O` is another series that a transform reads beside it.
///
/// A transform reads each point of its result from points of the series that are not far from it. How
/// far is said with each.
#[derive(Debug, Clone, PartialEq)]
pub enum Transform<O> {
    /// Each value becomes that of an expression over it. Reads the point alone.
    Map(Expression),
    /// Each value becomes that of an expression over it (`x`) and the newest value of another series
    /// (`y`) that is no older than `age`. Points without such a value become nothing.
    Join {
        /// The expression.
        expression: Expression,
        /// The other series.
        other: O,
        /// Highest age of a value of the other series, relative to the point; not negative.
        age: i64,
    },
    /// Each value becomes its difference from the one before. Reads one point before.
    Difference(Difference),
    /// Each value becomes an aggregation of it and those before it. Reads the span. The aggregation
    /// must not depend on times. A span may have at most 16,384 points.
    Moving {
        /// The aggregation.
        aggregation: Aggregation,
        /// Which points are aggregated.
        span: Span,
    },
    /// Each value becomes the mean of it and those before it, each with `1 - alpha` times the weight of
    /// the one behind it. Reads as many points as have at least 2⁻⁵³ of the first one's weight. NaNs have
    /// no weight, and stay.
    Smooth {
        /// Weight of a value relative to that of all before it: above 0, at most 1; at least 0.01.
        alpha: f64,
    },
    /// The values at the multiples of a step from the first point to the last. Reads the points before
    /// and behind.
    Resample {
        /// The step, at least 1.
        step: i64,
        /// Which value is between two points.
        gap: Gap,
    },
    /// Between two points that are further apart than a step, points at multiples of the step behind the
    /// first one. Reads the points before and behind.
    Fill {
        /// The step, at least 1.
        step: i64,
        /// Which value is between two points.
        gap: Gap,
    },
    /// Each point at a later time; an earlier one if the shift is negative. Points whose time would be
    /// beyond the range of `i64` become nothing.
    Shift(i64),
}

/// Lowest weight relative to the highest that counts, as a binary logarithm.
const LOWEST_WEIGHT: f64 = -53.0;

impl<O> Transform<O> {
    /// Returns how many points [`Transform::Smooth`] reads for each.
    pub(super) fn smoothed(alpha: f64) -> usize {
        if alpha >= 1.0 {
            return 1;
        }
        1 + (LOWEST_WEIGHT / libm::log2(1.0 - alpha)).ceil() as usize
    }

    /// Says in words which points a transform reads for each, in the unit of their times.
    pub fn reads(&self) -> String {
        match self {
            Self::Map(_) => "the point".into(),
            Self::Join { age, .. } => format!("the point, and the other key's newest, at most {age} older"),
            Self::Difference(_) => "the point, and 1 before it".into(),
            Self::Moving { span: Span::Points(count), .. } => {
                format!("the point, and {} before it", count - 1)
            }
            Self::Moving { span: Span::Time(duration), .. } => {
                format!("the point, and those less than {duration} older")
            }
            Self::Smooth { alpha } => format!("the point, and {} before it", Self::smoothed(*alpha) - 1),
            Self::Resample { .. } | Self::Fill { .. } => "the points before and behind".into(),
            Self::Shift(distance) => format!("the point {distance} before it"),
        }
    }

    /// Returns the same transform for views of other points; `None` for [`Transform::Join`], which reads
    /// a series of its own.
    pub fn alone<P>(&self) -> Option<Transform<P>> {
        Some(match self {
            Self::Map(expression) => Transform::Map(expression.clone()),
            Self::Join { .. } => return None,
            Self::Difference(difference) => Transform::Difference(*difference),
            Self::Moving { aggregation, span } => {
                Transform::Moving { aggregation: *aggregation, span: *span }
            }
            Self::Smooth { alpha } => Transform::Smooth { alpha: *alpha },
            Self::Resample { step, gap } => Transform::Resample { step: *step, gap: *gap },
            Self::Fill { step, gap } => Transform::Fill { step: *step, gap: *gap },
            Self::Shift(distance) => Transform::Shift(*distance),
        })
    }
}
