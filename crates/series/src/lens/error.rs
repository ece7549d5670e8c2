//! Why a view cannot be read.

/// Most points that are made between others in one read.
pub(super) const MADE_MAX: usize = 1 << 22;

impl ViewError {
    pub(super) const TOO_MANY_STEPS: Self = Self::TooManySteps { most: MADE_MAX };
}

/// Why a view cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// A moving aggregation would have too many points.
    #[error("the moving window at {at} has more than {most} points")]
    SpanTooLong {
        /// Time of the point.
        at: i64,
        /// The limit.
        most: usize,
    },
    /// Resampling or filling would make too many points.
    #[error("the step makes more than {most} points")]
    TooManySteps {
        /// The limit.
        most: usize,
    },
}
