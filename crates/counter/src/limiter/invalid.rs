//! What a limiter cannot be made of.

/// Why there is no such limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// It would never admit anything, or admits more than can be counted.
    #[error("the limit must be from 1 to {max}, it is {limit}")]
    Limit {
        /// What was asked for. Units.
        limit: u64,
        /// What is possible. Units.
        max: u64,
    },
    /// A rate of nothing, or of more than can be counted.
    #[error("the count per period must be from 1 to {max}, it is {count}")]
    Count {
        /// What was asked for. Units.
        count: u64,
        /// What is possible. Units.
        max: u64,
    },
    /// Shorter than a nanosecond, or longer than 146 years.
    #[error("the period must be from 1 ns to 146 years")]
    Period,
    /// More than one unit a nanosecond, which is what [`Gcra`](super::Gcra) can tell apart.
    #[error("the rate must be at most one unit a nanosecond")]
    TooFast,
    /// Who has used it all would wait for more than 146 years until he has it all again.
    #[error("the limit comes back in 146 years at most: lower the limit, or raise the rate")]
    TooSlow,
}
