//! Epochs: ranges of draws that follow from one secret.

use crate::draw::secret::{SECRET_BYTES, Secret};

/// Number of past epochs whose secrets a pool keeps.
pub const EPOCHS_KEPT: usize = 1024;

/// A range of draws that follow from one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// Index, counted from 0.
    pub index: u64,
    /// Number of its first draw.
    pub first_draw: u64,
    /// Secret that its draws follow from. Reveal it only after the epoch: it predicts every draw.
    pub secret: Secret,
    /// Seed that a client added when the epoch began; usually empty.
    pub client_seed: Box<[u8]>,
}

impl Epoch {
    /// Returns the key of its [`Numbers`](crate::Numbers).
    pub fn key(&self) -> [u8; SECRET_BYTES] {
        self.secret.key(&self.client_seed)
    }
}

/// A past epoch, with all that is needed to repeat its draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revealed {
    /// The epoch, with its secret.
    pub epoch: Epoch,
    /// Number after its last draw.
    pub end: u64,
}
