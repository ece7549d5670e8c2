//! Removes records from a log that no process has open: damaged ones, or those after a chosen
//! record.
//!
//! LSNs of removed records are not reused: the log is not marked as closed, so the next start
//! continues after a gap.
//!
//! Nothing is deleted. Whole files get the prefix `cut-`; a part of a file is copied to one with
//! that prefix.
//!
//! [Missing](MissingTail) records cannot be restored: to repair is to continue without them.
//!
//! A segment of which only the header is damaged loses nothing: the header is
//! [reconstructed](super::salvage).
//!
//! After damage, the log continues from a newer snapshot if there is one, and the records before it
//! are set aside.

use std::io;
use std::sync::Arc;

use super::ToolError;
use super::inspect::{Inspection, SegmentReport, SegmentState, SnapshotReport, inspect, inspect_with};
use super::salvage::find_headers;
use super::salvaged_header::Headers;
use crate::buffer::Buffer;
use crate::end_file::{EndFile, LogEnd};
use crate::error::{Failure, MissingTail};
use crate::format::Marker;
use crate::opening::take_lock;
use crate::reader::{SegmentReader, Stop};
use crate::recovery::load_segment;
use crate::segment::{TEMPORARY_SUFFIX, parse_segment_name, segment_name};
use crate::storage::{Storage, read_full, write_all, write_zeros};
use crate::{Lsn, RecordBatch};

const PREFIX: &str = "cut-";
const COPY_BYTES: usize = 1 << 20;

/// Plan of what to remove from a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The newest record of the log afterwards; with a snapshot, the last that it covers.
    pub last_lsn: Lsn,
    /// Records that were readable and no longer will be, as (first, last).
    pub lost: Option<(Lsn, Lsn)>,
    /// Files to set aside whole, in an order that is safe if the machine stops in between.
    pub files: Vec<String>,
    /// The file to cut, and the offset.
    pub part: Option<(String, u64)>,
    /// The newest LSN in use before; the next record gets a later one.
    pub newest: Lsn,
    /// Records that are missing already; the log continues without them.
    pub missing: Option<MissingTail>,
    /// Segments whose damaged header is rewritten, each with the header's bytes.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// Plans a repair; `None` if nothing is damaged or missing. Returns an error if no state could be
/// recovered from the result, or if the log belongs to a member of a group.
pub fn plan_repair(
    storage: &Arc<dyn Storage>,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Cut>, ToolError> {
    let mut inspection = inspect_own(storage, progress)?;
    let mut headers = Headers::new();
    // Each may depend on the segment before it, so the search repeats while it finds more.
    while let found = find_headers(&**storage, &inspection)?
        && !found.is_empty()
    {
        headers.extend(found);
        inspection = inspect_with(storage, &headers, progress)?;
    }
    let Some(mut cut) = plan(&inspection)? else {
        return Ok((!headers.is_empty()).then(|| Cut { headers: spell(&headers), ..nothing(&inspection) }));
    };
    cut.headers = spell(&headers).into_iter().filter(|(name, _)| !cut.files.contains(name)).collect();
    Ok(Some(cut))
}

/// Inspects a log that may be cut: that of a single node.
fn inspect_own(storage: &Arc<dyn Storage>, progress: &mut dyn FnMut(u64)) -> Result<Inspection, ToolError> {
    let inspection = inspect(storage, progress)?;
    if inspection.is_of_group {
        return Err(ToolError::OfGroup { path: storage.path("") });
    }
    Ok(inspection)
}

fn plan(inspection: &Inspection) -> Result<Option<Cut>, ToolError> {
    let is_damaged = |segment: &SegmentReport| matches!(segment.state, SegmentState::Damaged(_));
    let saving = inspection.snapshots.iter().rev().find(|snapshot| snapshot.content.is_ok());
    let saving = saving.map(|snapshot| snapshot.lsn);
    let Some(index) = inspection.segments.iter().position(is_damaged) else {
        let newest = inspection.snapshots.last().map(|snapshot| snapshot.lsn);
        let older = saving.filter(|_| inspection.segments.is_empty() && saving < newest);
        if let Some(snapshot) = older {
            // The log continues after the newest snapshot, so that must be a readable one.
            return Ok(Some(continue_from_snapshot(inspection, 0, snapshot)));
        }
        if let Some(error) = &inspection.no_base {
            return Err(error.clone().into());
        }
        return go_on(inspection).map(|cut| with_base(inspection, cut)).transpose();
    };
    let kept = inspection.last_lsn();
    match saving.filter(|lsn| *lsn > kept) {
        Some(snapshot) => Ok(Some(continue_from_snapshot(inspection, index, snapshot))),
        None => with_base(inspection, cut_after(inspection, index, kept)).map(Some),
    }
}

/// Returns the cut if a state can be recovered from the result: from the whole log, or from a
/// snapshot and the log after it.
fn with_base(inspection: &Inspection, cut: Cut) -> Result<Cut, ToolError> {
    let (first, last) = (inspection.floor(), cut.last_lsn);
    let carries = |snapshot: &SnapshotReport| {
        snapshot.content.is_ok() && snapshot.lsn <= last && snapshot.lsn.next() >= first
    };
    if first > Lsn::FIRST && !inspection.snapshots.iter().any(carries) {
        return Err(ToolError::NoBase { last, first });
    }
    Ok(cut)
}

/// Returns the files with reconstructed headers, and the headers' bytes.
fn spell(headers: &Headers) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(first, salvaged)| (segment_name(*first), salvaged.bytes())).collect()
}

