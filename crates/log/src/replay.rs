//! Reading the log back: [`Replay`] reads to the end as fast as possible, [`Tail`] follows the log.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tidemark_fault::{Fault, is_planted};

use crate::error::{Failure, ReplayError};
use crate::reader::{SegmentReader, Stop};
use crate::recovery::{damage, describe};
use crate::shared::Shared;
use crate::{Lsn, RecordBatch};

/// Number of batches that the reading thread may be ahead.
const AHEAD: usize = 3;

/// Reads from an LSN to the written watermark at the time of the start, verifying on a second
/// thread.
#[derive(Debug)]
pub struct Replay {
    filled: Option<Receiver<Result<RecordBatch, ReplayError>>>,
    /// LSN of the newest record read, and of the last record to read.
    last: Lsn,
    limit: Lsn,
    empty: SyncSender<RecordBatch>,
    current: Option<RecordBatch>,
    worker: Option<JoinHandle<()>>,
}

impl Replay {
    pub(crate) fn start(shared: Arc<Shared>, from: Lsn) -> Result<Self, ReplayError> {
        let limit = shared.replayable();
        let mut cursor = Cursor::new(shared, from)?;
        let (filled_in, filled) = sync_channel(AHEAD);
        let (empty, empty_out) = sync_channel::<RecordBatch>(AHEAD + 2);
        let work = move || {
            loop {
                let mut batch = empty_out.try_recv().unwrap_or_default();
                let message = match cursor.read(&mut batch, limit) {
                    Ok(true) if is_planted(Fault::RecoveredEnd) && batch.last_lsn() == limit => return,
                    Ok(true) => Ok(batch),
                    Ok(false) => return,
                    Err(error) => Err(error),
                };
                let last = message.is_err();
                // A failed send means that the `Replay` was dropped.
                if filled_in.send(message).is_err() || last {
                    return;
                }
            }
        };
        let worker = std::thread::Builder::new()
            .name("tidemark-log-read".into())
            .spawn(work)
            .map_err(|error| ReplayError::Storage(Failure::new("starting a reading thread", error)))?;
        let last = from.previous();
        Ok(Self { filled: Some(filled), last, limit, empty, current: None, worker: Some(worker) })
    }

    /// Returns the next verified records, or `None` at the end.
    ///
    /// # Panics
    /// If reading ended before the last record without an error.
    pub fn next_batch(&mut self) -> Result<Option<&RecordBatch>, ReplayError> {
        if let Some(batch) = self.current.take() {
            // If the channel is full, this buffer is freed instead of reused.
            let _ = self.empty.try_send(batch);
        }
        match self.filled.as_ref().map(Receiver::recv) {
            Some(Ok(batch)) => {
                // After an error no further records are expected.
                let batch = batch.inspect_err(|_| self.limit = self.last)?;
                self.last = batch.last_lsn();
                Ok(Some(self.current.insert(batch)))
            }
            Some(Err(_)) | None => {
                self.end();
                Ok(None)
            }
        }
    }

    /// Ends the reading thread and checks that no record is missing.
    ///
    /// # Panics
    /// If the thread has panicked, or has ended before the last record.
    fn end(&mut self) {
        self.filled = None;
        if let Some(worker) = self.worker.take() {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            let (last, limit) = (self.last, self.limit);
            assert!(
                last >= limit,
                "replay ended behind record {last}, and the log has records up to {limit}"
            );
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.filled = None;
        if let Some(worker) = self.worker.take() {
            // The caller has dropped the replay, so the result of the thread does not matter.
            let _ = worker.join();
        }
    }
}

/// Follows a live log. It never blocks: the log's listener reports when there is more.
#[derive(Debug)]
pub struct Tail {
    shared: Arc<Shared>,
    cursor: Cursor,
    batch: RecordBatch,
}

impl Tail {
    pub(crate) fn start(shared: Arc<Shared>, from: Lsn) -> Result<Self, ReplayError> {
        let cursor = Cursor::new(shared.clone(), from)?;
        Ok(Self { shared, cursor, batch: RecordBatch::default() })
    }

