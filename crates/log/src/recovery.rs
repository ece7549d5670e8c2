//! Opening: finds and verifies the segments, distinguishes a torn tail from damage, and cuts it.
//!
//! The log ends where frames stop being valid and dense: at the end of the written records, an
//! unfinished write, or damage. It is damage if there is proof: a later marker that calls the
//! missing record durable, or a later segment or snapshot. Otherwise the tail is cut. A marker
//! follows each batch, with the next batch or after 100 ms without writes, and `END` is written
//! within [a second](crate::high_water). So only damage to records acknowledged within that time
//! before a crash can pass for a torn tail.
//!
//! A log that ends before the records that `END` calls durable has lost files or parts of them; it
//! is refused like damage.
//!
//! The LSN of the next record depends on how the log was left ([`end_file`](crate::end_file)):
//! unless it was closed, there is a [gap](crate::gap) before the record.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_fault::{Fault, is_planted};

use crate::checksum;
use crate::end_file::{self, EndFile, LogEnd};
use crate::entry::{EntryEnd, EntryId};
use crate::error::{Damage, OpenError, TornTail};
use crate::format::MARKER_BYTES_MAX;
use crate::gap::{Gap, Gaps, MARGIN, next_behind};
use crate::reader::{SegmentReader, Stop, Verified};
use crate::segment::{Segment, SegmentTable, TEMPORARY_SUFFIX, is_of_log, parse_segment_name, segment_name};
use crate::segment_header::HEADER_BYTES;
use crate::snapshot::Name;
use crate::storage::{Storage, read_full, write_all, write_zeros};
use crate::{Format, Lsn, RecordBatch, Verify};

/// Result of opening a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The oldest readable record; one more than `last_lsn` if there is none.
    pub first_lsn: Lsn,
    /// The newest record.
    pub last_lsn: Lsn,
    /// Number of records kept.
    pub records: u64,
    /// Bytes of the verified segments on disk.
    pub bytes: u64,
    /// The unfinished write that was cut, if any.
    pub torn: Option<TornTail>,
    /// The LSNs between the newest record and the next one if the log was not closed: they may have
    /// been handed out for records that are lost. `None` if it was closed, even if an earlier start
    /// left a gap.
    pub gap: Option<Gap>,
    /// Time that opening took.
    pub elapsed: Duration,
}

/// The verified directory.
pub(crate) struct Recovered {
    pub(crate) table: SegmentTable,
    pub(crate) recovery: Recovery,
    pub(crate) next: Lsn,
    pub(crate) gaps: Gaps,
    /// The segment to append to; `None` if the next record starts a new one.
    pub(crate) segment: Option<Arc<Segment>>,
    /// Offset to append at.
    pub(crate) end_offset: u64,
    /// Durable LSN in the newest marker.
    pub(crate) marked: Lsn,
    /// The newest entry of a group's log. If it ends behind the last record, it is not whole.
    pub(crate) entry: EntryEnd,
    /// What is known to have been committed in a group.
    pub(crate) committed: Lsn,
    /// The `END` file, if it exists already.
    pub(crate) end_file: Option<EndFile>,
    pub(crate) names: Vec<String>,
}

const WINDOW_BYTES: usize = 1 << 20;