/// Plans to remove every record after `last`.
///
/// # Errors
/// No state could be recovered from the result: the log is damaged before `last`, or it starts
/// after its first record and every snapshot that it continues covers more than `last`. Or it belongs to
/// a member of a group.
pub fn plan_truncate(
    storage: &Arc<dyn Storage>,
    last: Lsn,
    progress: &mut dyn FnMut(u64),
) -> Result<Cut, ToolError> {
    let inspection = inspect_own(storage, progress)?;
    let holds = |segment: &SegmentReport| segment.first_lsn <= last && last <= segment.last_lsn;
    let Some(index) = inspection.segments.iter().position(holds) else {
        let (first, end) = (inspection.first_lsn(), inspection.last_lsn());
        return Err(ToolError::NoSuchRecord { wanted: last, first, last: end });
    };
    if let Some(damage) = inspection.segments[..index].iter().find_map(SegmentReport::damage) {
        return Err(damage.clone().into());
    }
    let mut cut = with_base(&inspection, cut_after(&inspection, index, last))?;
    if let Some(segment) = inspection.segments.get(index) {
        cut.part = Some((segment.name.clone(), offset_after(&**storage, segment, last)?));
    }
    Ok(cut)
}

impl Cut {
    /// Carries out the plan and returns the names of the files set aside. Fails while a server has
    /// the log open.
    pub fn apply(&self, storage: &dyn Storage) -> Result<Vec<String>, ToolError> {
        let _lock = take_lock(storage)?;
        let failed = |error| Failure::new("noting that LSNs must not be used again", error);
        self.note_newest(storage).map_err(failed)?;
        let mut aside = Vec::new();
        for (name, header) in &self.headers {
            let failed = |error| Failure::new(format!("writing the header of {}", storage.path(name)), error);
            aside.push(write_header(storage, name, header).map_err(failed)?);
        }
        for name in &self.files {
            let failed = |error| Failure::new(format!("setting {} aside", storage.path(name)), error);
            let target = free_name(storage, &format!("{PREFIX}{name}")).map_err(failed)?;
            storage.rename(name, &target).and_then(|()| storage.sync_dir()).map_err(failed)?;
            aside.push(target);
        }
        if let Some((name, offset)) = &self.part {
            let failed = |error| Failure::new(format!("cutting {}", storage.path(name)), error);
            aside.extend(cut_part(storage, name, *offset, self.last_lsn).map_err(failed)?);
        }
        Ok(aside)
    }