    /// Returns the next written records, or `None` if there are none yet. Of a group's log, returns
    /// only what is committed.
    pub fn next_batch(&mut self) -> Result<Option<&RecordBatch>, ReplayError> {
        let limit = self.shared.replayable();
        Ok(self.cursor.read(&mut self.batch, limit)?.then_some(&self.batch))
    }

    /// Returns the next committed records, or `None` if there are none yet.
    pub fn next_committed_batch(&mut self) -> Result<Option<&RecordBatch>, ReplayError> {
        let limit = Lsn(self.shared.committed.load(Ordering::Acquire));
        Ok(self.cursor.read(&mut self.batch, limit)?.then_some(&self.batch))
    }

    /// Returns the LSN of the next record to be returned.
    pub fn position(&self) -> Lsn {
        self.cursor.next
    }
}

/// Position in the log, across its segments.
#[derive(Debug)]
struct Cursor {
    shared: Arc<Shared>,
    reader: Option<SegmentReader>,
    /// The last LSN in the reader's segment, once another segment follows it.
    segment_last: Option<Lsn>,
    /// Number of cuts of the log that the reader knows.
    cuts: u64,
    next: Lsn,
}

impl Cursor {
    fn new(shared: Arc<Shared>, from: Lsn) -> Result<Self, ReplayError> {
        let from = from.max(Lsn::FIRST);
        // The LSN of the next record, which can be more than one after the last: a start inside the
        // gap between them continues after it.
        let (end, next) = {
            let state = shared.lock();
            (Lsn(shared.appended.load(Ordering::Acquire)), state.next)
        };
        if from > next {
            return Err(ReplayError::Beyond { wanted: from, end });
        }
        let cuts = shared.cuts.load(Ordering::Acquire);
        let mut cursor = Self { shared, reader: None, segment_last: None, cuts, next: from };
        let floor = cursor.shared.floor();
        if from < floor {
            return Err(ReplayError::Released { wanted: from, floor });
        }
        // Holding the segment prevents retention from reusing its file.
        cursor.enter_segment();
        Ok(cursor)
    }

    /// Opens the segment of the next record; returns whether there is one.
    fn enter_segment(&mut self) -> bool {
        let Some((segment, last)) = self.shared.table().find(self.next) else {
            return false;
        };
        self.segment_last = last;
        self.reader = Some(SegmentReader::new(segment));
        true
    }

    /// Fills `batch` with the next records up to `limit`; returns false if there are none.
    fn read(&mut self, batch: &mut RecordBatch, limit: Lsn) -> Result<bool, ReplayError> {
        // What a cut took back is still in its segment, and another segment has the next record. The
        // limit was read before: if it lies behind the cut, the cut is known here.
        let cuts = self.shared.cuts.load(Ordering::Acquire);
        if self.cuts != cuts {
            self.cuts = cuts;
            self.reader = None;
        }
        while self.next <= limit {
            if self.reader.is_none() && !self.enter_segment() {
                let floor = self.shared.floor();
                return Err(ReplayError::Released { wanted: self.next, floor });
            }
            let Some(reader) = &mut self.reader else {
                continue;
            };
            let segment_limit = self.segment_last.map_or(limit, |last| last.min(limit));
            let stop = reader.read(batch, segment_limit).map_err(|error| {
                let path = self.shared.storage.path(&reader.segment().name);
                ReplayError::Storage(Failure::new(format!("reading {path}"), error))
            })?;
            batch.skip_to(self.next);
            if !batch.is_empty() {
                self.next = batch.last_lsn().next();
                return Ok(true);
            }
            if stop != Stop::More {
                self.leave_segment(stop)?;
            }
        }
        Ok(false)
    }

    /// Leaves a segment that yields no more records: a later one must hold the next record.
    fn leave_segment(&mut self, stop: Stop) -> Result<(), ReplayError> {
        let Some(reader) = self.reader.take() else {
            return Ok(());
        };
        let found = self.shared.table().find(self.next);
        match found {
            Some((segment, _)) if segment.header.first_lsn == reader.segment().header.first_lsn => {
                let name = &segment.name;
                let storage = &*self.shared.storage;
                Err(damage(storage, name, reader.offset(), reader.expected(), describe(stop)).into())
            }
            _ => Ok(()),
        }
    }
}
