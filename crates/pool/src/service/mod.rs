//! A pool owned by one thread, for any number of callers. Calls are executed in order, logged, and
//! then answered.
//!
//! The thread takes everything in the queue, executes it, writes it to its
//! [journal](crate::journal) as one frame, and answers when the frame has settled. Calls that
//! arrive meanwhile form the next frame (group commit). So no caller sees a draw that a crash could
//! undo, and many callers share one sync.
//!
//! ```
//! use tidemark_pool::journal::MemoryJournal;
//! use tidemark_pool::selector::WideTree;
//! use tidemark_pool::service::{Service, Settings};
//! use tidemark_pool::{Catalogue, ChainedPool, Item, Pool, Secret};
//!
//! let catalogue = Catalogue::new(vec![Item::limited("car", 1, 3), Item::unlimited("nothing", 99)]).unwrap();
//! let pool = Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
//! let journal = MemoryJournal::default();
//! // The time is asked for by a function: microseconds since 1970.
//! let service = Service::start(ChainedPool::new(pool), journal.clone(), || 0, Settings::default()).unwrap();
//!
//! let first = service.draw().unwrap();
//! service.draw_with(|outcome| println!("drawn: {outcome:?}"));
//! let third = service.draw_async(); // to be awaited, or:
//! assert_eq!((first.number, third.wait().unwrap().number), (0, 2));
//! service.stop().unwrap();
//! assert!(!journal.frames().is_empty());
//! ```

mod callback;
mod calling;
mod doing;
mod error;
mod inbox;
mod owner;
mod reply;
mod request;
mod settings;
mod shared;
mod slot;
mod snapshot;
mod state;

pub use calling::{Calling, Drawing};
pub use error::CallError;
pub use request::{Answer, Asker, CHANGES_MAX, Change, Outcome, Request, STATE_ITEMS_MAX};
pub use settings::{QUEUE_DEFAULT, Settings};
pub use state::{ItemState, State};

use crate::draw::selector::Selector;
use crate::journal::{Journal, JournalError};
use crate::pool::Draw;
use crate::record::chained::ChainedPool;
use inbox::Asked;
use owner::Owner;
use request::draw_of;
use shared::Shared;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A pool that many threads and tasks draw from. Share it by reference, or in an [`Arc`].
///
/// Once the log has failed, every call returns that error; only [`Request::State`] is still
/// answered. No draw that is missing in the log has been answered. Dropping the service stops it.
pub struct Service {
    shared: Arc<Shared>,
    end: Mutex<End>,
}

enum End {
    Running(JoinHandle<Result<(), JournalError>>),
    Over(Result<(), JournalError>),
}

impl Service {
    /// Starts the service of a pool whose log so far is in the journal. `clock` returns the time in
    /// microseconds since 1970-01-01 UTC, for frames and for the deadlines of reservations.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start<S: Selector + Send + 'static>(
        pool: ChainedPool<S>,
        journal: impl Journal + 'static,
        clock: impl FnMut() -> u64 + Send + 'static,
        settings: Settings,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(settings.queue));
        let owner = Owner::new(pool, journal, clock, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("tidemark-pool".into()).spawn(move || owner.run())?;
        Ok(Self { shared, end: Mutex::new(End::Running(thread)) })
    }

    /// Draws once, and blocks until the draw is in the log.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn draw(&self) -> Result<Draw, CallError> {
        draw_of(self.shared.call_and_wait(Asked::Draw))
    }

    /// Draws once, and calls a function exactly once with the outcome: on the service's thread or,
    /// if the service takes no more calls, immediately on this one. All other callers wait for the
    /// function, so it must be quick. What it captures is stored in place up to three words.
    ///
    /// Blocks while the queue is full. In a callback it never blocks: then the outcome is
    /// [`CallError::Full`].
    pub fn draw_with(&self, then: impl FnOnce(Result<Draw, CallError>) + Send + 'static) {
        self.shared.call_with(Asked::Draw, move |outcome| then(draw_of(outcome)));
    }

    /// Draws once. Returns a future for any runtime, or for [`Drawing::wait`].
    pub fn draw_async(&self) -> Drawing {
        Drawing(Calling::new(Arc::clone(&self.shared), Asked::Draw))
    }

    /// Executes a request, and blocks until it is in the log.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&self, request: Request) -> Outcome {
        self.shared.call_and_wait(request.into())
    }

    /// Executes a request, and calls a function with the outcome, as [`draw_with`](Self::draw_with)
    /// does.
    pub fn call_with(&self, request: Request, then: impl FnOnce(Outcome) + Send + 'static) {
        self.shared.call_with(request.into(), then);
    }

    /// Executes a request. Returns a future, as [`draw_async`](Self::draw_async) does.
    pub fn call_async(&self, request: Request) -> Calling {
        Calling::new(Arc::clone(&self.shared), request.into())
    }

    /// Takes no more calls, answers the queued ones, and closes the journal. Idempotent.
    ///
    /// In a callback it does not wait for the end.
    ///
    /// # Errors
    /// [`JournalError`] if the journal has failed.
    pub fn stop(&self) -> Result<(), JournalError> {
        self.shared.inbox.close(CallError::Stopped);
        if self.shared.inbox.is_owner() {
            return Ok(());
        }
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if let End::Running(_) = &*end {
            let over = End::Over(Err(JournalError::new("the thread of the pool's service has panicked")));
            if let End::Running(thread) = std::mem::replace(&mut *end, over)
                && let Ok(result) = thread.join()
            {
                *end = End::Over(result);
            }
        }
        match &*end {
            End::Over(result) => result.clone(),
            End::Running(_) => unreachable!("the thread was just waited for"),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A caller that needs the result calls `stop` first.
        let _ = self.stop();
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Service")
    }
}