/// Verifies the log in `storage`, cuts a torn tail, and determines the LSN of the next record.
///
/// A member of a group (`has_entries`) takes the log of a single node as well, and continues it.
pub(crate) fn recover(
    storage: &dyn Storage,
    verify: Verify,
    has_entries: bool,
) -> Result<Recovered, OpenError> {
    let mut names = storage.list().map_err(|error| OpenError::storage("listing the directory", error))?;
    names.retain(|name| !name.ends_with(TEMPORARY_SUFFIX) || storage.remove(name).is_err());
    let (end_file, left) = end_file::find(storage, &names)?;
    let snapshot = Name::newest_lsn(&names);
    let (mut table, replaced) = load_segments(storage, &names)?;
    for segment in replaced {
        let without_records = prefer_records(storage, &mut table, segment)?;
        remove_replaced(storage, &without_records)?;
    }
    let newest = table.newest();
    let is_grouped = newest.as_ref().map_or(has_entries, |newest| newest.header.entry.is_some());
    if is_grouped && !has_entries {
        return Err(OpenError::OfGroup { path: storage.path("") });
    }
    let ends = scan(storage, &table, verify)?;
    let tail = ends.last();
    // A group's log that was replaced by a snapshot begins behind the last entry that the snapshot has
    // whole. The next one is still to come.
    let is_replaced = table.len() == 1
        && tail.is_some_and(|end| !end.has_records() && end.entry.is_some_and(|entry| entry.id.index > 0));
    let provable = if is_replaced { Lsn::ZERO } else { snapshot };
    let remainder = tail.map(|end| examine_tail(storage, end, provable)).transpose()?;
    let is_torn = remainder.as_ref().is_some_and(|remainder| remainder.torn);
    // If a repair has left no segments, the log continues after the newest snapshot.
    let last = tail.map_or(snapshot, |end| end.last);
    if let Some(missing) = left.and_then(|left| left.missing(storage, last)) {
        return Err(missing.into());
    }
    let is_new = end_file.is_none() && !names.iter().any(|name| is_of_log(name));
    // The group gives no LSN twice: what this member may have handed out was not committed.
    let next = if is_new || is_grouped { last.next() } else { next_lsn(left, &table, last, is_torn)? };
    let mut gaps = known_gaps(&table);
    gaps.add(last, next);
    let is_clean =
        is_new || is_grouped || left.is_some_and(|left| left.is_closed_at(last) && left.next == next);
    assert!(
        next > last && (is_clean || next.0 - last.0 > MARGIN),
        "a log that was not closed behind record {last} goes on at {next}: within {MARGIN} records, an LSN \
         that was handed out could come again"
    );
    let first = first_record(&table, last);
    let mut recovery = Recovery {
        first_lsn: first,
        last_lsn: last,
        records: gaps.records_between(first.previous(), last),
        bytes: ends.iter().map(|end| end.offset).sum(),
        gap: gaps.behind(last).first().copied().filter(|_| !is_clean),
        ..Recovery::default()
    };
    let goes_on = tail.filter(|end| end.expected == next && is_grouped == has_entries);
    if let (Some(end), Some(remainder)) = (tail, &remainder) {
        recovery.torn = settle_tail(storage, end, remainder, goes_on.is_none() && end.has_records())?;
    }
    Ok(Recovered {
        segment: goes_on.map(|end| end.segment.clone()),
        end_offset: goes_on.map_or(0, |end| end.offset),
        marked: goes_on.map_or(Lsn::ZERO, |end| end.durable),
        entry: tail.and_then(|end| end.entry).unwrap_or(EntryEnd { id: EntryId::default(), last }),
        // A snapshot counts only when what it covers is committed.
        committed: ends.iter().map(|end| end.committed).max().unwrap_or_default().max(snapshot.min(last)),
        next,
        gaps,
        end_file,
        names,
        recovery,
        table,
    })
}

/// Of a group's two segments with the same start, puts the one with records in the table. Returns
/// the other one.
fn prefer_records(
    storage: &dyn Storage,
    table: &mut SegmentTable,
    segment: Arc<Segment>,
) -> Result<Arc<Segment>, OpenError> {
    if segment.header.entry.is_some() && verify_segment(storage, &segment, None)?.has_records() {
        Ok(table.insert(segment.clone()).unwrap_or(segment))
    } else {
        Ok(segment)
    }
}

/// Removes a segment without records that has a successor with the same start: a crash came between
/// creating the one and removing the other.
fn remove_replaced(storage: &dyn Storage, segment: &Arc<Segment>) -> Result<(), OpenError> {
    let end = verify_segment(storage, segment, None)?;
    if end.has_records() {
        let what = "its successor does not know its records";
        return Err(
            damage(storage, &segment.name, segment.data_offset, segment.header.first_lsn, what).into()
        );
    }
    // Best effort: a leftover does no harm.
    let _ = storage.remove(&segment.name);
    Ok(())
}

/// Returns the next LSN of a log that was used before: after its last record if it was closed
/// there, otherwise after everything that may have been handed out.
fn next_lsn(left: Option<LogEnd>, table: &SegmentTable, last: Lsn, is_torn: bool) -> Result<Lsn, OpenError> {
    let newest = table.iter().last().map_or(Lsn::ZERO, |segment| segment.header.first_lsn);
    match left {
        Some(left) if left.is_closed_at(last) && left.next >= newest && !is_torn => Ok(left.next),
        _ => {
            if is_planted(Fault::Gap) {
                return Ok(last.next());
            }
            let begun = left.map_or(Lsn::ZERO, |left| left.next);
            next_behind(last.max(newest).max(begun)).ok_or(OpenError::Exhausted { last })
        }
    }
}

