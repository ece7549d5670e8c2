//! Groups of benchmarks that are measured in turns.

/// Benchmarks that are measured in turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// Name of the benchmark that the others are compared with.
    pub(crate) baseline: String,
}
