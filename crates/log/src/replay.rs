//! Reading the log back: [`Replay`] to the end as fast as possible, [`Tail`] as the log grows.

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

/// Batches that the reading thread may be ahead.
const AHEAD: usize = 3;

/// Reads from an LSN to the end that the log had when the replay began, verifying on a second thread.
#[derive(Debug)]
pub struct Replay {
    filled: Option<Receiver<Result<RecordBatch, ReplayError>>>,
    /// The newest record that was read, and the one that is to be read last.
    last: Lsn,
    limit: Lsn,
    empty: SyncSender<RecordBatch>,
    current: Option<RecordBatch>,
    worker: Option<JoinHandle<()>>,
}

impl Replay {
    pub(crate) fn start(shared: Arc<Shared>, from: Lsn) -> Result<Self, ReplayError> {
        let limit = Lsn(shared.written.load(Ordering::Acquire));
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
                // A failed send means that the reader lost interest.
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

    /// The next verified records, or `None` at the end.
    ///
    /// # Panics
    /// If reading ended before the last record without an error.
    pub fn next_batch(&mut self) -> Result<Option<&RecordBatch>, ReplayError> {
        if let Some(batch) = self.current.take() {
            // A full channel only means that this buffer is freed instead of used again.
            let _ = self.empty.try_send(batch);
        }
        match self.filled.as_ref().map(Receiver::recv) {
            Some(Ok(batch)) => {
                // Behind an error nothing more is promised.
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

    /// Ends the reading thread, and checks that nothing is missing.
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
            // The caller has lost interest in what the thread reads, and so in how it ends.
            let _ = worker.join();
        }
    }
}

/// Follows a live log. It never blocks: the log's listener says when there is more.
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

    /// The next records that are written, or `None` when there are none yet.
    pub fn next_batch(&mut self) -> Result<Option<&RecordBatch>, ReplayError> {
        let limit = Lsn(self.shared.written.load(Ordering::Acquire));
        Ok(self.cursor.read(&mut self.batch, limit)?.then_some(&self.batch))
    }

    /// The next records that are durable, or `None` when there are none yet.
    pub fn next_durable_batch(&mut self) -> Result<Option<&RecordBatch>, ReplayError> {
        let limit = Lsn(self.shared.durable.load(Ordering::Acquire));
        Ok(self.cursor.read(&mut self.batch, limit)?.then_some(&self.batch))
    }

    /// LSN of the next record that will be yielded.
    pub fn position(&self) -> Lsn {
        self.cursor.next
    }
}

/// A place in the log, across its segments.
#[derive(Debug)]
struct Cursor {
    shared: Arc<Shared>,
    reader: Option<SegmentReader>,
    /// The last LSN in the reader's segment, once another segment follows it.
    segment_last: Option<Lsn>,
    next: Lsn,
}

impl Cursor {
    fn new(shared: Arc<Shared>, from: Lsn) -> Result<Self, ReplayError> {
        let from = from.max(Lsn::FIRST);
        // The LSN that the next record gets, and not merely one more than the last: a position in the gap that lies between
        // goes on behind it.
        let (end, next) = {
            let state = shared.lock();
            (Lsn(shared.appended.load(Ordering::Acquire)), state.next)
        };
        if from > next {
            return Err(ReplayError::Beyond { wanted: from, end });
        }
        let mut cursor = Self { shared, reader: None, segment_last: None, next: from };
        let floor = cursor.shared.floor();
        if from < floor {
            return Err(ReplayError::Released { wanted: from, floor });
        }
        // Holding the segment from now on keeps retention from taking it away.
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

    /// Fills `batch` with the next records up to `limit`; false when there are none.
    fn read(&mut self, batch: &mut RecordBatch, limit: Lsn) -> Result<bool, ReplayError> {
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

    /// The segment yields no more: a later one must hold the next record.
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
