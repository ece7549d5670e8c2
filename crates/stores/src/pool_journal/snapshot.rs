//! Snapshots of a pool: when one is due, and the thread that writes it.

use super::base::{Base, Comparison, INCREMENTS_MAX};
use super::record;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tidemark_log::{Log, Lsn, SnapshotError, SnapshotWriter};
use tidemark_pool::journal::SnapshotSink;
use tidemark_pool::{Chain, ChainedPool, Selector};

/// Most bytes that the thread holds unwritten, if the pool can wait.
const HELD_BYTES_MAX: usize = 4 << 20;
/// Approximate size of an item in a snapshot, without its id.
const ITEM_BYTES: u64 = 24;

/// Health of a pool's snapshots.
#[derive(Debug, Clone, Default)]
pub struct SnapshotHealth(Arc<Mutex<Option<String>>>);

impl SnapshotHealth {
    /// Returns why the last snapshot failed, until one succeeds: the log grows meanwhile, and
    /// another is tried later.
    pub fn failure(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, failure: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }
}

/// When a snapshot is due, and its base.
pub(super) struct Due {
    after_bytes: u64,
    /// Approximate size of a full snapshot.
    pool_bytes: u64,
    /// Bytes logged since the last snapshot.
    behind: u64,
    thread: Option<JoinHandle<Option<Base>>>,
    /// Result of the last thread: `None` if it failed, so the next snapshot is full.
    base: Option<Base>,
    health: SnapshotHealth,
}

impl Due {
    pub(super) fn new<S: Selector>(pool: &ChainedPool<S>, after_bytes: u64, behind: u64) -> Self {
        Self {
            after_bytes,
            pool_bytes: pool.pool.urn().len() as u64 * ITEM_BYTES,
            behind,
            thread: None,
            base: None,
            health: SnapshotHealth::default(),
        }
    }

    pub(super) fn note(&mut self, bytes: usize) {
        self.behind += bytes as u64;
    }

    pub(super) fn is_due(&mut self) -> bool {
        if self.behind < self.after_bytes || self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
        {
            return false;
        }
        self.wait();
        // Either kind compares all blocks, so an incremental one also waits for its share of the
        // pool's size.
        let is_incremental = self.base.as_ref().is_some_and(Base::takes_another);
        let parts = if is_incremental { 1 + u64::from(INCREMENTS_MAX) } else { 1 };
        self.behind >= self.pool_bytes / parts
    }

    pub(super) fn health(&self) -> SnapshotHealth {
        self.health.clone()
    }

    /// Waits for the thread, if there is one.
    pub(super) fn wait(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.base = thread.join().unwrap_or_else(|_| {
            self.health.set(Some("the thread that wrote the snapshot has panicked".to_owned()));
            None
        });
    }
}

enum Part {
    Head(Vec<u8>),
    Block(usize, Vec<u8>),
    End,
}

/// Passes the parts of a snapshot to the thread that writes them.
pub(super) struct ThreadSink {
    parts: Sender<Part>,
    /// Bytes of parts that the thread has not written yet.
    held: Arc<AtomicUsize>,
}

impl ThreadSink {
    /// Begins a snapshot of the pool as of the last record of the log.
    pub(super) fn begin(log: &Arc<Log>, due: &mut Due) -> Option<Box<dyn SnapshotSink>> {
        due.behind = 0;
        due.wait();
        let (parts, written) = channel();
        let held = Arc::new(AtomicUsize::new(0));
        let (log, lsn, health) = (Arc::clone(log), log.appended(), due.health());
        let still_held = Arc::clone(&held);
        let comparison = Comparison::new(due.base.take());
        let work = move || match write(&log, lsn, comparison, &written, &still_held) {
            Ok(Some(base)) => {
                health.set(None);
                Some(base)
            }
            // The pool's service has ended before the snapshot.
            Ok(None) => None,
            Err(error) => {
                health.set(Some(error.to_string()));
                None
            }
        };
        match std::thread::Builder::new().name("tidemark-pool-snapshot".into()).spawn(work) {
            Ok(thread) => due.thread = Some(thread),
            Err(error) => {
                due.health.set(Some(error.to_string()));
                return None;
            }
        }
        Some(Box::new(Self { parts, held }))
    }

    fn send(&self, part: Part, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        // A thread that has failed has reported why.
        let _ = self.parts.send(part);
    }
}

impl SnapshotSink for ThreadSink {
    fn head(&mut self, chain: Chain, head: &[u8]) {
        let head = record::put_head(chain, head);
        let bytes = head.len();
        self.send(Part::Head(head), bytes);
    }

    fn block(&mut self, block: usize, items: &[u8]) {
        self.send(Part::Block(block, items.to_vec()), items.len());
    }

    fn is_busy(&self) -> bool {
        // A thread that has failed writes nothing more, and drops what it is sent.
        let is_written = Arc::strong_count(&self.held) > 1;
        is_written && self.held.load(Ordering::Relaxed) > HELD_BYTES_MAX
    }

    fn finish(self: Box<Self>) {
        self.send(Part::End, 0);
    }
}

/// Writes the parts as they arrive; after the last one, returns the base for the next snapshot.
fn write(
    log: &Log,
    lsn: Lsn,
    mut comparison: Comparison,
    parts: &Receiver<Part>,
    held: &AtomicUsize,
) -> Result<Option<Base>, SnapshotError> {
    let storage = Arc::clone(log.storage());
    let mut writer = match comparison.on() {
        Some(base) => SnapshotWriter::create_on(storage, lsn, base)?,
        None => SnapshotWriter::create(storage, lsn)?,
    };
    while let Ok(part) = parts.recv() {
        let bytes = match part {
            Part::Head(head) => {
                writer.write_frame(record::HEAD_SECTION, &head)?;
                head.len()
            }
            Part::Block(block, items) => {
                let section = record::block_section(block);
                if comparison.is_kept(block, &items) {
                    writer.keep_section(section);
                } else {
                    writer.write_frame(section, &items)?;
                }
                items.len()
            }
            Part::End => {
                log.finish_snapshot(writer)?;
                return Ok(Some(comparison.taken(lsn)));
            }
        };
        held.fetch_sub(bytes, Ordering::Relaxed);
    }
    Ok(None)
}
