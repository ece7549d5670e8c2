//! Reading entries back, for members that lack them.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::Lsn;
use crate::entry::{EntryEnd, EntryId, EntryMark};
use crate::error::{Damage, Failure};
use crate::format::{Marker, Step};
use crate::recovery::damage;
use crate::segment::Segment;
use crate::shared::Shared;
use crate::storage::read_full;

use super::{EntryRecords, Member};

/// Size of one read, unless a single record is larger.
const CHUNK_BYTES: usize = 256 << 10;

/// Why entries cannot be read or cut.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The log no longer has the entry, or never had it.
    #[error("entry {wanted} is no longer kept; the log's entries begin at {first}")]
    Released {
        /// The index of the wanted entry.
        wanted: u64,
        /// The index of the oldest entry.
        first: u64,
    },
    /// The group takes back what it had committed: most members have lost it.
    #[error(
        "the group takes back what is behind record {end}, and record {committed} is committed here: most members \
         have lost it, or accepted a loss; let a new member take this one's place with an empty directory"
    )]
    Committed {
        /// The last record that would be left.
        end: Lsn,
        /// The last record that is committed.
        committed: Lsn,
    },
    /// A record is unreadable.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The storage failed.
    #[error("cannot read the log: {0}")]
    Storage(#[from] Failure),
}

/// Position before an entry.
#[derive(Debug)]
pub(super) struct EntryReader {
    pub(super) segment: Arc<Segment>,
    /// Offset in `segment` of the next frame.
    pub(super) offset: u64,
    /// The last record of the segment, once another one follows it.
    segment_last: Option<Lsn>,
    /// The entry before this position.
    pub(super) before: EntryEnd,
    /// Number of cuts of the log that this position knows.
    cuts: u64,
    /// Bytes of the segment from `offset - used` on.
    bytes: Vec<u8>,
    used: usize,
}

impl Member {
    /// Returns the index of the oldest entry that is kept; one more than the newest if there is
    /// none.
    pub fn first_entry(&self) -> u64 {
        let oldest = self.shared.table().iter().find_map(|segment| segment.header.entry);
        oldest.unwrap_or_else(|| self.last_entry()).id.index + 1
    }

    /// Returns the entry `index`; `None` if it is not written yet. O(bytes of a segment) for an
    /// entry that is neither recent nor read in order.
    ///
    /// # Errors
    /// It is no longer kept, or cannot be read.
    pub fn entry(&self, index: u64) -> Result<Option<EntryEnd>, EntryError> {
        let end = |(id, records): &(EntryId, EntryRecords)| EntryEnd { id: *id, last: records.last_lsn() };
        Ok(self.entries(index, 0)?.first().map(end))
    }

    /// Returns the written entries from `index` on, up to about `bytes`, and at least one if it is
    /// written.
    ///
    /// # Errors
    /// The first is no longer kept, or an entry cannot be read.
    pub fn entries(&self, index: u64, bytes: usize) -> Result<Vec<(EntryId, EntryRecords)>, EntryError> {
        if index > self.last_entry().id.index {
            return Ok(Vec::new());
        }
        loop {
            let recent = self.recent().from(index, bytes);
            if !recent.is_empty() {
                return Ok(recent);
            }
            let cuts = self.shared.cuts.load(Ordering::Acquire);
            let read = self.read_entries(index, bytes);
            // What was read while the log was cut may be of both logs.
            if self.shared.cuts.load(Ordering::Acquire) == cuts {
                return read;
            }
        }
    }

    /// Returns the newest entry whose last record is at or before `lsn`; `None` if it is no longer kept.
    /// O(bytes of a segment).
    ///
    /// # Errors
    /// An entry cannot be read.
    pub fn entry_before(&self, lsn: Lsn) -> Result<Option<EntryEnd>, EntryError> {
        let Some(mut found) = self.shared.table().entry_before(lsn) else { return Ok(None) };
        loop {
            let entries = self.entries(found.id.index + 1, CHUNK_BYTES)?;
            if entries.is_empty() {
                return Ok(Some(found));
            }
            for (id, records) in entries {
                if records.last_lsn() > lsn {
                    return Ok(Some(found));
                }
                found = EntryEnd { id, last: records.last_lsn() };
            }
        }
    }

    /// Like [`entries`](Self::entries), but only from memory: never blocks on the disk. Empty if the
    /// entry `index` is not among the newest.
    pub fn recent_entries(&self, index: u64, bytes: usize) -> Vec<(EntryId, EntryRecords)> {
        self.recent().from(index, bytes)
    }

    fn read_entries(&self, index: u64, bytes: usize) -> Result<Vec<(EntryId, EntryRecords)>, EntryError> {
        let kept = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let cuts = self.shared.cuts.load(Ordering::Acquire);
        let kept = kept.filter(|reader| reader.cuts == cuts && reader.before.id.index + 1 == index);
        let mut reader = kept.map_or_else(|| self.reader_at(index), Ok)?;
        let (mut entries, mut left) = (Vec::new(), bytes);
        while entries.is_empty() || left > 0 {
            let Some((id, records)) = reader.next(&self.shared)? else { break };
            left = left.saturating_sub(records.bytes().len());
            entries.push((id, records));
        }
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
        Ok(entries)
    }

