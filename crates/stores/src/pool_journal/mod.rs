//! A pool's journal in Tidemark's own log: all its formats and storages, snapshots, and recovery.
//!
//! A log begins with the initial pool, followed by its frames. In the readable formats a frame is a
//! line of words. The folder is locked, so that no second process draws from the same pool.

mod base;
mod error;
mod record;
mod recovery;
mod snapshot;

pub use error::PoolLogError;
pub use recovery::PoolRecovery;
pub use snapshot::SnapshotHealth;

use snapshot::{Due, ThreadSink};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tidemark_log::{AppendError, Durability, Format, Log, Lsn, Options, Storage, Verify};
use tidemark_pool::journal::{Journal, JournalError, Listener, Position, SnapshotSink};
use tidemark_pool::{ChainedPool, Frame, Pool, Selector};

/// Options of a [`PoolJournal`]'s log.
#[derive(Debug, Clone)]
pub struct PoolLogOptions {
    /// Options of the log: format, durability, sizes, retention.
    ///
    /// With [`Durability::Always`], the default here, a draw is answered when it is synced. With
    /// `Interval`, it is answered when it is appended: a power failure loses what was answered
    /// within the interval, and an end of the process what was answered in the last 10 ms. With
    /// `Off`, the loss at a power failure is unbounded. The end of an epoch is always synced before
    /// its secret is revealed.
    pub log: Options,
    /// A snapshot is taken when this much has been logged since the last one, or as much as the
    /// pool takes if that is more. A start therefore reads at most about twice this, or twice the
    /// pool. 32 MiB by default.
    ///
    /// If the last snapshot found at least half of the pool's blocks of 128 items unchanged, the
    /// next one is *incremental*. It has only the blocks that differ from the last full one, and is
    /// taken when a quarter of the pool's size has been logged. At most three are based on a full
    /// one, with a total size not much above it.
    pub snapshot_after_bytes: u64,
}

impl Default for PoolLogOptions {
    fn default() -> Self {
        // The replay verifies what it reads.
        let log = Options { durability: Durability::Always, verify: Verify::Tail, ..Options::default() };
        Self { log, snapshot_after_bytes: 32 << 20 }
    }
}

/// A pool's frames in a [`Log`] of their own.
///
/// ```
/// use std::sync::Arc;
/// use tidemark_log::FileStorage;
/// use tidemark_pool::selector::WideTree;
/// use tidemark_pool::service::{Service, Settings};
/// use tidemark_pool::{Catalogue, Item, Pool, Secret};
/// use tidemark_stores::{PoolJournal, PoolLogOptions};
///
/// let folder = tempfile::tempdir().unwrap();
/// let open = || {
///     let storage = Arc::new(FileStorage::new(folder.path()).unwrap());
///     PoolJournal::open(storage, &PoolLogOptions::default(), || {
///         let catalogue = Catalogue::new(vec![Item::limited("mug", 1, 10)]).unwrap();
///         // 32 random bytes each, from the operating system.
///         Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]))
///     })
/// };
/// let (pool, journal, _) = open().unwrap();
/// let service = Service::start(pool, journal, || 0, Settings::default()).unwrap();
/// assert_eq!(service.draw().unwrap().number, 0);
/// drop(service);
///
/// let (pool, _, recovery) = open().unwrap();
/// assert_eq!((pool.pool.next_draw(), recovery.frames), (1, 1));
/// ```
pub struct PoolJournal {
    log: Arc<Log>,
    /// Whether frames are written as words.
    is_readable: bool,
    words: String,
    failure: Option<JournalError>,
    /// Frames that reveal a secret, in order; removed once they are known to be durable.
    secrets: VecDeque<Lsn>,
    due: Due,
}

/// Result of opening: the recovered pool, the journal that continues it, and what was found.
pub type OpenedPool<S> = (ChainedPool<S>, PoolJournal, PoolRecovery);

