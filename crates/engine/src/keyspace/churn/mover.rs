//! Identity of a counter that moves.

/// The key of a counter that moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mover<'k> {
    pub(crate) db: u8,
    /// Computed by [`hash`](super::super::hash).
    pub(crate) hash: u64,
    pub(crate) key: &'k [u8],
}

impl Mover<'_> {
    /// A fingerprint: equal for the same key of the same database, and rarely for different ones.
    pub(super) fn mark(&self) -> u64 {
        self.hash.wrapping_add(u64::from(self.db))
    }
}
