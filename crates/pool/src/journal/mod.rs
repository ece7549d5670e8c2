//! Where a pool's frames are kept: what a [`Service`](crate::service::Service) asks of a log.

mod faulty;
mod memory;
mod none;

pub use faulty::{Fault, FaultyJournal, Plan};
pub use memory::MemoryJournal;
pub use none::NoJournal;

use crate::record::frame::Chain;
use std::sync::Arc;

/// Where a frame lies in a journal: positions only grow, and a frame has one position.
pub type Position = u64;

/// What a journal calls when something has settled or gone wrong, on whatever thread. It is quick, and calls nothing of the journal.
pub type Listener = Arc<dyn Fn() + Send + Sync>;

/// A log of a pool's [frames](crate::Frame), in the hands of one owner.
///
/// What a journal is asked for it does once. After a first failure it does nothing any more: nobody knows what is on a disk whose sync has
/// failed, so nothing is tried again.
///
/// How safe a frame is once it has *settled* is the journal's promise: synced to a disk, handed to the system, or merely accepted.
pub trait Journal: Send {
    /// Takes a frame, behind those that were taken before, and says its position, which is above theirs. `time_us` is when it was made:
    /// microseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// [`JournalError`]; it is final.
    fn append(&mut self, time_us: u64, frame: &[u8]) -> Result<Position, JournalError>;

    /// A frame that was just taken settles only when it survives whatever may happen, however safe others are that have settled: it tells a
    /// secret, by which nothing more may be drawn. A journal that survives nothing need not do anything.
    fn settle_when_durable(&mut self, position: Position) {
        let _ = position;
    }

    /// Lets everything up to `position` settle as soon as possible. May return before, and then the listener is called; or do it at once.
    fn request(&mut self, position: Position);

    /// The position up to which everything has settled, 0 if nothing has. Cheap: it is asked often.
    ///
    /// # Errors
    /// [`JournalError`] if something went wrong since; it is final, and what has not settled by then never does.
    fn settled(&self) -> Result<Position, JournalError>;

    /// Calls the listener from now on, whenever [`settled`](Self::settled) may say something else. A journal in which everything settles
    /// within [`append`](Self::append) or [`request`](Self::request) need not.
    fn listen(&mut self, listener: Listener);

    /// Begins a snapshot of the pool as it is behind the last frame that was taken, if the journal wants one now; it is asked between two
    /// frames. It is given all of the pool, and is for a start that need not read what came before.
    fn begin_snapshot(&mut self) -> Option<Box<dyn SnapshotSink>> {
        None
    }

    /// Lets all that was taken settle and gives the log free. Nothing is asked of the journal afterwards.
    ///
    /// # Errors
    /// [`JournalError`] if something that was taken may not be kept.
    fn close(&mut self) -> Result<(), JournalError>;
}

/// Where the parts of a snapshot go. Dropped before it is finished, it leaves nothing behind.
///
/// None of this waits for a disk: the pool waits for it.
pub trait SnapshotSink: Send {
    /// All but the items, as [`Pool::write_head`](crate::Pool::write_head) has it, and the chain; before any block.
    fn head(&mut self, chain: Chain, head: &[u8]);

    /// A block of items, as [`Capture`](crate::Capture) numbers them: each once, in any order.
    fn block(&mut self, block: usize, items: &[u8]);

    /// Whether it has as much to write as it wants to hold: then nothing is given to it that can wait.
    fn is_busy(&self) -> bool;

    /// All has been given.
    fn finish(self: Box<Self>);
}

/// Why a journal keeps nothing any more. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pool's log has failed: {reason}")]
pub struct JournalError {
    reason: Arc<str>,
}

impl JournalError {
    /// The reason in words for whoever has to mend it.
    pub fn new(reason: impl Into<Arc<str>>) -> Self {
        Self { reason: reason.into() }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
