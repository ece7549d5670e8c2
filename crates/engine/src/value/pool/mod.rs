//! Prize pools: weighted draws from limited stock, see [`tidemark_pool`].
//!
//! The log has the initial state of a pool, followed by [frames](Frame): the events of one moment,
//! chained to all earlier ones. A reader of the log applies these events and does not draw again.

mod capture;
mod durability;
mod image;
mod in_parts;
mod inner;
mod recent;

pub(crate) use durability::PoolDurability;
pub use inner::Inner;
pub use recent::Past;
pub use tidemark_pool::NotFollowed;

use capture::PoolCapture;
use recent::Recent;
use tidemark_pool::selector::{AnySelector, SelectorKind};
use tidemark_pool::{Catalogue, Chain, ChainedPool, Event, Events, Frame, Refusal, Secret};

/// Most draws of expired reservations that background work gives back at a time.
const BACK_AT_ONCE: usize = 4096;
/// Most bytes of an expired reservation in the log: its end and the schedule's progress before it.
const ENDED_BYTES: usize = 24;

/// A pool as the value of a key.
#[derive(Debug)]
pub struct Pool(Box<PoolState>);

#[derive(Debug)]
struct PoolState {
    chained: ChainedPool<AnySelector>,
    recent: Recent,
    durability: PoolDurability,
    /// Its key in the database's list of due pools, in milliseconds since 1970; 0 if not listed.
    listed_ms: u64,
    capture: Option<Box<PoolCapture>>,
}

/// Result of a change to a pool.
pub(crate) struct Changed<R> {
    /// Result of the change itself.
    pub(crate) made: R,
    /// Frame to log; `None` if nothing has changed.
    pub(crate) frame: Option<Vec<u8>>,
}

/// What an observer sees while a frame is checked.
pub type Sight<'a> = tidemark_pool::Sight<'a, AnySelector>;

impl Pool {
    /// Creates a pool, whose draws cannot be predicted without the secrets. O(items).
    ///
    /// # Errors
    /// If draws cannot be numbered from `first_draw`.
    pub(crate) fn new(
        catalogue: &Catalogue,
        kind: SelectorKind,
        durability: PoolDurability,
        first_draw: u64,
        secret: Secret,
        next_secret: Secret,
    ) -> Result<Self, Refusal> {
        let make = |weights: &[u64]| AnySelector::with(kind, weights);
        let mut pool = Inner::with_selector(catalogue, secret, next_secret, make);
        pool.number_from(first_draw)?;
        Ok(Self::of(ChainedPool::new(pool), Recent::default(), durability))
    }

    fn of(chained: ChainedPool<AnySelector>, recent: Recent, durability: PoolDurability) -> Self {
        Self(Box::new(PoolState { chained, recent, durability, listed_ms: 0, capture: None }))
    }

    /// Returns the pool itself.
    pub fn inner(&self) -> &Inner {
        &self.0.chained.pool
    }

    /// Returns when replies about its actions may be sent.
    pub(crate) fn durability(&self) -> PoolDurability {
        self.0.durability
    }

    /// Returns the SHA-256 of everything in its log.
    pub fn chain(&self) -> Chain {
        self.0.chained.chain
    }

    /// Returns the latest draws, newest first.
    pub(crate) fn past(&self) -> impl ExactSizeIterator<Item = Past> {
        self.0.recent.iter(self.inner().next_draw())
    }

