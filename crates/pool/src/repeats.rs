//! Whether one call may draw an item more than once.

/// Whether one call may draw an item more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// It may.
    Allowed,
    /// Whatever a call has drawn is not there for the rest of it.
    Excluded,
}
