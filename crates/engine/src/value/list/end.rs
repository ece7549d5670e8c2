//! The ends of a list.

/// One of a list's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end with the lowest indices; left in Redis.
    Front,
    /// Right in Redis.
    Back,
}
