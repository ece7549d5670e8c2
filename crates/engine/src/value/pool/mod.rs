//! Prize pools: weighted draws from limited stock, see [`tidemark_pool`].
//!
//! What the log has of a pool is the pool as it was made and, behind that, [frames](Frame): what was done at one moment, chained to what was done
//! before. Whoever reads the log does that again, and does not draw anew.

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

/// How many draws come back from reservations that are over, at most, where nobody waits for that.
const BACK_AT_ONCE: usize = 4096;
/// What the log has of a reservation that is over: its end, and how far the schedule has gone on before. Bytes, at most.
const ENDED_BYTES: usize = 24;

/// A pool as the value of a key.
#[derive(Debug)]
pub struct Pool(Box<State>);

#[derive(Debug)]
struct State {
    chained: ChainedPool<AnySelector>,
    recent: Recent,
    durability: PoolDurability,
    /// Where the database lists it, for what time brings: milliseconds since 1970, 0 if it does not.
    listed_ms: u64,
    capture: Option<Box<PoolCapture>>,
}

/// What a change of a pool has come to.
pub(crate) struct Changed<R> {
    /// What the change itself says.
    pub(crate) made: R,
    /// What is to be logged; `None` if nothing has changed.
    pub(crate) frame: Option<Vec<u8>>,
}

/// What somebody sees who looks on while a frame is checked.
pub type Sight<'a> = tidemark_pool::Sight<'a, AnySelector>;

impl Pool {
    /// A pool of this catalogue, of whose draws nobody can know anything before who knows nothing of the secrets. O(items).
    ///
    /// # Errors
    /// Draws cannot be numbered from `first_draw` on.
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
        Self(Box::new(State { chained, recent, durability, listed_ms: 0, capture: None }))
    }

    /// The pool itself.
    pub fn inner(&self) -> &Inner {
        &self.0.chained.pool
    }

    /// When answers about what it does may leave.
    pub(crate) fn durability(&self) -> PoolDurability {
        self.0.durability
    }

    /// SHA-256 over all that its log has.
    pub fn chain(&self) -> Chain {
        self.0.chained.chain
    }

    /// The last draws, the latest first.
    pub(crate) fn past(&self) -> impl ExactSizeIterator<Item = Past> {
        self.0.recent.iter(self.inner().next_draw())
    }

    /// Redis has no word for values of this kind: the selector's name.
    pub fn encoding(&self) -> &'static str {
        self.inner().urn().selector().kind().name()
    }

    /// How many items there are and have been.
    pub(crate) fn len(&self) -> usize {
        self.inner().urn().len()
    }

    /// Changes the pool, or leaves it as it was. Before that, reservations end whose time is over, and the schedule goes on. `now_us` is the time, microseconds since
    /// 1970.
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

    /// Ends some of the reservations whose time is over, and lets the schedule go on once that were all. Says how many.
    pub(crate) fn let_time_pass(&mut self, now_us: u64) -> Changed<usize> {
        let pool = &mut self.0.chained.pool;
        let before = pool.reservations().len();
        pool.stage();
        pool.catch_up_some(now_us, BACK_AT_ONCE);
        let ended = before - pool.reservations().len();
        self.keep(now_us, ended)
    }

    /// What the log has of the reservations that are over by now. Bytes, at most.
    pub(crate) fn overdue_bytes(&self, now_us: u64) -> usize {
        self.inner().overdue(now_us) * ENDED_BYTES
    }

    /// Keeps what is staged.
    fn keep<R>(&mut self, now_us: u64, made: R) -> Changed<R> {
        let State { chained, recent, capture, .. } = &mut *self.0;
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

    /// Keeps what is staged, once a running snapshot has seen what it changes as it was before.
    #[cold]
    fn commit_unseen(&mut self, now_us: u64) {
        let State { chained: ChainedPool { pool, .. }, recent, capture, .. } = &mut *self.0;
        let events = pool.staged().to_vec();
        pool.revert();
        for event in Events::new(&events).flatten() {
            see(capture, recent, pool, now_us, &event);
            let done = pool.apply(&event);
            assert_eq!(done, Ok(()), "what was just done can be done again: {event:?}");
        }
    }

    /// Does again what a frame of the log says.
    ///
    /// # Errors
    /// [`NotFollowed`]; the pool is of no use then.
    pub(crate) fn follow(&mut self, frame: &[u8]) -> Result<(), NotFollowed> {
        let State { chained, recent, capture, .. } = &mut *self.0;
        chained.follow_with(frame, |pool, time_us, event| see(capture, recent, pool, time_us, event))
    }

    /// Does again what a frame of the log says, as an auditor who believes nothing that can be computed: draws are made anew. `see` looks on.
    ///
    /// # Errors
    /// [`NotFollowed`], as whoever looks on wants it, or what they say themselves; the pool is of no use then.
    pub(crate) fn check<E: From<NotFollowed>>(
        &mut self,
        frame: &[u8],
        see: &mut dyn FnMut(Sight<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let State { chained, recent, .. } = &mut *self.0;
        // A frame that does not continue the log is refused before it has a time.
        let time_us = Frame::read_alone(frame).map_or(0, |frame| frame.time_us);
        chained.check(frame, &mut |sight| {
            if let Sight::Behind(_, event) = &sight {
                recent.note(time_us, event);
            }
            see(sight)
        })
    }

    /// Where the database lists it; 0 if it does not.
    pub(crate) fn listed_ms(&self) -> u64 {
        self.0.listed_ms
    }

    /// Where the database should list it: when time changes it next, in milliseconds since 1970. 0 if it never does.
    pub(crate) fn due_ms(&self) -> u64 {
        self.inner().next_due().map_or(0, |due_us| due_us.div_ceil(1000).max(1))
    }

    /// Notes where the database lists it.
    pub(crate) fn set_listed_ms(&mut self, listed_ms: u64) {
        self.0.listed_ms = listed_ms;
    }
}

/// Sees an event before it is done: a running snapshot what it changes as it was, and the last draws what it has given.
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
