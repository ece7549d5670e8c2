//! A counter that moves, as far as it is told from others.

/// The key of a counter that moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mover<'k> {
    pub(crate) db: u8,
    /// That of [`hash`](super::super::hash).
    pub(crate) hash: u64,
    pub(crate) key: &'k [u8],
}

impl Mover<'_> {
    /// The same for the same key of the same database, and seldom for another.
    pub(super) fn mark(&self) -> u64 {
        self.hash.wrapping_add(u64::from(self.db))
    }
}
