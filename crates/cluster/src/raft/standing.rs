//! Whether a member may have lost what it acknowledged: see `suspect`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes durable that a member has everything again. Runs on the log's writer.
pub type Heal = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Whether this member may have lost what it acknowledged.
#[derive(Debug)]
pub(crate) struct Standing(AtomicBool);

impl Standing {
    pub(crate) fn new(is_suspect: bool) -> Self {
        Self(AtomicBool::new(is_suspect))
    }

    /// Returns whether the member has no vote. One load.
    pub(crate) fn is_suspect(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Gives the member its vote.
    pub(super) fn end(&self) {
        self.0.store(false, Ordering::Release);
    }
}
