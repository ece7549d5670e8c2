//! A pool in the hands of one thread, for any number of callers: what they ask for is done in order, logged, and then answered.
//!
//! The thread takes whatever is in the queue, does it, writes it into its [journal](crate::journal) as one frame, and answers when the frame has
//! settled. What comes meanwhile is the next frame. So nobody learns of a draw that a crash could take back, and many callers share the time
//! that a disk takes.
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

/// A pool that many threads and tasks draw from. It is shared by reference, or in an [`Arc`].
///
/// Once the log has failed, nothing that is not in it has been given to anybody, and every call says why; only [`Request::State`] is still
/// answered. Dropping the service stops it.
pub struct Service {
    shared: Arc<Shared>,
    end: Mutex<End>,
}

enum End {
    Running(JoinHandle<Result<(), JournalError>>),
    Over(Result<(), JournalError>),
}

impl Service {
    /// Begins to serve a pool whose log so far is in the journal. `clock` says what time it is, in microseconds since 1970-01-01 UTC: frames
    /// bear it, and reservations end by it.
    ///
    /// # Errors
    /// If the system gives no thread.
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

    /// Draws once, and waits until that is in the log.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn draw(&self) -> Result<Draw, CallError> {
        draw_of(self.shared.call_and_wait(Asked::Draw))
    }

    /// Draws once, and calls a function with the outcome: once, whatever happens, on the service's thread or, if the service takes no more
    /// calls, at once on this one. It should be quick, because everybody waits for it; what it captures lies in place up to three words.
    ///
    /// Waits while the queue is full. In a callback there is no waiting: then the outcome is [`CallError::Full`].
    pub fn draw_with(&self, then: impl FnOnce(Result<Draw, CallError>) + Send + 'static) {
        self.shared.call_with(Asked::Draw, move |outcome| then(draw_of(outcome)));
    }

    /// Draws once: a future for the outcome, for tasks of any runtime or for [`Drawing::wait`].
    pub fn draw_async(&self) -> Drawing {
        Drawing(Calling::new(Arc::clone(&self.shared), Asked::Draw))
    }

    /// Has something done, and waits until that is in the log.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&self, request: Request) -> Outcome {
        self.shared.call_and_wait(request.into())
    }

    /// Has something done, and calls a function with the outcome, as [`draw_with`](Self::draw_with) does.
    pub fn call_with(&self, request: Request, then: impl FnOnce(Outcome) + Send + 'static) {
        self.shared.call_with(request.into(), then);
    }

    /// Has something done: a future for the outcome, as [`draw_async`](Self::draw_async) has it.
    pub fn call_async(&self, request: Request) -> Calling {
        Calling::new(Arc::clone(&self.shared), request.into())
    }

    /// Takes no more calls, answers those that were taken, and closes the journal. Done once; later calls say the same.
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
        // Whoever needs to know calls `stop` first.
        let _ = self.stop();
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Service")
    }
}