impl PoolJournal {
    /// Opens a pool's log and recovers the pool. If there is none, logs that of `create`, which is
    /// durable when this returns.
    ///
    /// The torn end of a log whose process or machine stopped is truncated and reported in
    /// [`PoolRecovery`]; with [`Durability::Always`], nothing of it was answered. Damage to
    /// anything before is an error that says where.
    ///
    /// # Errors
    /// [`PoolLogError`], also if another process has the folder.
    pub fn open<S: Selector>(
        storage: Arc<dyn Storage>,
        options: &PoolLogOptions,
        create: impl FnOnce() -> Pool<S>,
    ) -> Result<OpenedPool<S>, PoolLogError> {
        Self::open_with(storage, options, create, S::new)
    }

    /// As [`open`](Self::open); `selector` creates the selector from the weights of a recovered
    /// pool.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with<S: Selector>(
        storage: Arc<dyn Storage>,
        options: &PoolLogOptions,
        create: impl FnOnce() -> Pool<S>,
        selector: impl Fn(&[u64]) -> S,
    ) -> Result<OpenedPool<S>, PoolLogError> {
        let (log, recovered) = Log::open(storage, options.log.clone())?;
        let log = Arc::new(log);
        let (pool, recovery) = recovery::recover(&log, recovered, create, selector)?;
        let journal = Self {
            is_readable: options.log.format != Format::Binary,
            words: String::new(),
            failure: None,
            secrets: VecDeque::new(),
            due: Due::new(&pool, options.snapshot_after_bytes, recovery.bytes_behind_snapshot),
            log,
        };
        Ok((pool, journal, recovery))
    }

    /// Returns the log, for followers and health checks.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Returns the health of snapshots, which can be queried while a service owns the journal.
    pub fn snapshots(&self) -> SnapshotHealth {
        self.due.health()
    }

    fn append_frame(&mut self, time_us: u64, frame: &[u8]) -> Result<Lsn, AppendError> {
        let mut bytes = frame;
        let mut kind = record::FRAME;
        if self.is_readable {
            self.words.clear();
            if Frame::write_words(frame, &mut self.words).is_ok() {
                (bytes, kind) = (self.words.as_bytes(), record::WORDS);
            }
        }
        let lsn = self.log.append(time_us, kind, |buffer| buffer.extend_from_slice(bytes))?;
        self.due.note(bytes.len());
        Ok(lsn)
    }

    /// Returns the first frame that reveals a secret and is not durable.
    fn first_secret(&self) -> Option<Lsn> {
        let durable = self.log.durable();
        self.secrets.iter().copied().find(|secret| *secret > durable)
    }

    fn waits_for_sync(&self) -> bool {
        self.log.durability() == Durability::Always
    }
}

impl Journal for PoolJournal {
    fn append(&mut self, time_us: u64, frame: &[u8]) -> Result<Position, JournalError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.append_frame(time_us, frame) {
            Ok(lsn) => Ok(lsn.0),
            Err(error) => {
                let failure = JournalError::new(error.to_string());
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    fn settle_when_durable(&mut self, position: Position) {
        let durable = self.log.durable();
        while self.secrets.pop_front_if(|secret| *secret <= durable).is_some() {}
        self.secrets.push_back(Lsn(position));
    }

    fn request(&mut self, position: Position) {
        if self.waits_for_sync() || self.first_secret().is_some() {
            self.log.sync_or_request(Lsn(position));
        }
    }

    fn settled(&self) -> Result<Position, JournalError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.log.check_writable() {
            Err(error @ AppendError::Failed(_)) => Err(JournalError::new(error.to_string())),
            // What was accepted before the disk was full is still written.
            _ if self.waits_for_sync() => Ok(self.log.durable().0),
            // Each secret waits for its own sync, even if another one follows.
            _ => Ok(self.first_secret().map_or(self.log.appended().0, |secret| secret.0 - 1)),
        }
    }

    fn listen(&mut self, listener: Listener) {
        self.log.set_listener(Box::new(move |_| listener()));
    }

    fn begin_snapshot(&mut self) -> Option<Box<dyn SnapshotSink>> {
        if self.failure.is_some() || !self.due.is_due() {
            return None;
        }
        ThreadSink::begin(&self.log, &mut self.due)
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.due.wait();
        let closed = self.log.close().map_err(|failure| JournalError::new(failure.to_string()));
        self.failure.clone().map_or(closed, Err)
    }
}

impl fmt::Debug for PoolJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolJournal").field("log", &self.log).finish_non_exhaustive()
    }
}
