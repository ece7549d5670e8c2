//! Exports records of a log in any format. Takes no lock: a live log is exported up to its written
//! watermark.

use std::io::Write;
use std::sync::Arc;

use super::ToolError;
use super::records::Records;
use crate::format::raw;
use crate::gap::Gap;
use crate::segment::SegmentTable;
use crate::segment_header::SegmentHeader;
use crate::storage::Storage;
use crate::{Format, Lsn, RecordBatch};

/// Start value of the checksums of exported records: a reader needs no header.
const EXPORT_SALT: u32 = 0;
const WRITE_BYTES: usize = 256 << 10;

/// Writes the existing records from `from` to `to` and returns their number.
///
/// Lines carry checksums with salt 0. Binary output starts with a segment header, so it is a valid
/// segment; because a segment contains no gap, a range with a gap inside is refused. `progress`
/// gets the bytes read since its last call.
///
/// # Errors
/// If the log ends in damage, or before what was durable, the error comes after everything readable
/// has been written.
pub fn export(
    storage: &Arc<dyn Storage>,
    from: Lsn,
    to: Lsn,
    format: Format,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, ToolError> {
    let mut records = Records::open(storage, from, to)?;
    if format == Format::Binary
        && let Some(gap) = gap_between(records.table(), from.max(records.floor()), to)
    {
        return Err(ToolError::Gap { before: gap.first.previous(), behind: gap.last.next() });
    }
    let mut exporter = Exporter { format, buffer: Vec::new(), count: 0 };
    while let Some(batch) = records.next_batch(progress)? {
        exporter.write(batch, output)?;
    }
    output.write_all(&exporter.buffer)?;
    output.flush()?;
    records.check_end()?;
    Ok(exporter.count)
}

/// Returns the first gap between `from` and `to` that has records on both sides.
fn gap_between(table: &SegmentTable, from: Lsn, to: Lsn) -> Option<Gap> {
    let headers = table.iter().map(|segment| segment.header);
    headers
        .filter(|header| header.follows >= from && header.first_lsn <= to)
        .map(|header| Gap { first: header.from(), last: header.first_lsn.previous() })
        .find(|gap| gap.first <= gap.last)
}

struct Exporter {
    format: Format,
    buffer: Vec<u8>,
    count: u64,
}

impl Exporter {
    fn write(&mut self, batch: &RecordBatch, output: &mut dyn Write) -> Result<(), ToolError> {
        let codec = self.format.codec();
        for record in batch {
            if self.count == 0 && self.format == Format::Binary {
                let (first_lsn, created_us) = (record.lsn, record.time_us);
                let header = SegmentHeader {
                    first_lsn,
                    follows: first_lsn.previous(),
                    salt: EXPORT_SALT,
                    created_us,
                    recycled: false,
                    entry: None,
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
