//! Whether a member may have lost what it acknowledged: see `suspect`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes durable that a member votes again. Runs on the log's writer.
pub type Heal = Box<dyn FnOnce(Regained) -> io::Result<()> + Send>;

/// How a member that may have lost what it acknowledged gets its vote back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regained {
    /// It has everything again.
    CaughtUp,
    /// Its operator takes what it has lost for gone.
    LossAccepted,
}

/// Whether this member may have lost what it acknowledged.
#[derive(Debug)]
pub(crate) struct Standing {
    is_suspect: AtomicBool,
    /// What is lost is to be taken for gone.
    is_accepted: AtomicBool,
}

impl Standing {
    pub(crate) fn new(is_suspect: bool) -> Self {
        Self { is_suspect: AtomicBool::new(is_suspect), is_accepted: AtomicBool::new(false) }
    }

    /// Returns whether the member has no vote. One load.
    pub(crate) fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Acquire)
    }

    /// Has the member vote with what it has.
    pub(crate) fn accept_loss(&self) {
        self.is_accepted.store(true, Ordering::Release);
    }

    /// Returns whether the member is to vote with what it has.
    pub(super) fn is_loss_accepted(&self) -> bool {
        self.is_accepted.load(Ordering::Acquire)
    }

    /// Gives the member its vote.
    pub(super) fn end(&self) {
        self.is_suspect.store(false, Ordering::Release);
    }
}