/// Returns the gaps before the segments.
fn known_gaps(table: &SegmentTable) -> Gaps {
    let mut gaps = Gaps::default();
    table.iter().for_each(|segment| gaps.add(segment.header.follows, segment.header.first_lsn));
    gaps
}

/// Returns the oldest record, or the LSN after the last one if there is none.
fn first_record(table: &SegmentTable, last: Lsn) -> Lsn {
    let oldest = table.iter().next().map(|segment| segment.header.first_lsn);
    oldest.filter(|first| *first <= last).unwrap_or(last.next())
}

/// Opens every segment and reads its header. Also returns the segments that a newer one with the
/// same start replaces; they must have no records.
pub(crate) fn load_segments(
    storage: &dyn Storage,
    names: &[String],
) -> Result<(SegmentTable, Vec<Arc<Segment>>), OpenError> {
    let mut firsts: Vec<Lsn> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    firsts.sort_unstable();
    let (mut table, mut replaced) = (SegmentTable::default(), Vec::new());
    for first in firsts {
        let segment = load_segment(storage, segment_name(first), first)?;
        replaced.extend(table.insert(Arc::new(segment)));
    }
    // A segment gets a successor only once it has records, except one that replaces it.
    let apart =
        table.iter().zip(table.iter().skip(1)).find(|(one, next)| next.header.follows < one.header.first_lsn);
    if let Some((one, next)) = apart {
        let (first, what) = (next.header.first_lsn, "it does not follow the segment before it");
        let path = storage.path(&one.name);
        return Err(damage(storage, &next.name, 0, first, &format!("{what}, {path}")).into());
    }
    Ok((table, replaced))
}

pub(crate) fn load_segment(storage: &dyn Storage, name: String, first: Lsn) -> Result<Segment, OpenError> {
    let failed = |error| OpenError::storage(format!("opening {}", storage.path(&name)), error);
    let file = storage.open(&name).map_err(failed)?;
    let mut block = vec![0; HEADER_BYTES];
    let filled = read_full(&*file, &mut block, 0).map_err(failed)?;
    block.truncate(filled);
    let mut reason = "the file does not begin like a segment";
    for format in Format::ALL {
        match format.codec().decode_header(&block) {
            Ok((header, size)) if header.first_lsn == first => {
                return Ok(Segment { name, header, format, data_offset: size as u64, file });
            }
            Ok(_) => reason = "the header belongs to a segment of another name",
            Err(why) if format == Format::Binary => reason = why,
            Err(_) => {}
        }
    }
    Err(damage(storage, &name, 0, first, reason).into())
}

/// End of the valid part of a segment.
#[derive(Debug)]
pub(crate) struct SegmentEnd {
    segment: Arc<Segment>,
    expected: Lsn,
    /// The newest record; if the segment has none, the last one before it.
    last: Lsn,
    offset: u64,
    durable: Lsn,
    /// The valid part's end with its checksum.
    verified: Verified,
    /// Up to where a marker proves the records durable.
    proven: Verified,
    entry: Option<EntryEnd>,
    committed: Lsn,
    stop: Stop,
}

impl SegmentEnd {
    pub(crate) fn of(reader: &SegmentReader, stop: Stop) -> Self {
        Self {
            segment: reader.segment().clone(),
            expected: reader.expected(),
            last: reader.last(),
            offset: reader.offset(),
            durable: reader.durable(),
            verified: reader.verified(),
            proven: reader.proven(),
            entry: reader.entry(),
            committed: reader.committed(),
            stop,
        }
    }

    fn has_records(&self) -> bool {
        self.expected > self.segment.header.first_lsn
    }
}

