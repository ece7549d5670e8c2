//! Opening: find the segments, verify them, tell a torn tail from damage, and cut the former.
//!
//! The end of the log is where frames stop being valid and dense. Whether that is the end of what was written, an
//! unfinished write or damage is decided by proof: a later marker that calls the missing record durable, a segment
//! or a snapshot behind it. Without proof the tail is cut. A marker follows a batch with the next one, or after a
//! tenth of a second of silence: only damage to what was acknowledged within that time before a crash passes for a torn
//! tail.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{Damage, OpenError, TornTail};
use crate::format::MARKER_BYTES_MAX;
use crate::reader::{SegmentReader, Stop};
use crate::segment::{
    HEADER_BYTES, Segment, SegmentTable, TEMPORARY_SUFFIX, parse_segment_name, segment_name,
};
use crate::snapshot::parse_snapshot_name;
use crate::storage::{Storage, read_full, write_all, write_zeros};
use crate::{Format, Lsn, RecordBatch, Verify};

/// What `open` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The oldest record that can be read; one more than `last_lsn` when there is none.
    pub first_lsn: Lsn,
    /// The newest record.
    pub last_lsn: Lsn,
    /// Records kept.
    pub records: u64,
    /// Bytes of them on disk, as far as they were verified.
    pub bytes: u64,
    /// The unfinished writes that were cut, if any.
    pub torn: Option<TornTail>,
    /// Time that opening took.
    pub elapsed: Duration,
}

/// The verified directory.
pub(crate) struct Recovered {
    pub(crate) table: SegmentTable,
    pub(crate) recovery: Recovery,
    /// Where appending goes on in the last segment.
    pub(crate) end_offset: u64,
    /// What the newest marker calls durable.
    pub(crate) marked: Lsn,
    /// Names of all files, for whoever looks for spares.
    pub(crate) names: Vec<String>,
}

const WINDOW_BYTES: usize = 1 << 20;

/// Verifies the log in `storage` and cuts a torn tail.
pub(crate) fn recover(storage: &dyn Storage, verify: Verify) -> Result<Recovered, OpenError> {
    let mut names = storage.list().map_err(|error| OpenError::storage("listing the directory", error))?;
    names.retain(|name| !name.ends_with(TEMPORARY_SUFFIX) || storage.remove(name).is_err());
    let snapshot = names.iter().filter_map(|name| parse_snapshot_name(name)).max().unwrap_or_default();
    let table = load_segments(storage, &names)?;
    let mut recovery = Recovery { last_lsn: snapshot, first_lsn: snapshot.next(), ..Recovery::default() };
    let mut end_offset = 0;
    let mut marked = Lsn::ZERO;
    if let Some(first) = table.first_lsn() {
        let ends = scan(storage, &table, verify)?;
        recovery.first_lsn = first;
        recovery.bytes = ends.iter().map(|end| end.offset).sum();
        if let Some(end) = ends.last() {
            let tail = settle_tail(storage, end, snapshot)?;
            recovery.torn = tail;
            recovery.last_lsn = end.expected.previous();
            end_offset = end.offset;
            marked = end.durable;
        }
        recovery.records = recovery.last_lsn.next().0 - first.0;
    }
    Ok(Recovered { table, recovery, end_offset, marked, names })
}

/// Opens every segment and reads its header.
pub(crate) fn load_segments(storage: &dyn Storage, names: &[String]) -> Result<SegmentTable, OpenError> {
    let mut firsts: Vec<Lsn> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    firsts.sort_unstable();
    let mut table = SegmentTable::default();
    for first in firsts {
        let name = segment_name(first);
        table.insert(Arc::new(load_segment(storage, name, first)?));
    }
    Ok(table)
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

/// Where the valid part of a segment ends.
#[derive(Debug)]
pub(crate) struct SegmentEnd {
    segment: Arc<Segment>,
    expected: Lsn,
    offset: u64,
    durable: Lsn,
    proven_offset: u64,
    stop: Stop,
}

impl SegmentEnd {
    pub(crate) fn of(reader: &SegmentReader, stop: Stop) -> Self {
        Self {
            segment: reader.segment().clone(),
            expected: reader.expected(),
            offset: reader.offset(),
            durable: reader.durable(),
            proven_offset: reader.proven_offset(),
            stop,
        }
    }
}

/// Verifies segments on all cores; returns the ends of those verified, the last segment's last.
fn scan(storage: &dyn Storage, table: &SegmentTable, verify: Verify) -> Result<Vec<SegmentEnd>, OpenError> {
    let segments: Vec<&Arc<Segment>> = table.iter().collect();
    let from = if verify == Verify::All { 0 } else { segments.len().saturating_sub(1) };
    let work: Vec<(&Arc<Segment>, Option<Lsn>)> = segments
        .iter()
        .enumerate()
        .skip(from)
        .map(|(index, segment)| {
            (*segment, segments.get(index + 1).map(|next| next.header.first_lsn.previous()))
        })
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
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        })
    };
    if ends.len() != work.len() {
        let error = io::Error::other("a verifying thread stopped");
        return Err(OpenError::storage("verifying the segments", error));
    }
    ends.sort_unstable_by_key(|(index, _)| *index);
    ends.into_iter().map(|(_, end)| end).collect()
}

