//! A prepared segment file without records, and when the next one is made.

use std::time::Instant;

use crate::storage::StorageFile;

/// A file that the log can continue in.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) file: Box<dyn StorageFile>,
    pub(crate) bytes: u64,
    pub(crate) recycled: bool,
}

/// What the housekeeper remembers between two chores.
#[derive(Debug)]
pub(crate) struct Chores {
    pub(crate) next_spare: u64,
    /// Time of the next attempt to prepare a segment, after the disk was full.
    pub(crate) prepare_at: Option<Instant>,
    /// Time of the next attempt to drop old segments, after a failure.
    pub(crate) retire_at: Option<Instant>,
}

impl Chores {
    pub(crate) fn new(next_spare: u64) -> Self {
        Self { next_spare, prepare_at: None, retire_at: None }
    }
}
