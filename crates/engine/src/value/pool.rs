//! Prize pools: weighted draws from limited stock, see [`tidemark_pool`].
//!
//! What the log has of a pool is the pool as it was made and, behind that, [frames](Frame): what was done at one moment, chained to what was done
//! before. Whoever reads the log does that again, and does not draw anew.

mod capture;
mod image;
mod in_parts;
mod inner;
mod recent;

pub use inner::Inner;
pub use recent::Past;

use capture::PoolCapture;
use recent::Recent;
use tidemark_pool::selector::{AnySelector, SelectorKind};
use tidemark_pool::{
    Catalogue, Chain, Divergence, Event, Events, Frame, FrameError, Malformed, Refusal, Secret,
};

/// How many reservations one change of a pool ends whose time is over; the others wait for the next.
const EXPIRED_AT_ONCE: usize = 1024;

/// A pool as the value of a key.
#[derive(Debug)]
pub struct Pool(Box<State>);

#[derive(Debug)]
struct State {
    pool: Inner,
    chain: Chain,
    recent: Recent,
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

/// Why a pool does not do again what a log says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFollowed {
    /// The frame does not continue what came before.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// It has something else than events.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The pool cannot have done this.
    #[error(transparent)]
    Divergence(#[from] Divergence),
    /// The frame does not continue what came before, and what it says cannot have been done either.
    #[error("{frame}; and {divergence}")]
    Both {
        /// What is wrong with the frame.
        frame: Box<FrameError>,
        /// What is wrong with what it says.
        divergence: Box<Divergence>,
    },
    /// Draws are missing, or are there twice.
    #[error("the frame begins with draw {said}, and the next one is {next}")]
    OtherDraw {
        /// What the frame says.
        said: u64,
        /// What follows from those before.
        next: u64,
    },
}

/// What somebody sees who looks on while a frame is checked.
#[derive(Debug, Clone, Copy)]
pub enum Sight<'a> {
    /// The pool, before an event is done again.
    Before(&'a Inner, &'a Event<'a>),
    /// The pool behind it.
    Behind(&'a Inner, &'a Event<'a>),
}

impl Pool {
    /// A pool of this catalogue, of whose draws nobody can know anything before who knows nothing of the secrets. O(items).
    ///
    /// # Errors
    /// Draws cannot be numbered from `first_draw` on.
    pub(crate) fn new(
        catalogue: &Catalogue,
        kind: SelectorKind,
        first_draw: u64,
        secret: Secret,
        next_secret: Secret,
    ) -> Result<Self, Refusal> {
        let make = |weights: &[u64]| AnySelector::with(kind, weights);
        let mut pool = Inner::with_selector(catalogue, secret, next_secret, make);
        pool.number_from(first_draw)?;
        let chain = pool.origin();
        Ok(Self::of(pool, chain, Recent::default()))
    }

    fn of(pool: Inner, chain: Chain, recent: Recent) -> Self {
        Self(Box::new(State { pool, chain, recent, listed_ms: 0, capture: None }))
    }

    /// The pool itself.
    pub fn inner(&self) -> &Inner {
        &self.0.pool
    }

    /// SHA-256 over all that its log has.
    pub fn chain(&self) -> Chain {
        self.0.chain
    }

    /// The last draws, the latest first.
    pub(crate) fn past(&self) -> impl ExactSizeIterator<Item = Past> {
        self.0.recent.iter(self.0.pool.next_draw())
    }

    /// Redis has no word for values of this kind: the selector's name.
    pub fn encoding(&self) -> &'static str {
        self.inner().urn().selector().kind().name()
    }

    /// How many items there are and have been.
    pub(crate) fn len(&self) -> usize {
        self.0.pool.urn().len()
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
        let State { pool, chain, recent, capture, .. } = &mut *self.0;
        pool.stage();
        pool.catch_up(now_us, EXPIRED_AT_ONCE);
        let made = change(pool).inspect_err(|_| pool.revert())?;
        if pool.staged().is_empty() {
            pool.commit();
            return Ok(Changed { made, frame: None });
        }
        let mut frame = Vec::with_capacity(pool.staged().len() + 64);
        let first_draw = pool.next_draw() - pool.staged_draws();
        let events = pool.staged();
        *chain = Frame { time_us: now_us, first_draw, events }.write(*chain, &mut frame);
        if capture.is_some() {
            self.commit_unseen(now_us);
        } else {
            Events::new(events).flatten().for_each(|event| recent.note(now_us, &event));
            pool.commit();
        }
        Ok(Changed { made, frame: Some(frame) })
    }

    /// Keeps what is staged, once a running snapshot has seen what it changes as it was before.
    #[cold]
    fn commit_unseen(&mut self, now_us: u64) {
        let events = self.0.pool.staged().to_vec();
        self.0.pool.revert();
        let done = self.follow_events(now_us, &events);
        debug_assert_eq!(done, Ok(()), "what was just done can be done again");
    }

    /// Does again what a frame of the log says.
    ///
    /// # Errors
    /// [`NotFollowed`]; the pool is of no use then.
    pub(crate) fn follow(&mut self, frame: &[u8]) -> Result<(), NotFollowed> {
        let (Frame { time_us, first_draw, events }, chain) = Frame::read(frame, self.0.chain)?;
        let next = self.0.pool.next_draw();
        if first_draw != next {
            return Err(NotFollowed::OtherDraw { said: first_draw, next });
        }
        self.0.chain = chain;
        self.follow_events(time_us, events)
    }

    fn follow_events(&mut self, time_us: u64, events: &[u8]) -> Result<(), NotFollowed> {
        let State { pool, recent, capture, .. } = &mut *self.0;
        for event in Events::new(events) {
            let event = event?;
            if let Some(capture) = capture {
                capture.see(pool, &event);
            }
            pool.apply(&event)?;
            recent.note(time_us, &event);
        }
        Ok(())
    }

    /// Does again what a frame of the log says, as an auditor who believes nothing that can be computed: draws are made anew. `see` looks on.
    ///
    /// # Errors
    /// [`NotFollowed`], as whoever looks on wants it, or what they say themselves; the pool is of no use then.
    pub(crate) fn check<E: From<NotFollowed>>(
        &mut self,
        bytes: &[u8],
        see: &mut dyn FnMut(Sight<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (frame, chain) =
            Frame::read(bytes, self.0.chain).map_err(|error| self.all_that_is_wrong(bytes, error))?;
        let next = self.0.pool.next_draw();
        if frame.first_draw != next {
            return Err(NotFollowed::OtherDraw { said: frame.first_draw, next }.into());
        }
        let State { pool, recent, .. } = &mut *self.0;
        for event in Events::new(frame.events) {
            let event = event.map_err(NotFollowed::from)?;
            see(Sight::Before(pool, &event))?;
            pool.check(frame.time_us, &event).map_err(NotFollowed::from)?;
            see(Sight::Behind(pool, &event))?;
            recent.note(frame.time_us, &event);
        }
        self.0.chain = chain;
        Ok(())
    }

    /// Whether a frame that does not continue what came before says something impossible as well.
    #[cold]
    fn all_that_is_wrong(&mut self, bytes: &[u8], frame: FrameError) -> NotFollowed {
        let Ok(Frame { time_us, events, .. }) = Frame::read_alone(bytes) else { return frame.into() };
        let checked = Events::new(events)
            .map_while(Result::ok)
            .try_for_each(|event| self.0.pool.check(time_us, &event));
        match checked {
            Ok(()) => frame.into(),
            Err(divergence) => NotFollowed::Both { frame: Box::new(frame), divergence: Box::new(divergence) },
        }
    }

    /// Where the database lists it; 0 if it does not.
    pub(crate) fn listed_ms(&self) -> u64 {
        self.0.listed_ms
    }

    /// Where the database should list it: when time changes it next, in milliseconds since 1970. 0 if it never does.
    pub(crate) fn due_ms(&self) -> u64 {
        self.0.pool.next_due().map_or(0, |due_us| due_us.div_ceil(1000).max(1))
    }

    /// Notes where the database lists it.
    pub(crate) fn set_listed_ms(&mut self, listed_ms: u64) {
        self.0.listed_ms = listed_ms;
    }
}
