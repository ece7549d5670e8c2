//! Reconstructs the damaged header of a segment.
//!
//! The file's name has the first LSN, and the first record the time. The salt is the start value
//! with which the first record's checksum is correct. That alone does not prove that record intact:
//! the frame after it must be valid with the same salt.

use std::io;

use super::ToolError;
use super::inspect::{Inspection, SegmentState};
use super::salvaged_header::{Headers, Salvaged};
use crate::error::Failure;
use crate::format::{Codec, Step, raw};
use crate::gap;
use crate::segment::segment_name;
use crate::segment_header::{HEADER_BYTES, SegmentHeader};
use crate::storage::{Storage, read_full};
use crate::{Format, Lsn};

/// Limit on the size of a header line: labels, and five numbers of at most 20 digits.
const HEADER_LINE_BYTES_MAX: usize = 256;
/// Bytes read at first, unless the first record is larger.
const WINDOW_BYTES: u64 = 1 << 20;

/// Reconstructs the headers of unreadable segments, where the rest of the log allows it.
pub(super) fn find_headers(storage: &dyn Storage, inspection: &Inspection) -> Result<Headers, ToolError> {
    let mut headers = Headers::new();
    for (index, segment) in inspection.segments.iter().enumerate() {
        let first = segment.first_lsn;
        let Some(follows) = follows(inspection, index).filter(|_| segment.format.is_none()) else { continue };
        let failed = |error| Failure::new(format!("reading {}", storage.path(&segment.name)), error);
        if let Some(salvaged) = find_header(storage, first, follows).map_err(failed)? {
            headers.insert(first, salvaged);
        }
    }
    Ok(headers)
}

/// Returns the record before a segment's first; `None` if there may be a gap whose start the
/// previous segment does not show.
fn follows(inspection: &Inspection, index: usize) -> Option<Lsn> {
    let first = inspection.segments.get(index)?.first_lsn;
    if !gap::may_be_before(first) {
        return Some(first.previous());
    }
    let Some(before) = index.checked_sub(1).and_then(|before| inspection.segments.get(before)) else {
        // Records are dropped only before the oldest snapshot.
        let snapshots = inspection.snapshots.iter().map(|snapshot| snapshot.lsn);
        return Some(snapshots.filter(|lsn| *lsn < first).max().unwrap_or(first.previous()));
    };
    (before.state == SegmentState::Whole).then_some(before.last_lsn)
}

/// Returns the header of the segment that starts with record `first`; `None` if that record or the
/// frame after it is damaged or missing.
fn find_header(storage: &dyn Storage, first: Lsn, follows: Lsn) -> io::Result<Option<Salvaged>> {
    let file = storage.open(&segment_name(first))?;
    let file_bytes = file.len()?;
    let mut window_bytes = WINDOW_BYTES.min(file_bytes);
    loop {
        let mut window = vec![0; window_bytes as usize];
        let filled = read_full(&*file, &mut window, 0)?;
        let salvaged = Format::ALL.into_iter().find_map(|format| {
            let header = header_before(format.codec(), &window[..filled], first, follows)?;
            Some(Salvaged { header, format })
        });
        if salvaged.is_some() || window_bytes == file_bytes {
            return Ok(salvaged);
        }
        window_bytes = window_bytes.saturating_mul(8).min(file_bytes);
    }
}

/// Returns the header that ends where the first record starts.
fn header_before(codec: &dyn Codec, bytes: &[u8], first: Lsn, follows: Lsn) -> Option<SegmentHeader> {
    let is_binary = codec.preallocates();
    let mut offsets = if is_binary { HEADER_BYTES..=HEADER_BYTES } else { 1..=HEADER_LINE_BYTES_MAX };
    offsets.find_map(|offset| {
        let frames = bytes.get(offset..)?;
        let salt = codec.salt_of(frames)?;
        let mut spelled = Vec::new();
        let Step::Frame { lsn, marker: None, consumed } = codec.decode(frames, salt, &mut spelled) else {
            return None;
        };
        let Step::Frame { .. } = codec.decode(&frames[consumed..], salt, &mut Vec::new()) else {
            return None;
        };
        let frame = if is_binary { frames } else { &spelled };
        let created_us = raw::split(frame).filter(|_| lsn == first)?.0.time_us;
        // Whether the file was recycled is unknown. If it was not, an unfinished write may pass for
        // old bytes; both are cut.
        let header =
            SegmentHeader { first_lsn: first, follows, salt, created_us, recycled: is_binary, entry: None };
        (codec.encode_header(&header).len() == offset).then_some(header)
    })
}
