//! Batches that are sent to a store.

/// Changes of counters that a store applies atomically and once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Name of the writer that sends it.
    pub writer: String,
    /// The epoch of the writer's claim.
    pub epoch: u64,
    /// Dense: one more than that of the previous batch.
    pub sequence: u64,
    /// The changes. No key occurs twice.
    pub deltas: Vec<Delta>,
}

/// A counter's net change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The counter's name.
    pub key: Box<[u8]>,
    /// Units, never 0.
    pub amount: i64,
}
