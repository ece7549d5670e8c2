//! The records of a log that a server may have open: in order, up to the written watermark.

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

/// Reads the existing records from one LSN to another. Takes no lock: if the log is being written,
/// an unfinished write is the end.
///
/// Opens all segments at the start. If a segment is recycled meanwhile, this reader sees damage.
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
    /// How the log had been left when this reader was created.
    left: Option<LogEnd>,
    /// The last record that a snapshot covers.
    snapshot: Lsn,
}

impl Records {
    /// Reads `from` to `to`.
    ///
    /// # Errors
    /// The directory cannot be read, or the log starts after `from` and `from` is not
    /// [`Lsn::FIRST`].
    pub fn open(storage: &Arc<dyn Storage>, from: Lsn, to: Lsn) -> Result<Self, ToolError> {
        let list = || storage.list().map_err(|error| Failure::new("listing the directory", error));
        // First, because a server may be running: what it does after this only moves the end
        // further. If `END` cannot be read it proves nothing, and the records are readable without
        // it.
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

    /// Returns the start of the log: from here on, only LSNs in gaps have no record.
    pub fn floor(&self) -> Lsn {
        self.table.from().unwrap_or(Lsn::FIRST)
    }

    pub(super) fn table(&self) -> &SegmentTable {
        &self.table
    }

    /// Returns the next records, or `None` after the last. `progress` gets the number of bytes
    /// read.
    ///
    /// # Errors
    /// Reading fails, or a segment ends before its successor starts.
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

    /// Checks, once everything has been read, that the last segment does not end in damage or
    /// before the records known to be durable. An unfinished write at the end, and records written
    /// meanwhile, are no damage.
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
        // The proof may just have been written, together with the records that seem to be missing.
        let reached = reader.offset();
        let again = reader.read(&mut self.batch, Lsn(u64::MAX)).map_err(failed)?;
        self.batch.clear();
        if reader.offset() > reached {
            return Ok(());
        }
        Err(damage(&*self.storage, &name, reached, reader.expected(), describe(again)).into())
    }

    /// Returns whether there is a segment to read from.
    fn enter_segment(&mut self) -> bool {
        if self.reader.is_none() {
            let Some((segment, last)) = self.table.find(self.next) else { return false };
            self.segment_last = last;
            self.reader = Some(SegmentReader::new(segment));
        }
        self.stop.is_none()
    }

    /// Leaves a segment. Any but the last must reach its successor.
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

/// Returns the newest readable record.
fn last_lsn(storage: &dyn Storage, table: &SegmentTable) -> Result<Lsn, ToolError> {
    let Some(segment) = table.iter().last() else { return Ok(Lsn::ZERO) };
    let failed = |error| Failure::new(format!("reading {}", storage.path(&segment.name)), error);
    let mut reader = SegmentReader::new(segment.clone());
    let mut batch = RecordBatch::default();
    while reader.read(&mut batch, Lsn(u64::MAX)).map_err(failed)? == Stop::More {}
    Ok(reader.last())
}