    /// Marks the log as not closed, and all LSNs up to the newest one as handed out.
    fn note_newest(&self, storage: &dyn Storage) -> io::Result<()> {
        let file = EndFile::find(storage, &storage.list()?)?;
        let left = file.as_ref().map(EndFile::read).transpose()?.flatten();
        let noted = left.map_or(Lsn::ZERO, |left| left.next.max(left.durable.next()));
        let end = LogEnd { closed: false, durable: Lsn::ZERO, next: noted.max(self.newest.next()) };
        match file {
            Some(file) => file.write(end),
            None => EndFile::create(storage, end).map(drop),
        }
    }
}

/// Removes nothing.
fn nothing(inspection: &Inspection) -> Cut {
    let (last_lsn, newest) = (inspection.end(), inspection.newest());
    Cut { last_lsn, lost: None, files: Vec::new(), part: None, newest, missing: None, headers: Vec::new() }
}

/// Continues without the missing records, and sets aside what follows the last record.
fn go_on(inspection: &Inspection) -> Option<Cut> {
    let missing = inspection.missing.as_ref()?;
    let index = inspection.segments.len().saturating_sub(1);
    let mut cut = cut_after(inspection, index, missing.last);
    let is_torn = |segment: &SegmentReport| matches!(segment.state, SegmentState::Torn(_));
    cut.part = cut.part.filter(|_| inspection.segments.last().is_some_and(is_torn));
    Some(cut)
}

/// Removes everything after `last`, which is in segment `index`; newest first, so that no hole
/// appears if it is interrupted.
fn cut_after(inspection: &Inspection, index: usize, last: Lsn) -> Cut {
    let later = inspection.segments.iter().skip(index + 1);
    let mut files: Vec<String> = later.clone().map(|segment| segment.name.clone()).rev().collect();
    let snapshots = inspection.snapshots.iter().filter(|snapshot| snapshot.lsn > last);
    files.extend(snapshots.map(|snapshot| snapshot.name.clone()));
    let mut part = None;
    if let Some(segment) = inspection.segments.get(index) {
        if segment.format.is_none() {
            files.push(segment.name.clone());
        } else {
            part = Some((segment.name.clone(), segment.used_bytes));
        }
    }
    let readable = inspection.segments.iter().skip(index).map(|segment| segment.last_lsn).max();
    let lost = readable.filter(|end| *end > last).map(|end| (last.next(), end));
    let missing = inspection.missing.clone();
    Cut { last_lsn: last, lost, files, part, missing, ..nothing(inspection) }
}

/// Replaces the segments up to the damage with the snapshot, oldest first. Keeps later segments if
/// they continue it, and removes newer snapshots, which are unreadable.
fn continue_from_snapshot(inspection: &Inspection, damaged: usize, snapshot: Lsn) -> Cut {
    let later = inspection.segments.get(damaged + 1..).unwrap_or_default();
    let whole = later.iter().all(|segment| !matches!(segment.state, SegmentState::Damaged(_)));
    let continues = later.iter().rposition(|segment| segment.follows <= snapshot);
    let end = later.last().map_or(Lsn::ZERO, |segment| segment.last_lsn);
    let kept = continues.filter(|_| whole && end >= snapshot);
    let count = kept.map_or(inspection.segments.len(), |index| damaged + 1 + index);
    let newer = inspection.snapshots.iter().rev().take_while(|newer| newer.lsn > snapshot);
    let replaced = inspection.segments.iter().take(count).map(|segment| segment.name.clone());
    let files = newer.map(|snapshot| snapshot.name.clone()).chain(replaced).collect();
    let lost = (kept.is_none() && end > snapshot).then_some((snapshot.next(), end));
    let last_lsn = if kept.is_some() { end } else { snapshot };
    Cut { last_lsn, lost, files, ..nothing(inspection) }
}

