//! Reads one segment front to back and verifies every frame. Recovery, replay and the tools use it.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::Arc;

use crate::append::TEXT_FACTOR;
use crate::checksum;
use crate::entry::{EntryEnd, EntryMark};
use crate::format::Step;
use crate::segment::Segment;
use crate::storage::read_full;
use crate::{Lsn, Options, RecordBatch};

/// Size of one read, unless a single record is larger.
const CHUNK_BYTES: usize = 1 << 20;
/// Minimum size of a read; limits the buffer for small files.
const CHUNK_BYTES_MIN: u64 = 4 << 10;
/// Largest accepted frame: a record of the greatest size in a text format, with as much again for
/// what frames it.
const FRAME_BYTES_MAX: u64 = (TEXT_FACTOR + 1) * Options::RECORD_BYTES_MAX as u64;

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The batch is full; there may be more.
    More,
    /// The next record is beyond the limit.
    Limit,
    /// Nothing was written from here on.
    Unwritten,
    /// There is no valid next frame here.
    Invalid(&'static str),
}

/// A position up to which a segment was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) offset: u64,
    /// CRC-32C of the bytes before it, from the segment's first frame on.
    pub(crate) checksum: u32,
}

/// Position in a segment. Invariant: everything before `offset` was valid and dense up to
/// `expected`.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    segment: Arc<Segment>,
    offset: u64,
    expected: Lsn,
    durable: Lsn,
    /// CRC-32C of everything before `offset`, from the first frame on.
    checksum: u32,
    /// The newest entry that was opened, in a log that has entries.
    entry: Option<EntryEnd>,
    /// The greatest LSN that an entry calls committed.
    committed: Lsn,
    /// Markers whose records are not proven durable yet, oldest first.
    markers: VecDeque<(Lsn, Verified)>,
    proven: Verified,
    chunk: Vec<u8>,
}

