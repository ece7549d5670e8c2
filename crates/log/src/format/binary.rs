//! The binary format: raw frames after a header block of one page.
//!
//! ```text
//!  0          8          12       13         16           24        28              36          44
//!  +----------+----------+--------+----------+------------+---------+---------------+-----------+
//!  | magic    | version  | format | recycled | first lsn  | salt    | created_us    | follows   |
//!  +----------+----------+--------+----------+------------+---------+---------------+-----------+
//!  44            52           60             68      4092    4096
//!  +-------------+------------+--------------+-------+-------+
//!  | entry index | entry term | entry's last | zeros | crc   |
//!  +-------------+------------+--------------+-------+-------+
//! ```
//!
//! In version 1 the field `follows` is zero, and its value is one less than the first LSN. Only
//! version 3, of a group's member, has the entry.

use super::codec::{Codec, Step};
use super::raw::{self, Marker};
use crate::checksum;
use crate::entry::{EntryEnd, EntryId};
use crate::segment_header::{HEADER_BYTES, SegmentHeader, VERSION, VERSION_WITH_ENTRIES, VERSION_WITH_GAP};
use crate::{Lsn, Record};

const MAGIC: [u8; 8] = *b"TIDELOG\n";
const FORMAT_BINARY: u8 = 1;
const CHECKSUM_OFFSET: usize = HEADER_BYTES - 4;

pub(crate) struct Binary;

impl Codec for Binary {
    fn encode_header(&self, header: &SegmentHeader) -> Vec<u8> {
        let mut block = Vec::with_capacity(HEADER_BYTES);
        block.extend_from_slice(&MAGIC);
        block.extend_from_slice(&header.version().to_le_bytes());
        block.extend_from_slice(&[FORMAT_BINARY, u8::from(header.recycled), 0, 0]);
        block.extend_from_slice(&header.first_lsn.0.to_le_bytes());
        block.extend_from_slice(&header.salt.to_le_bytes());
        block.extend_from_slice(&header.created_us.to_le_bytes());
        if header.version() != VERSION {
            block.extend_from_slice(&header.follows.0.to_le_bytes());
        }
        if let Some(entry) = header.entry {
            for word in [entry.id.index, entry.id.term, entry.last.0] {
                block.extend_from_slice(&word.to_le_bytes());
            }
        }
        block.resize(CHECKSUM_OFFSET, 0);
        block.extend_from_slice(&crc32c::crc32c(&block).to_le_bytes());
        assert!(block.len() == HEADER_BYTES, "a header of {} bytes", block.len());
        block
    }

