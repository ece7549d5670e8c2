//! A batch in flight to the store.

use super::demand::{Demand, Waiter};
use super::errand::Errand;
use super::error::Error;
use super::schedule::Dirty;
use crate::store::Batch;
use std::sync::Arc;
use std::time::Duration;

/// The changes that were sealed together, until the store has acknowledged them.
#[derive(Debug)]
pub(crate) struct Flight<K> {
    pub(crate) batch: Batch,
    /// The counters of these changes, in the order of the batch.
    pub(crate) parts: Vec<Part<K>>,
    /// Waiters for the whole batch.
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) sealed_at: Duration,
    /// Time of the next send.
    pub(crate) send_at: Duration,
    pub(crate) attempts: u64,
}

/// One counter's part of a batch.
#[derive(Debug)]
pub(crate) struct Part<K> {
    pub(crate) key: K,
    /// Its dirty entry, if it is not in the schedule.
    pub(crate) dirty: Option<Dirty<K>>,
    pub(crate) waiters: Vec<Waiter>,
    /// Moves that wait for this part, in their order.
    pub(crate) errands: Vec<Arc<Errand>>,
    /// Demands of this counter for which this part does not suffice.
    pub(crate) behind: Vec<Demand>,
}

impl<K> Part<K> {
    pub(crate) fn new(key: K) -> Self {
        Self { key, dirty: None, waiters: Vec::new(), errands: Vec::new(), behind: Vec::new() }
    }

    /// Adds a dirty entry and a demand to this part.
    pub(crate) fn join(&mut self, dirty: Option<Dirty<K>>, demand: Option<Demand>) {
        self.dirty = self.dirty.take().or(dirty);
        match demand {
            Some(Demand::Commit(_, waiter)) => self.waiters.extend(waiter),
            Some(Demand::Move(errand)) => self.errands.push(errand),
            None => {}
        }
    }

    /// Answers all waiters of this part with `error`.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.waiters.drain(..).for_each(|waiter| waiter.answer(Err(error.clone())));
        self.errands.drain(..).for_each(|errand| errand.fail(error.clone()));
        self.behind.drain(..).for_each(|demand| demand.fail(error));
    }
}
