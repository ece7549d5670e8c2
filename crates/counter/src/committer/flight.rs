//! A batch on its way to the store.

use super::error::Error;
use super::schedule::Dirty;
use super::ticket::Ticket;
use crate::store::Batch;
use std::sync::Arc;
use std::time::Duration;

/// Who waits for a commit.
pub(crate) type Waiter = Arc<Ticket<Result<(), Error>>>;

/// What was sealed together, until the store has it.
#[derive(Debug)]
pub(crate) struct Flight<K> {
    pub(crate) batch: Batch,
    /// Whose changes these are, in the order of the batch.
    pub(crate) parts: Vec<Part<K>>,
    /// Who waits for the whole of it.
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) sealed_at: Duration,
    /// When it is to be sent next.
    pub(crate) send_at: Duration,
    pub(crate) attempts: u64,
}

/// One counter's part in a batch.
#[derive(Debug)]
pub(crate) struct Part<K> {
    pub(crate) key: K,
    /// Its place among the dirty ones, if that is not in the schedule.
    pub(crate) dirty: Option<Dirty<K>>,
    pub(crate) waiters: Vec<Waiter>,
}
