//! A batch on its way to the store.

use super::demand::{Demand, Waiter};
use super::errand::Errand;
use super::error::Error;
use super::schedule::Dirty;
use crate::store::Batch;
use std::sync::Arc;
use std::time::Duration;

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
    /// Moves that wait for it, in their order.
    pub(crate) errands: Vec<Arc<Errand>>,
    /// What this is not enough for: the next ones of this counter.
    pub(crate) behind: Vec<Demand>,
}

impl<K> Part<K> {
    pub(crate) fn new(key: K) -> Self {
        Self { key, dirty: None, waiters: Vec::new(), errands: Vec::new(), behind: Vec::new() }
    }

    /// Whoever is due or wants something is in this batch.
    pub(crate) fn join(&mut self, dirty: Option<Dirty<K>>, demand: Option<Demand>) {
        self.dirty = self.dirty.take().or(dirty);
        match demand {
            Some(Demand::Commit(_, waiter)) => self.waiters.extend(waiter),
            Some(Demand::Move(errand)) => self.errands.push(errand),
            None => {}
        }
    }

    /// Tells all who wait for it that nothing comes of it.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.waiters.drain(..).for_each(|waiter| waiter.answer(Err(error.clone())));
        self.errands.drain(..).for_each(|errand| errand.fail(error.clone()));
        self.behind.drain(..).for_each(|demand| demand.fail(error));
    }
}
