//! How a service is run.

/// How many calls may be unanswered, unless a service is told otherwise.
pub const QUEUE_DEFAULT: usize = 16_384;

/// How a service is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many calls may be unanswered; who comes when there are so many waits. Each takes some 200 bytes. [`QUEUE_DEFAULT`] by default.
    pub queue: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { queue: QUEUE_DEFAULT }
    }
}
