//! Writes records of a log in any format. Takes no lock: a live log is exported as far as it is written.

use std::io::Write;
use std::sync::Arc;

use super::ToolError;
use crate::error::Failure;
use crate::format::raw;
use crate::gap::Gap;
use crate::reader::{SegmentReader, Stop};
use crate::recovery::load_segments;
use crate::segment::SegmentTable;
use crate::segment_header::SegmentHeader;
use crate::storage::Storage;
use crate::{Format, Lsn, RecordBatch};

/// Checksums of exported records start from here, so that a reader needs no header.
const EXPORT_SALT: u32 = 0;
const WRITE_BYTES: usize = 256 << 10;

/// Writes the records `from` to `to`, as far as they exist, and returns their number.
///
/// Lines carry checksums with salt 0. Binary output begins with a segment header, so that it is a segment itself; records on
/// both sides of a gap are refused, because no segment has a gap in it.
/// `progress` is told the bytes read since it was last called.
pub fn export(
    storage: &Arc<dyn Storage>,
    from: Lsn,
    to: Lsn,
    format: Format,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, ToolError> {
    let names = storage.list().map_err(|error| Failure::new("listing the directory", error))?;
    let (table, _) = load_segments(&**storage, &names)?;
    let first = table.from().unwrap_or(Lsn::FIRST);
    if from > Lsn::FIRST && from < first {
        let last = last_lsn(&**storage, &table)?;
        return Err(ToolError::NoSuchRecord { wanted: from, first, last });
    }
    if format == Format::Binary
        && let Some(gap) = gap_between(&table, from.max(first), to)
    {
        return Err(ToolError::Gap { before: gap.first.previous(), behind: gap.last.next() });
    }
    let mut exporter = Exporter { format, buffer: Vec::new(), batch: RecordBatch::default(), count: 0 };
    let mut next = from.max(first);
    while next <= to {
        let Some((segment, last)) = table.find(next) else {
            break;
        };
        let failed = |error| Failure::new(format!("reading {}", storage.path(&segment.name)), error);
        let mut reader = SegmentReader::new(segment.clone());
        loop {
            let before = reader.offset();
            let limit = last.map_or(to, |last| last.min(to));
            let stop = reader.read(&mut exporter.batch, limit).map_err(failed)?;
            progress(reader.offset() - before);
            exporter.write(next, output)?;
            next = next.max(reader.expected());
            if stop != Stop::More {
                break;
            }
        }
        // The last segment ends where it ends; any other must reach its successor.
        let Some(last) = last else {
            break;
        };
        if next <= last.min(to) {
            let (offset, name) = (reader.offset(), &segment.name);
            return Err(
                crate::recovery::damage(&**storage, name, offset, next, "the records end there").into()
            );
        }
    }
    output.write_all(&exporter.buffer)?;
    output.flush()?;
    Ok(exporter.count)
}

/// The first gap that has records before it and behind it, from `from` to `to`.
fn gap_between(table: &SegmentTable, from: Lsn, to: Lsn) -> Option<Gap> {
    let headers = table.iter().map(|segment| segment.header);
    headers
        .filter(|header| header.follows >= from && header.first_lsn <= to)
        .map(|header| Gap { first: header.from(), last: header.first_lsn.previous() })
        .find(|gap| gap.first <= gap.last)
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

struct Exporter {
    format: Format,
    buffer: Vec<u8>,
    batch: RecordBatch,
    count: u64,
}

impl Exporter {
    fn write(&mut self, from: Lsn, output: &mut dyn Write) -> Result<(), ToolError> {
        let codec = self.format.codec();
        for record in self.batch.iter().filter(|record| record.lsn >= from) {
            if self.count == 0 && self.format == Format::Binary {
                let (first_lsn, created_us) = (record.lsn, record.time_us);
                let header = SegmentHeader {
                    first_lsn,
                    follows: first_lsn.previous(),
                    salt: EXPORT_SALT,
                    created_us,
                    recycled: false,
                };
                self.buffer.extend_from_slice(&codec.encode_header(&header));
            }
            let start = self.buffer.len();
            raw::begin(&mut self.buffer, record.lsn, record.time_us, record.kind);
            self.buffer.extend_from_slice(record.payload);
            codec.seal(&mut self.buffer, start, EXPORT_SALT);
            self.count += 1;
            if self.buffer.len() >= WRITE_BYTES {
                output.write_all(&self.buffer)?;
                self.buffer.clear();
            }
        }
        Ok(())
    }
}