    fn decode_header(&self, bytes: &[u8]) -> Result<(SegmentHeader, usize), &'static str> {
        let block: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or("the file is shorter than its header")?;
        let (covered, checksum) = block.split_at(CHECKSUM_OFFSET);
        if covered.first_chunk() != Some(&MAGIC) {
            return Err("the file does not begin like a segment");
        }
        if checksum != crc32c::crc32c(covered).to_le_bytes() {
            return Err("the header's checksum does not match");
        }
        let first_lsn = Lsn(u64_at(covered, 16));
        let version = u32_at(covered, 8);
        let follows = match version {
            VERSION => first_lsn.previous(),
            VERSION_WITH_GAP | VERSION_WITH_ENTRIES => Lsn(u64_at(covered, 36)),
            _ => return Err("the segment was written by another version of the format"),
        };
        let entry = (version == VERSION_WITH_ENTRIES).then(|| EntryEnd {
            id: EntryId { index: u64_at(covered, 44), term: u64_at(covered, 52) },
            last: Lsn(u64_at(covered, 60)),
        });
        if follows >= first_lsn {
            return Err("the header names no record before its first");
        }
        if covered.get(12) != Some(&FORMAT_BINARY) {
            return Err("the header names another record format");
        }
        let header = SegmentHeader {
            first_lsn,
            follows,
            salt: u32_at(covered, 24),
            created_us: u64_at(covered, 28),
            recycled: covered.get(13) == Some(&1),
            entry,
        };
        Ok((header, HEADER_BYTES))
    }

    fn preallocates(&self) -> bool {
        true
    }

    #[inline]
    fn seal(&self, bytes: &mut Vec<u8>, start: usize, salt: u32) {
        raw::finish(bytes, start);
        raw::seal(&mut bytes[start..], salt);
    }

    fn reseal(&self, frame: &mut [u8], salt: u32) {
        raw::seal(frame, salt);
    }

    fn patch_marker(&self, bytes: &mut [u8], marker: &Marker, salt: u32) {
        marker.write(&mut bytes[raw::OVERHEAD_BYTES..]);
        raw::seal(bytes, salt);
    }

    fn check_sealed(&self, frames: &[u8], first: Lsn) -> Lsn {
        let mut rest = frames;
        let mut next = first;
        // Hot path: every written record is checked here, so only the necessary fields are read.
        while let Some(head) = rest.first_chunk::<{ raw::OVERHEAD_BYTES }>() {
            let (length, kind) = (raw::head_length(head), head[raw::OVERHEAD_BYTES - 1]);
            let is_next = raw::head_lsn(head) == next && kind != raw::MARKER && length >= raw::FIXED_BYTES;
            let Some(behind) = rest.get(raw::PREFIX_BYTES + length..).filter(|_| is_next) else {
                not_sealed(rest, next);
            };
            rest = behind;
            next = next.next();
        }
        if !rest.is_empty() {
            not_sealed(rest, next);
        }
        next
    }

    #[inline]
    fn decode(&self, bytes: &[u8], salt: u32, _raw: &mut Vec<u8>) -> Step {
        let Some(prefix) = bytes.first_chunk::<{ raw::PREFIX_BYTES }>() else {
            return Step::Incomplete { needed: raw::PREFIX_BYTES };
        };
        if *prefix == [0; raw::PREFIX_BYTES] {
            return Step::Unwritten;
        }
        let length = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]) as usize;
        if length < raw::FIXED_BYTES {
            return Step::Invalid("the frame's length is impossible");
        }
        let consumed = raw::PREFIX_BYTES + length;
        let Some((checksum, covered)) = raw::checked_part(bytes) else {
            return Step::Incomplete { needed: consumed };
        };
        if checksum::append(salt, covered) != checksum {
            return Step::Invalid("the frame's checksum does not match");
        }
        let Some((record, _)) = raw::split(bytes) else {
            return Step::Invalid("the frame's length is impossible");
        };
        if record.kind != raw::MARKER {
            return Step::Frame { consumed, lsn: record.lsn, marker: None };
        }
        match Marker::parse(record.payload) {
            Some(marker) => Step::Frame { consumed, lsn: record.lsn, marker: Some(marker) },
            None => Step::Invalid("the marker has an unknown shape"),
        }
    }

    fn salt_of(&self, bytes: &[u8]) -> Option<u32> {
        let (checksum, covered) = raw::checked_part(bytes)?;
        Some(checksum::before(checksum, covered))
    }

    fn find_proof(&self, window: &[u8], salt: u32, lsn: Lsn) -> Option<usize> {
        // Only frames of a marker's exact size and kind are tried, so hostile payloads cannot make
        // this slow.
        let lengths = [raw::MARKER_BYTES, raw::ENTRY_MARKER_BYTES]
            .map(|bytes| ((bytes - raw::PREFIX_BYTES) as u32).to_le_bytes());
        window.windows(raw::MARKER_BYTES).enumerate().position(|(at, candidate)| {
            lengths.iter().any(|length| candidate.get(4..8) == Some(length))
                && candidate.get(24) == Some(&raw::MARKER)
                && matches!(
                    self.decode(&window[at..], salt, &mut Vec::new()),
                    Step::Frame { marker: Some(marker), .. } if marker.durable >= lsn
                )
        })
    }
}

/// Stops the commit of `frames`, which do not start with the whole frame of record `next`.
#[cold]
fn not_sealed(frames: &[u8], next: Lsn) -> ! {
    let Some((Record { lsn, kind, .. }, _)) = raw::split(frames) else {
        panic!("the frame of record {next} is cut: {} bytes of it are written", frames.len());
    };
    panic!("the frame of record {next} is written as record {lsn} of kind {kind}");
}

/// Reads a number at `offset`, which must lie within `bytes`.
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(*bytes[offset..].first_chunk().expect("a block holds its fields"))
}

/// Reads a number at `offset`, which must lie within `bytes`.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(*bytes[offset..].first_chunk().expect("a block holds its fields"))
}
