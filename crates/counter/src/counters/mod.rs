//! Counters by name: storage in memory, lookup, moves and commits.

mod batch;
mod finding;
mod handle;
mod inbox;
mod key;
mod life;
mod metrics;
mod moving;
mod names;
mod options;
mod readers;
mod settings;
mod shard;
mod shared;
mod table;
mod worker;

pub use crate::committer::Error;
pub use batch::{BatchError, MAX_TOGETHER};
pub use handle::Handle;
pub use metrics::{Exposure, Metrics};
pub use options::{Options, SettingsOf};
pub use settings::Settings;

use crate::account::Account;
use crate::committer::Ticket;
use crate::ledger::Move;
use crate::store::Store;
use inbox::Request;
use shared::Shared;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use worker::Worker;

/// Counters by name, over a [`Store`].
///
/// A counter is loaded at the first use of its name and then moves in memory. A background thread
/// commits the changes in batches, at times that [`Settings`] control. Share it by reference or in
/// an [`Arc`].
///
/// ```
/// use tidemark_counter::counters::{Counters, Error, Options, Settings};
/// use tidemark_counter::{Kind, store::Memory};
/// use std::sync::Arc;
///
/// let store = Memory::default();
/// let options = Options {
///     writer: "api-1".into(),
///     settings: Arc::new(|_| Settings { kind: Kind::Quota { limit: 100 }, ..Settings::default() }),
///     ..Options::default()
/// };
/// let counters = Counters::open(store.clone(), options.clone())?;
/// counters.take(b"tenant:1", 60)?;
/// counters.refund(b"tenant:1", 10)?;
/// assert_eq!(counters.take(b"tenant:1", 51), Err(Error::Exhausted));
///
/// let tenant = counters.get(b"tenant:1")?; // for those who use one again and again
/// tenant.take(50)?;
/// counters.close()?;
///
/// let counters = Counters::open(store, options)?;
/// assert_eq!(counters.available(b"tenant:1")?, Some(0));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::Exhausted`] means that a quota refuses. With any other error the move was not made,
/// except [`Error::Unstored`]. Moves that need no commit are possible while the store does not
/// answer. The others wait for it, up to [`Options::patience`], and then fail with
/// [`Error::Unavailable`]; those that wait for one counter are made in their order. A refund to an
/// exact counter of more than its block is made as soon as no batch is in flight, and then fails
/// with [`Error::Unstored`] if the store does not answer. Once another process has claimed the
/// writer's name, or the counters are closed, no counter moves any more.
///
/// # Dropping
/// Commits all that is uncommitted, as [`close`](Self::close) does, and ignores errors.
pub struct Counters {
    shared: Arc<Shared>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Counters {
    /// Claims the writer's name of the options, and starts the commit thread.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer; there is no retry. [`Error::Broken`] if
    /// no thread can be started.
    pub fn open(store: impl Store + 'static, options: Options) -> Result<Self, Error> {
        tidemark_barrier::prepare();
        let mut store = store;
        let claim = store.claim(&options.writer)?;
        let options = Options { max_name: options.max_name.min(key::MAX_NAME), ..options };
        let shared = Arc::new(Shared::new(options));
        let seed = shared.hash(&claim.epoch.to_le_bytes());
        let worker = Worker::new(shared.clone(), store, claim, seed);
        let worker = thread::Builder::new().name("tidemark-commit".into()).spawn(|| worker.run());
        let worker = worker.map_err(|error| Error::Broken { reason: error.to_string() })?;
        Ok(Self { shared, worker: Mutex::new(Some(worker)) })
    }

    /// Returns a handle to the counter with this name, and loads the counter if it is not in
    /// memory.
    pub fn get(&self, name: &[u8]) -> Result<Handle, Error> {
        let key = self.shared.locate(self.shared.hash(name), name)?;
        Ok(Handle::new(self.shared.clone(), key))
    }

    /// Returns handles to the counters with these names, in their order; each is what
    /// [`get`](Self::get) would return.
    ///
    /// Absent counters are loaded together, [`Options::max_batch`] per request to the store, and
    /// repeated names once; one [`patience`](Options::patience) covers the call. All must fit into
    /// memory at the same time: beyond [`Options::max_keys`], some are [`Error::Full`]. Costs a
    /// microsecond or two for each name, plus the store's latency.
    ///
    /// ```
    /// use tidemark_counter::counters::{Counters, Error, Options};
    /// use tidemark_counter::store::Memory;
    ///
    /// let counters = Counters::open(Memory::default(), Options::default())?;
    /// let handles = counters.get_all(&[b"likes:1", b"likes:2"]).into_iter().collect::<Result<Vec<_>, Error>>()?;
    /// handles.iter().try_for_each(|handle| handle.add(1))?;
    /// assert_eq!(counters.state(b"likes:2")?.position(), 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn get_all(&self, names: &[&[u8]]) -> Vec<Result<Handle, Error>> {
        let keys = self.shared.locate_all(names.iter().copied(), Instant::now());
        keys.into_iter().map(|key| Ok(Handle::new(self.shared.clone(), key?))).collect()
    }

