//! A prepared segment file without records, when the next one is made, and what is unused of an old one.

use std::sync::Weak;
use std::time::Instant;

use crate::segment::Segment;
use crate::storage::StorageFile;

/// A file that the log can continue in.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) file: Box<dyn StorageFile>,
    pub(crate) bytes: u64,
    pub(crate) recycled: bool,
}

/// A segment with a successor, which may be longer than its records.
#[derive(Debug)]
pub(crate) struct Surplus {
    pub(crate) segment: Weak<Segment>,
    /// Where its records end. A cut may have shortened it further.
    pub(crate) end: u64,
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
