//! Tidemark's own log as a store: no other process, one folder, one sync a batch.
//!
//! A record is a claim or a batch. All positions are in memory and are recovered by replaying the
//! log, whose beginning is truncated by automatic snapshots. The folder is locked against other
//! processes.

use crate::record::{Record, decode, encode_batch, encode_claim};
use crate::state::{Outcome, State};
use crate::trouble::{refused, unavailable};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use tidemark_counter::store::{Batch, Claim, Error, Receipt, Store, check_writer};
use tidemark_log::{
    AppendError, Durability, FileStorage, Log, Lsn, OpenError, Options, Snapshot, SnapshotError,
    SnapshotWriter, Snapshots, Storage, Verify,
};

/// The kind of all records; the first byte of a record says which one it is.
const KIND: u8 = 1;
/// The only section of a snapshot.
const SECTION: u32 = 1;
/// Size of a snapshot frame. Bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// The longest record. Bytes.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// Location and options of a [`LogStore`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// The folder, created if it is missing.
    pub directory: PathBuf,
    /// Size of a segment file, of which at least three are allocated. 16 MiB by default.
    pub segment_bytes: u64,
    /// A snapshot is taken when this much has been logged since the last one, or as much as the
    /// state takes if that is more. Opening therefore reads at most about twice this or twice the
    /// state. 32 MiB by default.
    pub snapshot_after_bytes: usize,
    /// Most changes in a batch. 1,000,000 by default.
    pub max_deltas: usize,
}

impl LogOptions {
    /// Returns the defaults for this folder.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            segment_bytes: 16 << 20,
            snapshot_after_bytes: 32 << 20,
            max_deltas: 1_000_000,
        }
    }
}

/// Commits in a [`Log`] of their own. Clones share one store, so several writers can use it;
/// concurrent commits share a sync.
///
/// A commit is durable when it is acknowledged. Every counter that ever had one takes some 60 bytes
/// of memory plus its name.
///
/// ```
/// use tidemark_counter::store::{Batch, Delta, Store};
/// use tidemark_stores::{LogOptions, LogStore};
///
/// let folder = tempfile::tempdir().unwrap();
/// let mut store = LogStore::open(&LogOptions::new(folder.path())).unwrap();
/// let claim = store.claim("billing").unwrap();
/// let deltas = vec![Delta { key: (*b"tenant:1").into(), amount: 20 }];
/// let batch = Batch { writer: "billing".into(), epoch: claim.epoch, sequence: claim.last_sequence + 1, deltas };
/// store.commit(&batch).unwrap();
/// drop(store);
///
/// let mut store = LogStore::open(&LogOptions::new(folder.path())).unwrap();
/// assert_eq!(store.load(&[b"tenant:1", b"tenant:2"]).unwrap(), [Some(20), None]);
/// ```
#[derive(Debug, Clone)]
pub struct LogStore(Arc<Inside>);

struct Inside {
    log: Arc<Log>,
    place: String,
    contents: Mutex<Contents>,
    snapshot_after_bytes: usize,
    max_deltas: usize,
    /// Whether a thread is writing a snapshot.
    snapshotting: Arc<AtomicBool>,
    snapshot_failure: Arc<Mutex<Option<String>>>,
}

struct Contents {
    /// The state after all records; records are appended under its lock.
    state: State,
    /// Bytes logged since the last snapshot.
    bytes_behind_snapshot: usize,
    snapshot: Option<JoinHandle<()>>,
}

impl LogStore {
    /// Opens the folder and recovers its state.
    ///
    /// # Errors
    /// [`Error::Refused`] if another process has the folder, if durable records are damaged, or if
    /// it holds another program's log; [`Error::Unavailable`] if the disk fails.
    pub fn open(options: &LogOptions) -> Result<Self, Error> {
        let place = options.directory.display().to_string();
        let storage = FileStorage::new(&options.directory)
            .map_err(|error| unavailable("open", &place, error.to_string()))?;
        Self::open_in(Arc::new(storage), options)
    }