/// Verifies segments on all cores. Returns the ends of the verified ones in log order.
fn scan(storage: &dyn Storage, table: &SegmentTable, verify: Verify) -> Result<Vec<SegmentEnd>, OpenError> {
    let segments: Vec<&Arc<Segment>> = table.iter().collect();
    let from = if verify == Verify::All { 0 } else { segments.len().saturating_sub(1) };
    let work: Vec<(&Arc<Segment>, Option<Lsn>)> = segments
        .iter()
        .enumerate()
        .skip(from)
        .map(|(index, segment)| (*segment, segments.get(index + 1).map(|next| next.header.follows)))
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(work.len());
    let mut ends: Vec<(usize, Result<SegmentEnd, OpenError>)> = if threads <= 1 {
        work.iter()
            .enumerate()
            .map(|(index, (segment, end))| (index, verify_segment(storage, segment, *end)))
            .collect()
    } else {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let worker = || {
                let mut ends = Vec::new();
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some((segment, end)) = work.get(index)
                {
                    ends.push((index, verify_segment(storage, segment, *end)));
                }
                ends
            };
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    };
    let (verified, wanted) = (ends.len(), work.len());
    assert!(verified == wanted, "{verified} of {wanted} segments were verified");
    ends.sort_unstable_by_key(|(index, _)| *index);
    ends.into_iter().map(|(_, end)| end).collect()
}

/// Reads a segment to its end. `last` is the record that it must reach if another segment follows.
fn verify_segment(
    storage: &dyn Storage,
    segment: &Arc<Segment>,
    last: Option<Lsn>,
) -> Result<SegmentEnd, OpenError> {
    let mut reader = SegmentReader::new(segment.clone());
    let mut batch = RecordBatch::default();
    let stop = loop {
        let stop = reader
            .read(&mut batch, last.unwrap_or(Lsn(u64::MAX)))
            .map_err(|error| OpenError::storage(format!("reading {}", storage.path(&segment.name)), error))?;
        if stop != Stop::More {
            break stop;
        }
    };
    // A segment is durable before its successor exists, so a missing record is damage.
    if last.is_some() && stop != Stop::Limit {
        return Err(damage(storage, &segment.name, reader.offset(), reader.expected(), describe(stop)).into());
    }
    Ok(SegmentEnd::of(&reader, stop))
}

/// Examines the bytes after the last record. Returns an error if there is proof of a lost record.
fn examine_tail(storage: &dyn Storage, end: &SegmentEnd, snapshot: Lsn) -> Result<Remainder, OpenError> {
    let name = &end.segment.name;
    let remainder = inspect_remainder(end)
        .map_err(|error| OpenError::storage(format!("recovering {}", storage.path(name)), error))?;
    if remainder.proof || snapshot > end.last {
        return Err(damage(storage, name, end.offset, end.expected, describe(end.stop)).into());
    }
    Ok(remainder)
}

/// Cuts what follows the last record and makes what precedes it durable. If nothing will be
/// appended to the segment, frees its unused space: otherwise many starts after gaps could fill the
/// disk.
fn settle_tail(
    storage: &dyn Storage,
    end: &SegmentEnd,
    remainder: &Remainder,
    is_sealed: bool,
) -> Result<Option<TornTail>, OpenError> {
    let path = storage.path(&end.segment.name);
    let failed = |error| OpenError::storage(format!("recovering {path}"), error);
    let file = &end.segment.file;
    rewrite(end).map_err(failed)?;
    if is_sealed && file.len().map_err(failed)? > end.offset {
        file.set_len(end.offset).map_err(failed)?;
    } else if remainder.dirty_end > end.offset {
        cut(end, remainder.dirty_end).map_err(failed)?;
    }
    file.sync_data().map_err(failed)?;
    let torn = TornTail { path, offset: end.offset, bytes: remainder.dirty_end - end.offset };
    Ok(remainder.torn.then_some(torn))
}

/// Content after the last record.
pub(crate) struct Remainder {
    /// A marker proves that the missing record was durable.
    pub(crate) proof: bool,
    /// There are unfinished writes, not just zeros or old bytes of a recycled file.
    pub(crate) torn: bool,
    /// Offset after the last nonzero byte.
    pub(crate) dirty_end: u64,
}

pub(crate) fn inspect_remainder(end: &SegmentEnd) -> io::Result<Remainder> {
    let codec = end.segment.codec();
    let mut remainder = Remainder { proof: false, torn: false, dirty_end: end.offset };
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = end.offset;
    loop {
        let filled = read_full(&*end.segment.file, &mut window, offset)?;
        let bytes = &window[..filled];
        if let Some(last) = last_set(bytes) {
            remainder.dirty_end = offset + last as u64 + 1;
            if codec.find_proof(bytes, end.segment.header.salt, end.expected).is_some() {
                remainder.proof = true;
                return Ok(remainder);
            }
        }
        if filled < window.len() {
            break;
        }
        // Windows overlap, so that a marker on a border is seen whole.
        offset += (WINDOW_BYTES - MARKER_BYTES_MAX) as u64;
    }
    let dirty = remainder.dirty_end > end.offset;
    remainder.torn = dirty && (!end.segment.header.recycled || begins_with_frame(end)?);
    Ok(remainder)
}

