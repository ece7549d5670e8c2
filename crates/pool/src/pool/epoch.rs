//! Epochs: runs of draws that follow from one secret.

use crate::draw::secret::{SECRET_BYTES, Secret};

/// Of so many epochs that are over a pool knows the secrets, so that they can be asked for later.
pub const EPOCHS_KEPT: usize = 1024;

/// A run of draws that follow from one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// Which one, counted from 0.
    pub index: u64,
    /// Its first draw.
    pub first_draw: u64,
    /// What its draws follow from. Not to be shown before the epoch is over: who has it knows what will be drawn.
    pub secret: Secret,
    /// What a client has added when it began; mostly nothing.
    pub client_seed: Box<[u8]>,
}

impl Epoch {
    /// The key of its [`Numbers`](crate::Numbers).
    pub fn key(&self) -> [u8; SECRET_BYTES] {
        self.secret.key(&self.client_seed)
    }
}

/// An epoch that is over, with all that it takes to draw again what was drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revealed {
    /// The epoch; its secret is no longer one.
    pub epoch: Epoch,
    /// The draw behind its last.
    pub end: u64,
}
