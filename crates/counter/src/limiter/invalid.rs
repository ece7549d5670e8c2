//! Invalid configurations.

/// Why a configuration is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The limit is 0, or too large to count.
    #[error("the limit must be from 1 to {max}, it is {limit}")]
    Limit {
        /// The requested limit. Units.
        limit: u64,
        /// The greatest possible limit. Units.
        max: u64,
    },
    /// The rate's count is 0, or too large.
    #[error("the count per period must be from 1 to {max}, it is {count}")]
    Count {
        /// The requested count. Units.
        count: u64,
        /// The greatest possible count. Units.
        max: u64,
    },
    /// Shorter than a nanosecond, or longer than 146 years.
    #[error("the period must be from 1 ns to 146 years")]
    Period,
    /// More than one unit a nanosecond, which exceeds the resolution of [`Gcra`](super::Gcra).
    #[error("the rate must be at most one unit a nanosecond")]
    TooFast,
    /// An exhausted limit would take more than 146 years to refill.
    #[error("the limit comes back in 146 years at most: lower the limit, or raise the rate")]
    TooSlow,
}