/// Returns the index of the last nonzero byte. The space after the last record is mostly zeros,
/// tens of megabytes, so blocks are tested without a branch per byte, which vectorises.
fn last_set(bytes: &[u8]) -> Option<usize> {
    const BLOCK_BYTES: usize = 4096;
    let mut end = bytes.len();
    for block in bytes.rchunks(BLOCK_BYTES) {
        let start = end - block.len();
        if block.iter().fold(0, |all, byte| all | byte) != 0 {
            return block.iter().rposition(|byte| *byte != 0).map(|at| start + at);
        }
        end = start;
    }
    None
}

/// Returns whether the valid part of a recycled segment is followed by a broken frame of this log
/// rather than by older bytes.
fn begins_with_frame(end: &SegmentEnd) -> io::Result<bool> {
    let mut head = [0; 16];
    let filled = read_full(&*end.segment.file, &mut head, end.offset)?;
    let (_, lsn) = head.split_at(8);
    Ok(filled == head.len()
        && (lsn == end.expected.0.to_le_bytes() || lsn == end.expected.previous().0.to_le_bytes()))
}

/// Rewrites the records that no marker proves durable. After a failed sync of an earlier process
/// they may exist only in the page cache, marked clean, and a sync alone would not write them.
///
/// What is written was compared with what was verified before: a read that fails once must not become
/// the file's content.
fn rewrite(end: &SegmentEnd) -> io::Result<()> {
    let (mut whole, mut windows) = (end.proven.checksum, Vec::new());
    for_each_unproven(end, |window, _| {
        whole = checksum::append(whole, window);
        windows.push(checksum::append(0, window));
        Ok(())
    })?;
    if whole != end.verified.checksum {
        return Err(read_differently(end.proven.offset));
    }
    let mut windows = windows.into_iter();
    for_each_unproven(end, |window, offset| {
        if windows.next() != Some(checksum::append(0, window)) {
            return Err(read_differently(offset));
        }
        write_all(&*end.segment.file, window, offset)
    })
}

/// Reads the records that no marker proves durable, in windows, each with its offset.
fn for_each_unproven(
    end: &SegmentEnd,
    mut visit: impl FnMut(&[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = end.proven.offset;
    while offset < end.offset {
        let size = WINDOW_BYTES.min((end.offset - offset) as usize);
        let target = &mut window[..size];
        if read_full(&*end.segment.file, target, offset)? != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        visit(target, offset)?;
        offset += size as u64;
    }
    Ok(())
}

fn read_differently(offset: u64) -> io::Error {
    let text = format!(
        "the bytes from offset {offset} on, which were verified, were read differently the next time; nothing there \
         was written: check the disk and the memory, and start again"
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Removes what follows the last record, so that no later write can make it look valid again.
fn cut(end: &SegmentEnd, dirty_end: u64) -> io::Result<()> {
    if end.segment.codec().preallocates() {
        write_zeros(&*end.segment.file, end.offset, dirty_end)
    } else {
        end.segment.file.set_len(end.offset)
    }
}

pub(crate) fn describe(stop: Stop) -> &'static str {
    match stop {
        Stop::Invalid(why) => why,
        Stop::Unwritten => "nothing is written there",
        Stop::More | Stop::Limit => "the records end there",
    }
}

pub(crate) fn damage(storage: &dyn Storage, name: &str, offset: u64, expected: Lsn, what: &str) -> Damage {
    Damage { path: storage.path(name), offset, expected, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::last_set;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_last_byte_that_is_set_is_found(length in 0_usize..20_000, set in proptest::collection::vec((0_usize..20_000, any::<u8>()), 0..3)) {
            let mut bytes = vec![0; length];
            for (at, value) in set {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            prop_assert_eq!(last_set(&bytes), bytes.iter().rposition(|byte| *byte != 0));
        }
    }
}
