//! Settings of a service.

/// Default number of calls that may be unanswered.
pub const QUEUE_DEFAULT: usize = 16_384;

/// Settings of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Maximum number of unanswered calls; further callers wait. About 200 bytes each.
    /// [`QUEUE_DEFAULT`] by default.
    pub queue: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { queue: QUEUE_DEFAULT }
    }
}