    /// Returns a reader before the entry `index`, which must have been opened.
    pub(super) fn reader_at(&self, index: u64) -> Result<EntryReader, EntryError> {
        let found = self.shared.table().find_entry(index);
        let released = || EntryError::Released { wanted: index, first: self.first_entry() };
        let segment = found.ok_or_else(released)?;
        let before = segment.header.entry.ok_or_else(released)?;
        let mut reader = EntryReader {
            offset: segment.data_offset,
            segment_last: None,
            before,
            cuts: self.shared.cuts.load(Ordering::Acquire),
            bytes: Vec::new(),
            used: 0,
            segment,
        };
        reader.find_end(&self.shared);
        // The rest of the entry that an earlier segment opens.
        let mut next = reader.segment.header.first_lsn;
        while next <= before.last {
            reader.record(&self.shared, &mut next)?;
        }
        while reader.before.id.index + 1 < index {
            if reader.next(&self.shared)?.is_none() {
                let what = "the entry is not there";
                return Err(reader.damage(&self.shared, reader.before.last.next(), what).into());
            }
        }
        Ok(reader)
    }
}

impl EntryReader {
    /// Reads the next entry; `None` if it is not written yet, or not whole.
    fn next(&mut self, shared: &Shared) -> Result<Option<(EntryId, EntryRecords)>, EntryError> {
        let written = Lsn(shared.written.load(Ordering::Acquire));
        if self.before.last >= written {
            return Ok(None);
        }
        let mut next = self.before.last.next();
        self.enter_segment_of(shared, &mut next);
        let (_, marker) = self.frame(shared, next)?;
        let mark: Option<EntryMark> = marker.and_then(|marker| marker.entry);
        let Some(mark) = mark.filter(|mark| mark.follows(self.before)) else {
            return Err(self.damage(shared, next, "the next entry does not begin there").into());
        };
        if mark.last > written {
            return Ok(None);
        }
        let (first, mut frames) = (next, Vec::new());
        while next <= mark.last {
            let range = self.record(shared, &mut next)?;
            frames.extend_from_slice(&self.bytes[range]);
        }
        self.before = mark.end();
        Ok(Some((mark.id, EntryRecords::of_frames(&frames, first, mark.last))))
    }

    /// Reads the frame of record `next` and advances it.
    fn record(&mut self, shared: &Shared, next: &mut Lsn) -> Result<Range<usize>, EntryError> {
        self.enter_segment_of(shared, next);
        let (range, marker) = self.frame(shared, *next)?;
        if marker.is_some() {
            return Err(self.damage(shared, *next, "an entry begins within another one").into());
        }
        *next = next.next();
        Ok(range)
    }

    /// Goes to the segment of record `next`, or of the first one behind the gap in which it lies.
    fn enter_segment_of(&mut self, shared: &Shared, next: &mut Lsn) {
        if self.segment_last.is_none() {
            self.find_end(shared);
        }
        if self.segment_last.is_some_and(|last| *next > last)
            && let Some((segment, last)) = shared.table().find(*next)
        {
            self.offset = segment.data_offset;
            self.bytes.clear();
            self.used = 0;
            (self.segment, self.segment_last) = (segment, last);
        }
        *next = self.segment.header.first_lsn.max(*next);
    }

    fn find_end(&mut self, shared: &Shared) {
        let found = shared.table().find(self.segment.header.first_lsn);
        self.segment_last = found.and_then(|(_, last)| last);
    }

    /// Reads the next frame: its place in `bytes`, and what it says if it is a marker.
    fn frame(&mut self, shared: &Shared, next: Lsn) -> Result<(Range<usize>, Option<Marker>), EntryError> {
        let (codec, salt) = (self.segment.codec(), self.segment.header.salt);
        // What was read ahead may have been written since.
        let mut is_fresh = false;
        loop {
            match codec.decode(&self.bytes[self.used..], salt, &mut Vec::new()) {
                Step::Frame { consumed, lsn, marker } => {
                    let expected = if marker.is_some() { next.previous() } else { next };
                    if lsn != expected {
                        return Err(self.damage(shared, next, "the record has another LSN").into());
                    }
                    let range = self.used..self.used + consumed;
                    self.used = range.end;
                    self.offset += consumed as u64;
                    return Ok((range, marker));
                }
                Step::Incomplete { needed } => {
                    let failed = |error: io::Error| {
                        let what = format!("reading {}", shared.storage.path(&self.segment.name));
                        EntryError::Storage(Failure::new(what, error))
                    };
                    let mut bytes = mem::take(&mut self.bytes);
                    bytes.resize(needed.max(CHUNK_BYTES), 0);
                    let filled = read_full(&*self.segment.file, &mut bytes, self.offset).map_err(failed)?;
                    bytes.truncate(filled);
                    (self.bytes, self.used) = (bytes, 0);
                    is_fresh = true;
                    if filled < needed {
                        return Err(self.damage(shared, next, "nothing is written there").into());
                    }
                }
                Step::Unwritten | Step::Invalid(_) if !is_fresh => {
                    self.bytes.clear();
                    self.used = 0;
                }
                Step::Unwritten => {
                    return Err(self.damage(shared, next, "nothing is written there").into());
                }
                Step::Invalid(what) => return Err(self.damage(shared, next, what).into()),
            }
        }
    }

    fn damage(&self, shared: &Shared, next: Lsn, what: &str) -> Damage {
        damage(&*shared.storage, &self.segment.name, self.offset, next, what)
    }
}