    /// As [`open`](Self::open), with any kind of storage; the folder is used only in messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(storage: Arc<dyn Storage>, options: &LogOptions) -> Result<Self, Error> {
        let place = options.directory.display().to_string();
        let log_options = Options {
            durability: Durability::Always,
            segment_bytes: options.segment_bytes,
            max_record_bytes: RECORD_BYTES_MAX,
            // The replay verifies what it reads.
            verify: Verify::Tail,
            ..Options::default()
        };
        let (log, _) = Log::open(storage, log_options).map_err(|error| match error {
            OpenError::Storage { .. } => unavailable("open", &place, error.to_string()),
            other => refused("open", &place, other.to_string()),
        })?;
        let log = Arc::new(log);
        let (state, bytes_behind_snapshot) = recover(&log, &place)?;
        Ok(Self(Arc::new(Inside {
            log,
            place,
            contents: Mutex::new(Contents { state, bytes_behind_snapshot, snapshot: None }),
            snapshot_after_bytes: options.snapshot_after_bytes,
            max_deltas: options.max_deltas,
            snapshotting: Arc::default(),
            snapshot_failure: Arc::default(),
        })))
    }

    /// Returns why the last snapshot failed, until one succeeds: the log grows meanwhile.
    pub fn snapshot_failure(&self) -> Option<String> {
        self.0.snapshot_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Store for LogStore {
    fn claim(&mut self, writer: &str) -> Result<Claim, Error> {
        check_writer(writer)?;
        let mut contents = self.0.contents();
        let known = contents.state.claim_of(writer);
        let Some(epoch) = known.epoch.checked_add(1) else {
            return Err(refused("claim a name in", &self.0.place, "its epochs are used up"));
        };
        let record = Record::Claim { writer: writer.to_owned(), epoch };
        let lsn = self.0.append(&mut contents, |buffer| encode_claim(buffer, writer, epoch))?;
        let outcome = contents.state.apply(record);
        assert!(
            matches!(outcome, Outcome::Applied),
            "epoch {epoch} is above the known one, and is {outcome:?}"
        );
        drop(contents);
        self.0.settle(lsn)?;
        Ok(Claim { epoch, ..known })
    }

    fn commit(&mut self, batch: &Batch) -> Result<Receipt, Error> {
        if batch.deltas.len() > self.0.max_deltas {
            return Err(Error::TooLarge { deltas: batch.deltas.len(), limit: self.0.max_deltas });
        }
        let mut contents = self.0.contents();
        let (receipt, lsn) = match contents.state.judge(batch)? {
            // An applied batch may not be durable yet.
            Some(receipt) => (receipt, self.0.log.appended()),
            None => {
                let lsn = self.0.append(&mut contents, |buffer| encode_batch(buffer, batch))?;
                let outcome = contents.state.apply(Record::Batch(batch.clone()));
                let sequence = batch.sequence;
                assert!(
                    matches!(outcome, Outcome::Applied),
                    "batch {sequence} was judged, and is {outcome:?}"
                );
                (Receipt::Applied, lsn)
            }
        };
        self.0.snapshot_if_due(&mut contents);
        drop(contents);
        self.0.settle(lsn)?;
        Ok(receipt)
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
        let contents = self.0.contents();
        let positions = keys.iter().map(|key| contents.state.position(key)).collect();
        let lsn = self.0.log.appended();
        drop(contents);
        // Never return what a power failure could take back.
        self.0.settle(lsn)?;
        Ok(positions)
    }

    fn max_deltas(&self) -> usize {
        self.0.max_deltas
    }
}

impl Inside {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record. The caller must apply it to the state before it releases the lock.
    fn append(&self, contents: &mut Contents, write: impl FnOnce(&mut Vec<u8>)) -> Result<Lsn, Error> {
        let mut bytes = 0;
        let lsn = self.log.append(now_us(), KIND, |buffer| {
            let before = buffer.len();
            write(buffer);
            bytes = buffer.len() - before;
        });
        let lsn = lsn.map_err(|error| match error {
            AppendError::TooLarge { .. } => refused("write to", &self.place, error.to_string()),
            other => unavailable("write to", &self.place, other.to_string()),
        })?;
        contents.bytes_behind_snapshot += bytes;
        Ok(lsn)
    }

    /// Waits until everything up to `lsn` is durable.
    fn settle(&self, lsn: Lsn) -> Result<(), Error> {
        self.log.wait_durable(lsn).map_err(|error| unavailable("sync", &self.place, error.to_string()))
    }

    /// Starts a thread that writes a snapshot of the state, unless one is running: commits wait
    /// only for the copy in memory.
    fn snapshot_if_due(&self, contents: &mut Contents) {
        // A snapshot thread that panicked has not cleared `snapshotting`.
        if let Some(ended) = contents.snapshot.take_if(|thread| thread.is_finished())
            && ended.join().is_err()
        {
            let mut failure = self.snapshot_failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = Some("the thread that wrote the snapshot has panicked".to_owned());
            self.snapshotting.store(false, Ordering::Release);
        }
        let due = self.snapshot_after_bytes.max(contents.state.bytes());
        if contents.bytes_behind_snapshot < due || self.snapshotting.swap(true, Ordering::AcqRel) {
            return;
        }
        contents.bytes_behind_snapshot = 0;
        let (lsn, chunks) = (self.log.appended(), contents.state.chunks(CHUNK_BYTES));
        let (log, snapshotting) = (Arc::clone(&self.log), Arc::clone(&self.snapshotting));
        let failure = Arc::clone(&self.snapshot_failure);
        let work = move || {
            let taken = take_snapshot(&log, lsn, &chunks);
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = taken.err().map(|error| error.to_string());
            drop(failure);
            snapshotting.store(false, Ordering::Release);
        };
        // The previous thread has nothing left to do but to end.
        if let Some(before) = contents.snapshot.take() {
            let _ = before.join();
        }
        match std::thread::Builder::new().name("tidemark-counter-snapshot".into()).spawn(work) {
            Ok(thread) => contents.snapshot = Some(thread),
            Err(error) => {
                self.snapshotting.store(false, Ordering::Release);
                let mut failure = self.snapshot_failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(error.to_string());
            }
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // The thread uses the log, which is freed after this together with the folder's lock.
        if let Some(thread) = self.contents().snapshot.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStore").field("directory", &Path::new(&self.place)).finish_non_exhaustive()
    }
}

fn take_snapshot(log: &Log, lsn: Lsn, chunks: &[Vec<u8>]) -> Result<(), SnapshotError> {
    let mut writer = SnapshotWriter::create(Arc::clone(log.storage()), lsn)?;
    for chunk in chunks {
        writer.write_frame(SECTION, chunk)?;
    }
    log.finish_snapshot(writer)
}

/// Recovers the state from the snapshot and the log, and returns how many bytes were logged since
/// the snapshot.
fn recover(log: &Log, place: &str) -> Result<(State, usize), Error> {
    let no = |error: String| refused("read back", place, error);
    let snapshots = Snapshots::new(Arc::clone(log.storage()));
    let (snapshot, _damaged) = snapshots.latest(log.floor()).map_err(|error| no(error.to_string()))?;
    let mut state = State::default();
    if let Some(snapshot) = &snapshot {
        load(&mut state, snapshot).map_err(no)?;
    }
    let from = snapshot.as_ref().map_or(Lsn::FIRST, |snapshot| snapshot.lsn().next());
    let mut bytes = 0;
    let mut replay = log.replay(from).map_err(|error| no(error.to_string()))?;
    while let Some(records) = replay.next_batch().map_err(|error| no(error.to_string()))? {
        for record in records {
            bytes += record.payload.len();
            let decoded = decode(record.payload).filter(|_| record.kind == KIND);
            let Some(decoded) = decoded else {
                return Err(no(format!("record {} is none of a store of counters", record.lsn)));
            };
            if let Outcome::Ignored(error) = state.apply(decoded) {
                return Err(no(format!("record {} does not follow those before it: {error}", record.lsn)));
            }
        }
    }
    // Without the damaged snapshot, what it covers is needed again.
    log.retain(from);
    let used = snapshot.as_ref().map(Snapshot::lsn);
    snapshots.set_aside(used).map_err(|error| unavailable("read back", place, error.to_string()))?;
    Ok((state, bytes))
}

fn load(state: &mut State, snapshot: &Snapshot) -> Result<(), String> {
    let mut is_whole = true;
    let read = snapshot.read_section(SECTION, |chunk| is_whole &= state.load_chunk(chunk).is_some());
    read.map_err(|error| error.to_string())?;
    if is_whole { Ok(()) } else { Err("the snapshot is none of a store of counters".to_owned()) }
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}
