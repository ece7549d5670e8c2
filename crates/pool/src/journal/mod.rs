//! Journals: the log of a pool, as a [`Service`](crate::service::Service) uses it.

mod faulty;
mod memory;
mod none;

pub use faulty::{Fault, FaultyJournal, Plan};
pub use memory::MemoryJournal;
pub use none::NoJournal;

use crate::record::frame::Chain;
use std::sync::Arc;

/// Position of a frame in a journal. Positions are unique and increase.
pub type Position = u64;

/// Function that a journal calls, on any thread, when a frame has settled or an error has occurred.
/// It is quick, and does not call the journal.
pub type Listener = Arc<dyn Fn() + Send + Sync>;

/// A log of a pool's [frames](crate::Frame), with one owner.
///
/// A journal never retries. After its first failure it does nothing more: once a sync has failed,
/// the contents of the disk are unknown.
///
/// When a frame has *settled*, it is as safe as the journal promises: synced to a disk, handed to
/// the system, or merely accepted.
pub trait Journal: Send {
    /// Appends a frame, and returns its position, which is above all earlier ones. `time_us` is the
    /// time of the frame, in microseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// [`JournalError`]; it is final.
    fn append(&mut self, time_us: u64, frame: &[u8]) -> Result<Position, JournalError>;

    /// Makes the frame that was just appended settle only when it is durable, whatever the
    /// journal's usual promise: it reveals a secret, and no draw may follow from that secret
    /// afterwards. A journal without durability can ignore this.
    fn settle_when_durable(&mut self, position: Position) {
        let _ = position;
    }

    /// Settles everything up to `position` as soon as possible: before it returns, or later,
    /// followed by a call of the listener.
    fn request(&mut self, position: Position);

    /// Returns the position up to which everything has settled, 0 if nothing has. Called often:
    /// must be cheap.
    ///
    /// # Errors
    /// [`JournalError`] if the journal has failed; it is final, and nothing more settles.
    fn settled(&self) -> Result<Position, JournalError>;

    /// Sets the listener, to be called whenever the result of [`settled`](Self::settled) may have
    /// changed. Not needed if everything settles within [`append`](Self::append) or
    /// [`request`](Self::request).
    fn listen(&mut self, listener: Listener);

    /// Begins a snapshot of the pool as of the last appended frame, if the journal wants one now.
    /// Called between frames. A start from the snapshot need not read earlier frames.
    fn begin_snapshot(&mut self) -> Option<Box<dyn SnapshotSink>> {
        None
    }

    /// Settles everything that was appended, and releases the log. The journal is not used
    /// afterwards.
    ///
    /// # Errors
    /// [`JournalError`] if an appended frame may be lost.
    fn close(&mut self) -> Result<(), JournalError>;
}

/// Destination of a snapshot. Dropped before it is finished, it leaves nothing behind.
///
/// No method may wait for a disk: the pool waits for it.
pub trait SnapshotSink: Send {
    /// Takes everything except the items, the output of
    /// [`Pool::write_head`](crate::Pool::write_head), and the chain value; before any block.
    fn head(&mut self, chain: Chain, head: &[u8]);

    /// Takes a block of items, numbered as in [`Capture`](crate::Capture): each once, in any order.
    fn block(&mut self, block: usize, items: &[u8]);

    /// Returns whether its buffer is full: then only blocks that cannot wait are given to it.
    fn is_busy(&self) -> bool;

    /// Completes the snapshot.
    fn finish(self: Box<Self>);
}

/// Failure of a journal; it stores nothing more. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pool's log has failed: {reason}")]
pub struct JournalError {
    reason: Arc<str>,
}

impl JournalError {
    /// Creates an error with a reason, for the operator that must fix it.
    pub fn new(reason: impl Into<Arc<str>>) -> Self {
        Self { reason: reason.into() }
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