    /// Returns the selector's name; Redis has no such type.
    pub fn encoding(&self) -> &'static str {
        self.inner().urn().selector().kind().name()
    }

    /// Returns the number of past and present items.
    pub(crate) fn len(&self) -> usize {
        self.inner().urn().len()
    }

    /// Changes the pool or leaves it unchanged. First ends expired reservations and advances the
    /// schedule. `now_us` is in microseconds since 1970.
    ///
    /// # Errors
    /// Those of the change.
    pub(crate) fn change<R>(
        &mut self,
        now_us: u64,
        change: impl FnOnce(&mut Inner) -> Result<R, Refusal>,
    ) -> Result<Changed<R>, Refusal> {
        let pool = &mut self.0.chained.pool;
        pool.stage();
        pool.catch_up(now_us);
        let made = change(pool).inspect_err(|refusal| {
            pool.revert();
            let left = pool.staged().len();
            assert!(
                left == 0,
                "a change of a pool was refused, because {refusal}, and left {left} bytes of events"
            );
        })?;
        Ok(self.keep(now_us, made))
    }

    /// Ends some expired reservations; after the last, advances the schedule. Returns how many.
    pub(crate) fn let_time_pass(&mut self, now_us: u64) -> Changed<usize> {
        let pool = &mut self.0.chained.pool;
        let before = pool.reservations().len();
        pool.stage();
        pool.catch_up_some(now_us, BACK_AT_ONCE);
        let ended = before - pool.reservations().len();
        self.keep(now_us, ended)
    }

    /// Returns an upper bound of the bytes that ending the expired reservations adds to the log.
    pub(crate) fn overdue_bytes(&self, now_us: u64) -> usize {
        self.inner().overdue(now_us) * ENDED_BYTES
    }

    /// Commits the staged events.
    fn keep<R>(&mut self, now_us: u64, made: R) -> Changed<R> {
        let PoolState { chained, recent, capture, .. } = &mut *self.0;
        let staged = chained.pool.staged();
        if staged.is_empty() {
            chained.pool.commit();
            return Changed { made, frame: None };
        }
        let mut frame = Vec::with_capacity(staged.len() + 64);
        if capture.is_none() {
            Events::new(staged).flatten().for_each(|event| recent.note(now_us, &event));
        }
        chained.write_staged(now_us, &mut frame);
        if capture.is_some() {
            self.commit_unseen(now_us);
        } else {
            chained.pool.commit();
        }
        Changed { made, frame: Some(frame) }
    }

    /// Commits the staged events after a running snapshot has written the items that they change.
    #[cold]
    fn commit_unseen(&mut self, now_us: u64) {
        let PoolState { chained: ChainedPool { pool, .. }, recent, capture, .. } = &mut *self.0;
        let events = pool.staged().to_vec();
        pool.revert();
        for event in Events::new(&events).flatten() {
            see(capture, recent, pool, now_us, &event);
            let done = pool.apply(&event);
            assert_eq!(done, Ok(()), "what was just done can be done again: {event:?}");
        }
    }

    /// Applies a frame of the log.
    ///
    /// # Errors
    /// [`NotFollowed`]; the pool must not be used afterwards.
    pub(crate) fn follow(&mut self, frame: &[u8]) -> Result<(), NotFollowed> {
        let PoolState { chained, recent, capture, .. } = &mut *self.0;
        chained.follow_with(frame, |pool, time_us, event| see(capture, recent, pool, time_us, event))
    }

    /// Applies a frame as an auditor: computes everything again, including draws, shown to `see`.
    ///
    /// # Errors
    /// [`NotFollowed`], converted for the observer, or an error of `see`; the pool must not be used
    /// afterwards.
    pub(crate) fn check<E: From<NotFollowed>>(
        &mut self,
        frame: &[u8],
        see: &mut dyn FnMut(Sight<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let PoolState { chained, recent, .. } = &mut *self.0;
        // A frame that does not continue the log is refused before its time is used.
        let time_us = Frame::read_alone(frame).map_or(0, |frame| frame.time_us);
        chained.check(frame, &mut |sight| {
            if let Sight::Behind(_, event) = &sight {
                recent.note(time_us, event);
            }
            see(sight)
        })
    }

    /// Returns its key in the database's list; 0 if it is not listed.
    pub(crate) fn listed_ms(&self) -> u64 {
        self.0.listed_ms
    }

    /// Returns the key that it should have in the database's list: when time changes it next, in
    /// milliseconds since 1970. 0 if never.
    pub(crate) fn due_ms(&self) -> u64 {
        self.inner().next_due().map_or(0, |due_us| due_us.div_ceil(1000).max(1))
    }

    /// Sets its key in the database's list.
    pub(crate) fn set_listed_ms(&mut self, listed_ms: u64) {
        self.0.listed_ms = listed_ms;
    }
}

/// Handles an event before it is applied: a running snapshot writes the items that it changes, and
/// its draws are recorded.
fn see(
    capture: &mut Option<Box<PoolCapture>>,
    recent: &mut Recent,
    pool: &Inner,
    time_us: u64,
    event: &Event<'_>,
) {
    if let Some(capture) = capture {
        capture.see(pool, event);
    }
    recent.note(time_us, event);
}