impl SegmentReader {
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        Self {
            offset: segment.data_offset,
            expected: segment.header.first_lsn,
            durable: Lsn::ZERO,
            checksum: 0,
            entry: segment.header.entry,
            committed: Lsn::ZERO,
            markers: VecDeque::new(),
            proven: Verified { offset: segment.data_offset, checksum: 0 },
            chunk: Vec::new(),
            segment,
        }
    }

    /// The newest record read, or the one before the segment while there is none.
    pub(crate) fn last(&self) -> Lsn {
        let header = &self.segment.header;
        if self.expected == header.first_lsn { header.follows } else { self.expected.previous() }
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Offset of the next frame.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// LSN of the next record.
    pub(crate) fn expected(&self) -> Lsn {
        self.expected
    }

    /// The greatest LSN that a marker calls durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.durable
    }

    /// The entry of the next record or, at its end, the one before it; `None` in a log without
    /// entries.
    pub(crate) fn entry(&self) -> Option<EntryEnd> {
        self.entry
    }

    /// The greatest LSN that an entry calls committed.
    pub(crate) fn committed(&self) -> Lsn {
        self.committed
    }

    /// The position of the next frame.
    pub(crate) fn verified(&self) -> Verified {
        Verified { offset: self.offset, checksum: self.checksum }
    }

    /// Everything before this position was durable according to a marker.
    pub(crate) fn proven(&self) -> Verified {
        self.proven
    }

    /// Replaces the content of `batch` with the next records, up to `limit`.
    pub(crate) fn read(&mut self, batch: &mut RecordBatch, limit: Lsn) -> io::Result<Stop> {
        batch.clear();
        if self.expected > limit {
            return Ok(Stop::Limit);
        }
        // Binary frames stay in the batch's own buffer as read; other formats are decoded into it.
        let in_place = self.segment.codec().preallocates();
        let mut chunk = mem::take(if in_place { &mut batch.bytes } else { &mut self.chunk });
        let mut raw = if in_place { Vec::new() } else { mem::take(&mut batch.bytes) };
        raw.clear();
        let stop = self.read_chunk(&mut chunk, &mut raw, batch, limit);
        if in_place {
            batch.bytes = chunk;
        } else {
            batch.end = raw.len();
            batch.bytes = raw;
            self.chunk = chunk;
        }
        stop
    }

    fn read_chunk(
        &mut self,
        chunk: &mut Vec<u8>,
        raw: &mut Vec<u8>,
        batch: &mut RecordBatch,
        limit: Lsn,
    ) -> io::Result<Stop> {
        let remaining = self.segment.file.len()?.saturating_sub(self.offset);
        let mut wanted = CHUNK_BYTES.min(remaining.max(CHUNK_BYTES_MIN) as usize);
        loop {
            if chunk.len() < wanted {
                chunk.resize(wanted, 0);
            }
            let filled = read_full(&*self.segment.file, &mut chunk[..wanted], self.offset)?;
            let (used, step) = self.accept(&chunk[..filled], raw, batch, limit);
            batch.end = used;
            self.offset += used as u64;
            let Step::Incomplete { needed } = step else {
                return Ok(match step {
                    Step::Invalid(why) => Stop::Invalid(why),
                    Step::Unwritten => Stop::Unwritten,
                    Step::Frame { .. } | Step::Incomplete { .. } => Stop::Limit,
                });
            };
            if filled < wanted {
                let at_end = used == filled;
                return Ok(if at_end {
                    Stop::Unwritten
                } else {
                    Stop::Invalid("the file ends within a frame")
                });
            }
            if used > 0 {
                return Ok(Stop::More);
            }
            if needed as u64 > FRAME_BYTES_MAX || self.offset + needed as u64 > self.segment.file.len()? {
                return Ok(Stop::Invalid("the frame's length reaches past the end of the file"));
            }
            wanted = needed.max(wanted.saturating_mul(2).min(FRAME_BYTES_MAX as usize));
        }
    }

    /// Accepts valid frames from the front of `bytes`. Returns the accepted bytes and why it
    /// stopped; `Step::Frame` means that `limit` was reached.
    fn accept(
        &mut self,
        bytes: &[u8],
        raw: &mut Vec<u8>,
        batch: &mut RecordBatch,
        limit: Lsn,
    ) -> (usize, Step) {
        let codec = self.segment.codec();
        let salt = self.segment.header.salt;
        let mut used = 0;
        loop {
            let step = codec.decode(&bytes[used..], salt, raw);
            let Step::Frame { consumed, lsn, marker } = step else {
                return (used, step);
            };
            if let Some(marker) = marker {
                if lsn != self.expected.previous() || marker.durable > lsn {
                    return (used, Step::Invalid("the marker does not fit the records before it"));
                }
                let at = Verified { offset: self.offset + used as u64, checksum: self.checksum };
                if let Some(entry) = marker.entry
                    && !self.note_entry(entry)
                {
                    return (used, Step::Invalid("the entry does not follow the one before it"));
                }
                self.note_marker(lsn, marker.durable, at);
            } else {
                if lsn != self.expected {
                    return (used, Step::Invalid("the record has another LSN"));
                }
                batch.note(lsn);
                self.expected = lsn.next();
            }
            self.checksum = checksum::append(self.checksum, &bytes[used..used + consumed]);
            used += consumed;
            if self.expected > limit {
                return (used, step);
            }
        }
    }

    /// Notes an entry that is opened. Returns whether it follows the one before it.
    fn note_entry(&mut self, opened: EntryMark) -> bool {
        let before = self.entry.filter(|before| self.last() == before.last && opened.follows(*before));
        let follows = before.is_some() && opened.last >= self.expected;
        if follows {
            self.entry = Some(opened.end());
            self.committed = self.committed.max(opened.committed);
        }
        follows
    }

    fn note_marker(&mut self, lsn: Lsn, durable: Lsn, marker: Verified) {
        self.durable = self.durable.max(durable);
        self.markers.push_back((lsn, marker));
        while let Some((_, marker)) = self.markers.pop_front_if(|(lsn, _)| *lsn <= durable) {
            self.proven = marker;
        }
    }
}
