//! The records of a log that somebody else may have open: in their order, as far as they are written.

use std::sync::Arc;

use super::ToolError;
use crate::end_file::{self, LogEnd};
use crate::error::{Failure, OpenError};
use crate::reader::{SegmentReader, Stop};
use crate::recovery::{SegmentEnd, damage, describe, inspect_remainder, load_segments};
use crate::segment::SegmentTable;
use crate::snapshot::Name;
use crate::storage::Storage;
use crate::{Lsn, RecordBatch};

/// Reads records from one LSN to another, as far as they exist. Takes no lock: of a log that is being written, what is there is read,
/// and an unfinished write is the end.
///
/// All segments are opened at the beginning. One that is taken away for another use meanwhile is damage to the eye of this reader.
#[derive(Debug)]
pub struct Records {
    storage: Arc<dyn Storage>,
    table: SegmentTable,
    reader: Option<SegmentReader>,
    /// The last LSN in the reader's segment, once another segment follows it.
    segment_last: Option<Lsn>,
    batch: RecordBatch,
    next: Lsn,
    to: Lsn,
    stop: Option<Stop>,
    /// How the log had been left when this reader was made.
    left: Option<LogEnd>,
    /// The last record that a snapshot covers.
    snapshot: Lsn,
}

impl Records {
    /// Reads `from` to `to`.
    ///
    /// # Errors
    /// The directory cannot be read, or the log begins behind `from`, which is not its very first record.
    pub fn open(storage: &Arc<dyn Storage>, from: Lsn, to: Lsn) -> Result<Self, ToolError> {
        let list = || storage.list().map_err(|error| Failure::new("listing the directory", error));
        // First, because a server may be at work: whatever it does from now on is behind the end that this says. If it cannot be
        // read it proves nothing, and the records can be read all the same.
        let left = end_file::find(&**storage, &list()?).ok().and_then(|(_, left)| left);
        let names = list()?;
        let snapshot = Name::newest_lsn(&names);
        let (table, _) = load_segments(&**storage, &names)?;
        let first = table.from().unwrap_or(Lsn::FIRST);
        if from > Lsn::FIRST && from < first {
            let last = last_lsn(&**storage, &table)?;
            return Err(ToolError::NoSuchRecord { wanted: from, first, last });
        }
        Ok(Self {
            storage: Arc::clone(storage),
            table,
            reader: None,
            segment_last: None,
            batch: RecordBatch::default(),
            next: from.max(first),
            to,
            stop: None,
            left,
            snapshot,
        })
    }

    /// Where the log begins: nothing from here on is missing that is not lost.
    pub fn floor(&self) -> Lsn {
        self.table.from().unwrap_or(Lsn::FIRST)
    }

    pub(super) fn table(&self) -> &SegmentTable {
        &self.table
    }

    /// The next records, or `None` behind the last. `progress` is told the bytes that were read.
    ///
    /// # Errors
    /// Reading fails, or a segment ends before the one that follows it begins.
    pub fn next_batch(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Option<&RecordBatch>, ToolError> {
        while self.next <= self.to && self.enter_segment() {
            let Some(reader) = &mut self.reader else { break };
            let before = reader.offset();
            let limit = self.segment_last.map_or(self.to, |last| last.min(self.to));
            let stop = reader.read(&mut self.batch, limit).map_err(|error| {
                Failure::new(format!("reading {}", self.storage.path(&reader.segment().name)), error)
            })?;
            progress(reader.offset() - before);
            let behind = reader.expected();
            self.batch.skip_to(self.next);
            self.next = self.next.max(behind);
            if stop != Stop::More {
                self.leave_segment(stop)?;
            }
            if !self.batch.is_empty() {
                return Ok(Some(&self.batch));
            }
        }
        Ok(None)
    }

    /// Once all has been read: that the last segment does not end in damage, nor before the record behind which the log was closed. An
    /// unfinished write at the end is no damage, and neither is what has been written since.
    ///
    /// # Errors
    /// The damage, or what is missing.
    pub fn check_end(&mut self) -> Result<(), ToolError> {
        self.check_damage()?;
        let last = match (&self.reader, self.stop) {
            (Some(reader), Some(Stop::Unwritten | Stop::Invalid(_))) => reader.last(),
            (None, _) if self.table.from().is_none() => self.snapshot,
            _ => return Ok(()),
        };
        let missing = self.left.and_then(|left| left.missing(&*self.storage, last));
        missing.map_or(Ok(()), |missing| Err(OpenError::from(missing).into()))
    }

    fn check_damage(&mut self) -> Result<(), ToolError> {
        let (Some(reader), Some(stop)) = (&mut self.reader, self.stop) else { return Ok(()) };
        if matches!(stop, Stop::More | Stop::Limit) {
            return Ok(());
        }
        let name = reader.segment().name.clone();
        let failed = |error| Failure::new(format!("reading {}", self.storage.path(&name)), error);
        let remainder = inspect_remainder(&SegmentEnd::of(reader, stop)).map_err(failed)?;
        if !remainder.proof {
            return Ok(());
        }
        // What proves that records are missing may have been written together with them, just now.
        let reached = reader.offset();
        let again = reader.read(&mut self.batch, Lsn(u64::MAX)).map_err(failed)?;
        self.batch.clear();
        if reader.offset() > reached {
            return Ok(());
        }
        Err(damage(&*self.storage, &name, reached, reader.expected(), describe(again)).into())
    }

    /// Whether there is a segment to read from.
    fn enter_segment(&mut self) -> bool {
        if self.reader.is_none() {
            let Some((segment, last)) = self.table.find(self.next) else { return false };
            self.segment_last = last;
            self.reader = Some(SegmentReader::new(segment));
        }
        self.stop.is_none()
    }

    /// The last segment ends where it ends; any other must reach its successor.
    fn leave_segment(&mut self, stop: Stop) -> Result<(), ToolError> {
        let Some(last) = self.segment_last else {
            self.stop = Some(stop);
            return Ok(());
        };
        let Some(reader) = self.reader.take() else { return Ok(()) };
        if self.next <= last.min(self.to) {
            let (offset, name) = (reader.offset(), &reader.segment().name);
            return Err(damage(&*self.storage, name, offset, self.next, "the records end there").into());
        }
        Ok(())
    }
}

/// The newest readable record.
fn last_lsn(storage: &dyn Storage, table: &SegmentTable) -> Result<Lsn, ToolError> {
    let Some(segment) = table.iter().last() else { return Ok(Lsn::ZERO) };
    let failed = |error| Failure::new(format!("reading {}", storage.path(&segment.name)), error);
    let mut reader = SegmentReader::new(segment.clone());
    let mut batch = RecordBatch::default();
    while reader.read(&mut batch, Lsn(u64::MAX)).map_err(failed)? == Stop::More {}
    Ok(reader.last())
}
