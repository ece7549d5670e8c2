//! The ends of a list.

/// One of a list's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where the elements with the lowest indices are: Redis's left.
    Front,
    /// Redis's right.
    Back,
}
