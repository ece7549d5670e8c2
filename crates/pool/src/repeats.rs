//! Whether one call may draw an item more than once.

/// Whether one call may draw an item more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// It may.
    Allowed,
    /// Once drawn, an item is excluded for the rest of the call.
    Excluded,
}
