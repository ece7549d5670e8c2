//! Which benchmarks are measured in turns.

/// Benchmarks that are measured in turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    /// The benchmark that the others are compared with.
    pub(super) baseline: String,
}
