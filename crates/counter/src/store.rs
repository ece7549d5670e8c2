//! Where commits go: what a store must do, one that keeps them in memory, and one that fails.

mod batch;
mod claim;
mod error;
mod faulty;
mod memory;
mod writer;

pub use batch::{Batch, Delta};
pub use claim::{Claim, Receipt};
pub use error::{Error, Rejected};
pub use faulty::{Faults, Faulty};
pub use memory::Memory;
pub use writer::{WRITER_BYTES_MAX, check_writer};

/// A place that keeps counters' committed positions, for one writer.
///
/// # Exactly once
/// A store knows of every writer its *epoch* and the *sequence number* of the last batch that it has applied. [`claim`](Self::claim)
/// makes a writer's name one's own: it raises the epoch, and from then on batches of lower epochs are refused, however late they
/// arrive. A batch is applied if its number is the one behind the last; if it is the last again it is answered
/// [`Receipt::Duplicate`] and changes nothing. So a batch whose acknowledgement was lost is sent again as it was.
///
/// A batch is applied completely or not at all, together with its number.
///
/// Stores that lie elsewhere connect when they are first asked, and again when a connection was lost; a call that has failed is simply
/// made again.
pub trait Store: Send {
    /// Takes over `writer`, a name as [`check_writer`] wants it: who had it before can write no more.
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::Unavailable`], and then nothing is claimed or, if the answer was lost, an epoch that nobody uses.
    fn claim(&mut self, writer: &str) -> Result<Claim, Error>;

    /// Applies a batch. Blocks until the store has answered, or its own deadline has passed.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: it may have been applied or not, and the same batch is to be sent again. All others: it has not been
    /// applied.
    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error>;

    /// What is stored of these keys, in their order; `None` for one that never had a commit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error>;

    /// How many changes a batch may have; one with more is answered [`Error::TooLarge`].
    fn max_deltas(&self) -> usize {
        usize::MAX
    }
}