    /// As [`Handle::take`], for the counter with this name.
    #[inline]
    pub fn take(&self, name: &[u8], amount: u64) -> Result<(), Error> {
        self.shared.apply(name, Move::Take(amount)).map(|_| ())
    }

    /// As [`Handle::refund`], for the counter with this name.
    #[inline]
    pub fn refund(&self, name: &[u8], amount: u64) -> Result<u64, Error> {
        self.shared.apply(name, Move::Refund(amount))
    }

    /// As [`Handle::add`], for the counter with this name.
    #[inline]
    pub fn add(&self, name: &[u8], delta: i64) -> Result<(), Error> {
        self.shared.apply(name, Move::Add(delta)).map(|_| ())
    }

    /// Makes several moves in order, each separately, and returns for each the units moved or the
    /// error, as [`take`](Self::take), [`refund`](Self::refund) and [`add`](Self::add) would.
    /// Absent counters are loaded together, as by [`get_all`](Self::get_all), but need not all fit
    /// into memory at the same time. Commits are awaited together. One
    /// [`patience`](Options::patience) covers the call.
    ///
    /// ```
    /// use tidemark_counter::counters::{Counters, Error, Options};
    /// use tidemark_counter::{Move, store::Memory};
    ///
    /// let counters = Counters::open(Memory::default(), Options::default())?;
    /// counters.set_limit(b"tenant:1", 10)?;
    /// let results = counters.batch_each(&[(b"tenant:1", Move::Take(11)), (b"likes", Move::Add(1))]);
    /// assert_eq!(results, [Err(Error::Exhausted), Ok(1)]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn batch_each(&self, moves: &[(&[u8], Move)]) -> Vec<Result<u64, Error>> {
        self.shared.batch_each(moves)
    }

    /// Makes several moves atomically, at most [`MAX_TOGETHER`], and returns the units that each
    /// has moved. If one is not possible, makes none, and returns the first that failed.
    ///
    /// No other move of these counters happens in between: a refused batch takes nothing, not even
    /// temporarily, and batches are serialized. Moves of one name are made in their order. A refund
    /// that returns less than requested does not fail the batch. What this does not guarantee:
    /// - A caller that reads two counters reads them one after the other, and a batch may come in
    ///   between.
    /// - The moves are *stored* by each counter's own commits. A crash may keep one and lose
    ///   another, each within its counter's promise.
    ///
    /// Absent counters are loaded together first. Locking the books costs some 20 ns for each
    /// counter, and some microseconds for one that many threads use; these threads wait meanwhile.
    ///
    /// ```
    /// use tidemark_counter::counters::{Counters, Error, Options};
    /// use tidemark_counter::{Move, store::Memory};
    ///
    /// let counters = Counters::open(Memory::default(), Options::default())?;
    /// counters.set_limit(b"tenant:1", 100)?;
    /// counters.set_limit(b"user:7", 5)?;
    /// let ask = |amount| {
    ///     counters.batch_all(&[
    ///         (b"tenant:1", Move::Take(amount)),
    ///         (b"user:7", Move::Take(amount)),
    ///         (b"requests", Move::Add(1)),
    ///     ])
    /// };
    /// assert_eq!(ask(4), Ok(vec![4, 4, 1]));
    /// let refused = ask(2).unwrap_err();
    /// assert_eq!((refused.index, refused.error), (1, Error::Exhausted));
    /// assert_eq!(counters.available(b"tenant:1"), Ok(Some(96)));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for single moves; all but [`Error::Unstored`] mean that nothing was moved.
    /// [`Error::TooManyMoves`]. [`Error::Unavailable`] also if other callers always use the room
    /// that a commit has made first: unlike single moves, a batch is not made atomically with the
    /// acknowledgement.
    pub fn batch_all(&self, moves: &[(&[u8], Move)]) -> Result<Vec<u64>, BatchError> {
        self.shared.batch_all(moves)
    }

    /// As [`Handle::peek`], for the counter with this name.
    pub fn peek(&self, name: &[u8], amount: u64) -> Result<bool, Error> {
        handle::peek(&self.state(name)?, amount)
    }

    /// As [`Handle::available`], for the counter with this name.
    pub fn available(&self, name: &[u8]) -> Result<Option<i64>, Error> {
        self.shared.read(name, crate::Counter::available)
    }

    /// As [`Handle::state`], for the counter with this name.
    pub fn state(&self, name: &[u8]) -> Result<Account, Error> {
        self.shared.read(name, crate::Counter::books)
    }

    /// As [`Handle::commit`], for the counter with this name.
    pub fn commit(&self, name: &[u8]) -> Result<(), Error> {
        self.get(name)?.commit()
    }

    /// As [`Handle::check_commit`], for the counter with this name.
    pub fn check_commit(&self, name: &[u8], threshold: u64) -> Result<Option<i64>, Error> {
        Ok(self.get(name)?.check_commit(threshold))
    }

    /// As [`Handle::commit_up_to`], for the counter with this name.
    pub fn commit_up_to(&self, name: &[u8], units: i64) -> Result<(), Error> {
        self.get(name)?.commit_up_to(units)
    }

    /// As [`Handle::set_limit`], for the counter with this name.
    pub fn set_limit(&self, name: &[u8], limit: i64) -> Result<(), Error> {
        self.get(name)?.set_limit(limit)
    }

    /// Gives the counter with this name the settings that the options return for it now.
    pub fn refresh(&self, name: &[u8]) -> Result<(), Error> {
        let settings = (self.shared.options.settings)(name);
        let key = self.shared.locate(self.shared.hash(name), name)?;
        self.shared.change(&key, false, |_| settings)?;
        self.shared.settle(&key)
    }

    /// Commits all that is uncommitted, and waits until the store has it.
    pub fn flush(&self) -> Result<(), Error> {
        let (flushed, began) = (Arc::new(Ticket::default()), Instant::now());
        self.shared.request(Request::Flush(flushed.clone()))?;
        self.shared.answer(&flushed, began)?
    }

    /// Evicts all counters without uncommitted changes, handles, or individual settings, and
    /// returns how many. They are loaded again at their next use.
    pub fn evict_idle(&self) -> Result<usize, Error> {
        let (evicted, began) = (Arc::new(Ticket::default()), Instant::now());
        self.shared.request(Request::Evict(evicted.clone()))?;
        self.shared.answer(&evicted, began)
    }

    /// Returns the metrics. Costs one lock.
    pub fn metrics(&self) -> Metrics {
        let figures = &self.shared.figures;
        let (counts, dirty) = *figures.committer.lock().unwrap_or_else(PoisonError::into_inner);
        Metrics {
            keys: self.shared.keys(),
            dirty,
            loads: figures.loads.load(Ordering::Relaxed),
            evictions: figures.evictions.load(Ordering::Relaxed),
            batches: counts.batches,
            changes: counts.changes,
            units: counts.units,
            resends: counts.resends,
            rejections: counts.rejections,
            absorbed: counts.absorbed,
        }
    }

    /// Returns how far the store is from the true positions. The commit thread checks each dirty
    /// counter for it.
    pub fn exposure(&self) -> Result<Exposure, Error> {
        let (survey, began) = (Arc::new(Ticket::default()), Instant::now());
        self.shared.request(Request::Survey(survey.clone()))?;
        self.shared.answer(&survey, began)
    }

    /// Stops all counters, here and in handles, and commits all that is uncommitted. A second call
    /// does nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store has not answered within [`Options::patience`],
    /// [`Error::Fenced`], and any other error that has prevented commits. The uncommitted changes
    /// are lost.
    pub fn close(&self) -> Result<(), Error> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = worker.take() else { return Ok(()) };
        let closed = Arc::new(Ticket::default());
        let result = match self.shared.inbox.request(Request::Close(closed.clone())) {
            Ok(()) => None,
            Err(_) => Some(Err(self.shared.stopped().unwrap_or(Error::Closed))),
        };
        // The thread ends in any case: the store's calls have deadlines, and the wait for them has
        // one.
        let _ = thread.join();
        result.or_else(|| closed.peek()).unwrap_or(Err(Error::Closed))
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // Drop cannot report an error.
        let _ = self.close();
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Counters")
            .field("options", &self.shared.options)
            .field("metrics", &self.metrics())
            .finish_non_exhaustive()
    }
}