/// Returns the offset at which the record `last` ends.
fn offset_after(storage: &dyn Storage, segment: &SegmentReport, last: Lsn) -> Result<u64, ToolError> {
    let segment = Arc::new(load_segment(storage, segment.name.clone(), segment.first_lsn)?);
    let mut reader = SegmentReader::new(segment.clone());
    let mut batch = RecordBatch::default();
    let failed = |error| Failure::new(format!("reading {}", storage.path(&segment.name)), error);
    while reader.read(&mut batch, last).map_err(failed)? == Stop::More {}
    Ok(reader.offset())
}

/// Rewrites a segment's header, and returns the name of the file with the old content.
fn write_header(storage: &dyn Storage, name: &str, header: &[u8]) -> io::Result<String> {
    let file = storage.open(name)?;
    let mut before = vec![0; header.len()];
    let filled = read_full(&*file, &mut before, 0)?;
    let target = free_name(storage, &format!("{PREFIX}{name}-header"))?;
    let copy = storage.create(&target)?;
    write_all(&*copy, &before[..filled], 0)?;
    copy.sync_data()?;
    storage.sync_dir()?;
    write_all(&*file, header, 0)?;
    file.sync_data()?;
    Ok(target)
}

/// Moves what follows `offset` to a separate file. Returns the name of that file.
///
/// Writes a marker in its place, so that later damage to the kept records is not taken for a torn
/// tail.
fn cut_part(storage: &dyn Storage, name: &str, offset: u64, last: Lsn) -> io::Result<Option<String>> {
    let file = storage.open(name)?;
    let size = file.len()?;
    let target = free_name(storage, &format!("{PREFIX}{name}-from-{offset}"))?;
    let temporary = format!("{target}{TEMPORARY_SUFFIX}");
    if storage.list()?.contains(&temporary) {
        storage.remove(&temporary)?;
    }
    let copy = storage.create(&temporary)?;
    let mut buffer = vec![0; COPY_BYTES];
    let (mut position, mut dirty_end) = (offset, offset);
    while position < size {
        let filled = read_full(&*file, &mut buffer, position)?;
        let part = &buffer[..filled];
        if part.is_empty() {
            break;
        }
        if let Some(last) = part.iter().rposition(|byte| *byte != 0) {
            dirty_end = position + last as u64 + 1;
            write_all(&*copy, part, position - offset)?;
        }
        position += filled as u64;
    }
    let dirty = dirty_end > offset;
    if dirty {
        copy.set_len(dirty_end - offset)?;
        copy.sync_data()?;
        storage.rename(&temporary, &target)?;
    } else {
        storage.remove(&temporary)?;
    }
    storage.sync_dir()?;
    let segment =
        parse_segment_name(name).and_then(|first| load_segment(storage, name.to_owned(), first).ok());
    let Some(segment) = segment else {
        return Err(io::Error::other("the segment's header is unreadable"));
    };
    if segment.codec().preallocates() {
        write_zeros(&*file, offset, dirty_end)?;
    } else {
        file.set_len(offset)?;
    }
    let mut marker = Buffer::default();
    // If no record precedes it in the segment, it has the LSN before the first.
    let before = last.max(segment.header.first_lsn.previous());
    marker.open_with_marker(segment.codec(), before, segment.header.created_us, segment.header.salt);
    marker.patch_marker(segment.codec(), &Marker { durable: last, entry: None });
    if !segment.codec().preallocates() || offset + marker.bytes.len() as u64 <= size {
        write_all(&*file, &marker.bytes, offset)?;
    }
    file.sync_data()?;
    Ok(dirty.then_some(target))
}

/// Returns the name itself, or with a number if an earlier repair has taken it.
fn free_name(storage: &dyn Storage, name: &str) -> io::Result<String> {
    let names = storage.list()?;
    let numbered = (2_u64..).map(|number| format!("{name}.{number}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    candidates.find(|candidate| !names.contains(candidate)).ok_or(io::ErrorKind::AlreadyExists.into())
}
