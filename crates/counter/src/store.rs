//! Where commits go: what a store must do, and one that keeps them in memory.

mod batch;
mod error;
mod memory;

pub use batch::{Batch, Delta};
pub use error::{Error, Rejected};
pub use memory::Memory;

/// A place that keeps counters' committed positions, for one writer.
///
/// # Exactly once
/// A store knows of every writer its *epoch* and the *sequence number* of the last batch that it has applied. [`claim`](Self::claim)
/// makes a writer's name one's own: it raises the epoch, and from then on batches of lower epochs are refused, however late they
/// arrive. A batch is applied if its number is the one behind the last; if it is the last again it is answered
/// [`Receipt::Duplicate`] and changes nothing. So a batch whose acknowledgement was lost is sent again as it was.
///
/// A batch is applied completely or not at all, together with its number.
pub trait Store: Send {
    /// Takes over `writer`: who had it before can write no more.
    ///
    /// # Errors
    /// [`Error::Unavailable`], and then nothing is claimed or, if the answer was lost, an epoch that nobody uses.
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
    /// [`Error::Unavailable`].
    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error>;
}

/// A writer's name, made one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Above all before it; what batches must carry.
    pub epoch: u64,
    /// The number of the last batch that was applied under this name, 0 if there was none. The next one has the number behind it.
    pub last_sequence: u64,
}

/// What a store says of a batch that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It was applied now.
    Applied,
    /// It had been applied before.
    Duplicate,
}
