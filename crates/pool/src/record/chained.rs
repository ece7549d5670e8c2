//! A pool together with the hash chain of its log.

use tidemark_fault::{Fault, is_planted};

use crate::draw::selector::Selector;
use crate::pool::{Divergence, Pool};
use crate::record::event::{Event, Events, Malformed};
use crate::record::frame::{CHAIN_BYTES, Chain, Frame, FrameError};

/// A pool and the hash chain over its log so far.
///
/// ```
/// use tidemark_pool::selector::WideTree;
/// use tidemark_pool::{Catalogue, ChainedPool, Item, Pool, Secret};
///
/// let catalogue = Catalogue::new(vec![Item::limited("mug", 1, 2)]).unwrap();
/// let new = || ChainedPool::new(Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32])));
/// let (mut pool, mut frame) = (new(), Vec::new());
/// pool.pool.stage();
/// pool.pool.draw().unwrap();
/// pool.write_staged(1, &mut frame);
/// pool.pool.commit();
///
/// let mut again = new();
/// again.follow(&frame).unwrap();
/// assert_eq!((again.chain, again.pool.next_draw()), (pool.chain, 1));
/// assert!(again.follow(&frame).is_err(), "no frame is followed twice");
/// ```
#[derive(Debug)]
pub struct ChainedPool<S> {
    /// The pool.
    pub pool: Pool<S>,
    /// SHA-256 chain over the whole log.
    pub chain: Chain,
}

/// Reason why a frame of a log cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFollowed {
    /// The bytes are not a frame, or do not continue the log.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The frame contains bytes that are not an event.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The frame contradicts the pool.
    #[error(transparent)]
    Divergence(#[from] Divergence),
    /// The frame does not continue the log, and also contradicts the pool.
    #[error("{frame}; and {divergence}")]
    Both {
        /// Error of the frame.
        frame: Box<FrameError>,
        /// Contradiction with the pool.
        divergence: Box<Divergence>,
    },
    /// Draws are missing or repeated.
    #[error("the frame begins with draw {said}, and the next one is {next}")]
    OtherDraw {
        /// Number that the frame begins with.
        said: u64,
        /// Number of the next draw.
        next: u64,
    },
}

/// What an observer of [`check`](ChainedPool::check) receives.
#[derive(Debug)]
pub enum Sight<'a, S> {
    /// The pool before an event is applied.
    Before(&'a Pool<S>, &'a Event<'a>),
    /// The pool after the event.
    Behind(&'a Pool<S>, &'a Event<'a>),
}

impl<S: Selector> ChainedPool<S> {
    /// Creates a chained pool from a new pool, with the [origin](Pool::origin) of its chain.
    /// O(items).
    pub fn new(pool: Pool<S>) -> Self {
        Self { chain: pool.origin(), pool }
    }

    /// Appends what is [staged](Pool::staged) as a frame, and advances the chain. A caller that
    /// reverts the staged steps must also restore the chain.
    pub fn write_staged(&mut self, time_us: u64, into: &mut Vec<u8>) {
        let (next, staged) = (self.pool.next_draw(), self.pool.staged_draws());
        let first_draw = next.checked_sub(staged);
        let first_draw =
            first_draw.unwrap_or_else(|| panic!("{staged} draws are staged, and the next one is {next}"));
        let begin = into.len();
        let behind = Frame { time_us, first_draw, events: self.pool.staged() }.write(self.chain, into);
        if !is_planted(Fault::FrameChain) {
            self.chain = behind;
        }
        let (kept, stated) = (self.chain, &into[begin..begin + CHAIN_BYTES]);
        assert!(
            kept.bytes() == stated,
            "the frame that begins with draw {first_draw} states the chain {behind}, and the pool keeps {kept}"
        );
    }

    /// Applies a frame of the log.
    ///
    /// # Errors
    /// [`NotFollowed`]; except for errors of the frame, do not use the pool after that.
    pub fn follow(&mut self, frame: &[u8]) -> Result<(), NotFollowed> {
        self.follow_with(frame, |_, _, _| ())
    }

    /// As [`follow`](Self::follow), and calls `observe` with each event before it is applied, and the
    /// frame's time.
    ///
    /// # Errors
    /// As `follow`.
    pub fn follow_with(
        &mut self,
        frame: &[u8],
        mut observe: impl FnMut(&Pool<S>, u64, &Event<'_>),
    ) -> Result<(), NotFollowed> {
        let (Frame { time_us, first_draw, events }, chain) = Frame::read(frame, self.chain)?;
        self.expect_draw(first_draw)?;
        self.pool.expect_unstaged();
        self.chain = chain;
        let mut events = Events::new(events);
        loop {
            while let Some(item) = events.next_drew() {
                observe(&self.pool, time_us, &Event::Drew(item));
                self.pool.apply_drew(item)?;
            }
            let Some(event) = events.next() else { return Ok(()) };
            let event = event?;
            observe(&self.pool, time_us, &event);
            self.pool.apply(&event)?;
        }
    }

    /// Audits a frame of the log: applies it with [`Pool::check`], and calls `see` before and after
    /// each event.
    ///
    /// # Errors
    /// [`NotFollowed`], converted to the observer's error, or an error of `see`; do not use the
    /// pool after that.
    pub fn check<E: From<NotFollowed>>(
        &mut self,
        bytes: &[u8],
        see: &mut dyn FnMut(Sight<'_, S>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (frame, chain) =
            Frame::read(bytes, self.chain).map_err(|error| self.all_that_is_wrong(bytes, error))?;
        self.expect_draw(frame.first_draw)?;
        self.pool.expect_unstaged();
        for event in Events::new(frame.events) {
            let event = event.map_err(NotFollowed::from)?;
            see(Sight::Before(&self.pool, &event))?;
            self.pool.check(frame.time_us, &event).map_err(NotFollowed::from)?;
            see(Sight::Behind(&self.pool, &event))?;
        }
        self.chain = chain;
        Ok(())
    }

    /// Checks whether a frame that does not continue the log also contradicts the pool.
    #[cold]
    fn all_that_is_wrong(&mut self, bytes: &[u8], frame: FrameError) -> NotFollowed {
        let Ok(Frame { time_us, events, .. }) = Frame::read_alone(bytes) else { return frame.into() };
        let mut events = Events::new(events).map_while(Result::ok);
        match events.try_for_each(|event| self.pool.check(time_us, &event)) {
            Ok(()) => frame.into(),
            Err(divergence) => NotFollowed::Both { frame: Box::new(frame), divergence: Box::new(divergence) },
        }
    }

    fn expect_draw(&self, said: u64) -> Result<(), NotFollowed> {
        let next = self.pool.next_draw();
        if said == next { Ok(()) } else { Err(NotFollowed::OtherDraw { said, next }) }
    }
}