/// Reads a segment to its end. `last` is what it must hold when another segment follows.
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
    // A segment is durable before its successor exists, so anything missing from it is damage.
    if last.is_some() && stop != Stop::Limit {
        return Err(damage(storage, &segment.name, reader.offset(), reader.expected(), describe(stop)).into());
    }
    Ok(SegmentEnd::of(&reader, stop))
}

/// Refuses a proven loss; otherwise cuts what follows the last record and makes what precedes it durable.
fn settle_tail(
    storage: &dyn Storage,
    end: &SegmentEnd,
    snapshot: Lsn,
) -> Result<Option<TornTail>, OpenError> {
    let path = storage.path(&end.segment.name);
    let failed = |error| OpenError::storage(format!("recovering {path}"), error);
    let remainder = inspect_remainder(end).map_err(failed)?;
    if remainder.proof || snapshot >= end.expected {
        return Err(damage(storage, &end.segment.name, end.offset, end.expected, describe(end.stop)).into());
    }
    rewrite(end).map_err(failed)?;
    if remainder.dirty_end > end.offset {
        cut(end, remainder.dirty_end).map_err(failed)?;
    }
    end.segment.file.sync_data().map_err(failed)?;
    let torn = TornTail { path, offset: end.offset, bytes: remainder.dirty_end - end.offset };
    Ok(remainder.torn.then_some(torn))
}

/// What lies behind the last record.
pub(crate) struct Remainder {
    /// A marker says that the record which is missing was durable.
    pub(crate) proof: bool,
    /// Unfinished writes, as opposed to nothing or to the leavings of a recycled file's earlier use.
    pub(crate) torn: bool,
    /// End of the last byte that is not zero.
    pub(crate) dirty_end: u64,
}

pub(crate) fn inspect_remainder(end: &SegmentEnd) -> io::Result<Remainder> {
    let codec = end.segment.codec();
    let mut remainder = Remainder { proof: false, torn: false, dirty_end: end.offset };
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = end.offset;
    loop {
        let filled = read_full(&*end.segment.file, &mut window, offset)?;
        let bytes = window.get(..filled).unwrap_or_default();
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
        // Windows overlap, so that a marker on their border is seen whole.
        offset += (WINDOW_BYTES - MARKER_BYTES_MAX) as u64;
    }
    let dirty = remainder.dirty_end > end.offset;
    remainder.torn = dirty && (!end.segment.header.recycled || begins_with_frame(end)?);
    Ok(remainder)
}

/// Where the last byte stands that is not zero. What lies behind the last record of a segment is mostly zeros, tens of
/// megabytes of them, so blocks are looked at without a branch for each byte, which the compiler makes many at a time.
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

/// Whether a recycled segment's valid part is followed by a broken frame of this log rather than by older bytes.
fn begins_with_frame(end: &SegmentEnd) -> io::Result<bool> {
    let mut head = [0; 16];
    let filled = read_full(&*end.segment.file, &mut head, end.offset)?;
    let (_, lsn) = head.split_at(8);
    Ok(filled == head.len()
        && (lsn == end.expected.0.to_le_bytes() || lsn == end.expected.previous().0.to_le_bytes()))
}

/// Writes the records that no marker proves durable once more. They may be readable only from the page cache after
/// an earlier process's sync failed, in which case a mere sync would find nothing to do.
fn rewrite(end: &SegmentEnd) -> io::Result<()> {
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = end.proven_offset;
    while offset < end.offset {
        let size = WINDOW_BYTES.min((end.offset - offset) as usize);
        let target = window.get_mut(..size).unwrap_or_default();
        if read_full(&*end.segment.file, target, offset)? != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all(&*end.segment.file, target, offset)?;
        offset += size as u64;
    }
    Ok(())
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
