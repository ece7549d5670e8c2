//! Which shards a watched read reads.

/// The shards that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    One(usize),
    /// Ascending.
    Several(Box<[usize]>),
    All,
}
