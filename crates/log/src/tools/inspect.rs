//! Reports the content of a log's directory and its state. Changes nothing and takes no lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ToolError;
use super::salvaged_header::Headers;
use crate::end_file;
use crate::error::{Damage, Failure, MissingTail, OpenError};
use crate::reader::{SegmentReader, Stop};
use crate::recovery::{SegmentEnd, damage, describe, inspect_remainder, load_segment};
use crate::segment::{Segment, parse_segment_name, parse_spare_name, segment_name};
use crate::snapshot::{
    BlockFile, BlockFiles, Name, Snapshot, SnapshotError, Snapshots, block_file_name, newest_usable,
};
use crate::storage::Storage;
use crate::{Format, Gap, Lsn, RecordBatch};

/// Everything in a log's directory.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The segments, oldest first.
    pub segments: Vec<SegmentReport>,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotReport>,
    /// The block files, oldest first.
    pub block_files: Vec<BlockFileReport>,
    /// Number of spare segment files.
    pub spares: usize,
    /// Missing durable records at the end. Set only for a log without damage.
    pub missing: Option<MissingTail>,
    /// Why no state can be recovered: the log does not reach back to its beginning, and no snapshot
    /// that it continues can be read. [`Snapshots::latest`] returns the same error.
    pub no_base: Option<SnapshotError>,
    /// Whether the log belongs to a member of a group, which alone may cut it.
    pub is_of_group: bool,
}

/// Report on a segment.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// File name.
    pub name: String,
    /// LSN of its first record.
    pub first_lsn: Lsn,
    /// LSN of the record before it. The LSNs in between are a gap: lost in a crash, or never used.
    pub follows: Lsn,
    /// LSN of its last valid record; less than `first_lsn` if there is none.
    pub last_lsn: Lsn,
    /// Format of its records; `None` if the header is unreadable.
    pub format: Option<Format>,
    /// Time of its first record, microseconds since 1970.
    pub created_us: u64,
    /// Bytes of valid content.
    pub used_bytes: u64,
    /// Size of the file.
    pub file_bytes: u64,
    /// How it ends.
    pub state: SegmentState,
}

impl SegmentReport {
    /// Returns the number of its valid records.
    pub fn records(&self) -> u64 {
        self.last_lsn.next().0.saturating_sub(self.first_lsn.0)
    }

    /// Returns its damage, if any.
    pub(super) fn damage(&self) -> Option<&Damage> {
        match &self.state {
            SegmentState::Damaged(damage) => Some(damage),
            SegmentState::Whole | SegmentState::Torn(_) => None,
        }
    }

    /// Returns the gap before it, if any.
    pub fn gap(&self) -> Option<Gap> {
        let gap = Gap { first: self.follows.next(), last: self.first_lsn.previous() };
        (gap.first <= gap.last).then_some(gap)
    }
}

/// How a segment ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// With its last record.
    Whole,
    /// With this many bytes of unfinished writes, which the next start cuts. A running server's
    /// last segment can look like this at any time.
    Torn(u64),
    /// Durable records are unreadable.
    Damaged(Damage),
}

/// Report on a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotReport {
    /// File name.
    pub name: String,
    /// The last record that it covers.
    pub lsn: Lsn,
    /// For an incremental snapshot: the last record that its base covers.
    pub base: Option<Lsn>,
    /// Number of frames and bytes of their payloads, including those in the base; or what is wrong
    /// with the file or its base.
    pub content: Result<(usize, u64), String>,
}

/// Report on a block file.
#[derive(Clone, Debug)]
pub struct BlockFileReport {
    /// File name.
    pub name: String,
    /// The snapshots that list it, by the last record that each covers. Without any, the next start
    /// removes the file, or the snapshot that it belongs to is being written.
    pub snapshots: Vec<Lsn>,
    /// Number of blocks, and bytes of the file; or what is wrong with it.
    pub content: Result<(u64, u64), String>,
}

impl Inspection {
    /// Returns the first damage in the segments.
    pub fn damage(&self) -> Option<&Damage> {
        self.segments.iter().find_map(SegmentReport::damage)
    }

    /// Returns the newest record before any damage.
    pub fn last_lsn(&self) -> Lsn {
        let damaged = |segment: &&SegmentReport| matches!(segment.state, SegmentState::Damaged(_));
        let last = self.segments.iter().find(damaged).or(self.segments.last());
        last.map_or(Lsn::ZERO, |segment| segment.last_lsn)
    }

    /// Returns the oldest record.
    pub fn first_lsn(&self) -> Lsn {
        self.segments.first().map_or(Lsn::FIRST, |segment| segment.first_lsn)
    }

    /// Returns the start of the log: from here on, only LSNs in gaps have no record.
    pub(super) fn floor(&self) -> Lsn {
        self.segments.first().map_or(self.newest_snapshot(), |segment| segment.follows).next()
    }

    fn newest_snapshot(&self) -> Lsn {
        self.snapshots.last().map_or(Lsn::ZERO, |snapshot| snapshot.lsn)
    }

    /// Returns the last record: of the segments, or that the newest snapshot covers if there is no
    /// segment.
    pub(super) fn end(&self) -> Lsn {
        self.segments.last().map_or(self.newest_snapshot(), |segment| segment.last_lsn)
    }

    /// Returns the newest LSN that any file names, readable or not.
    pub(super) fn newest(&self) -> Lsn {
        let segments = self.segments.iter().flat_map(|segment| [segment.first_lsn, segment.last_lsn]);
        segments.chain(self.snapshots.iter().map(|snapshot| snapshot.lsn)).max().unwrap_or_default()
    }
}

/// Reads every segment and snapshot to its end. `progress` gets the bytes verified since its last
/// call.
pub fn inspect(storage: &Arc<dyn Storage>, progress: &mut dyn FnMut(u64)) -> Result<Inspection, ToolError> {
    inspect_with(storage, &Headers::new(), progress)
}

/// Like [`inspect`], with `headers` in place of the unreadable headers of their segments.
pub(super) fn inspect_with(
    storage: &Arc<dyn Storage>,
    headers: &Headers,
    progress: &mut dyn FnMut(u64),
) -> Result<Inspection, ToolError> {
    let names = storage.list().map_err(|error| Failure::new("listing the directory", error))?;
    // First, because a server may be running: what it does after this only moves the end further.
    let (_, left) = end_file::find(&**storage, &names)?;
    let names = storage.list().map_err(|error| Failure::new("listing the directory", error))?;
    let mut firsts: Vec<Lsn> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    firsts.sort_unstable();
    let files = verify_block_files(storage)?;
    let verified = verify_snapshots(storage, &files)?;
    let newest = verified.last().map_or(Lsn::ZERO, |(name, _)| name.lsn);
    let (mut segments, mut is_of_group): (Vec<SegmentReport>, bool) = (Vec::new(), false);
    let mut opened = open_segments(&**storage, &firsts, headers)?.into_iter().peekable();
    while let Some((first, segment)) = opened.next() {
        // An unreadable header does not show whether there is a gap before the segment.
        let follower = opened.peek().and_then(|(_, next)| Some(next.as_ref().ok()?.header.follows));
        let report = match segment {
            Ok(segment) => {
                is_of_group |= segment.header.entry.is_some();
                inspect_segment(&**storage, segment, follower, newest, progress)?
            }
            Err(damage) => {
                let before = segments.last().map_or(first.previous(), |segment| segment.last_lsn);
                headless(first, before, damage)
            }
        };
        segments.push(report);
    }
    let spares = names.iter().filter(|name| parse_spare_name(name).is_some()).count();
    let snapshots = verified.iter().map(report_snapshot).collect();
    let block_files = report_block_files(storage, files);
    let mut inspection =
        Inspection { segments, snapshots, block_files, spares, missing: None, no_base: None, is_of_group };
    let end = left.filter(|_| inspection.damage().is_none());
    inspection.missing = end.and_then(|left| left.missing(&**storage, inspection.end()));
    let contents = verified.into_iter().rev().map(|(name, content)| (name.lsn, || content));
    inspection.no_base = newest_usable(inspection.floor(), contents).err();
    Ok(inspection)
}

/// Name of a snapshot, with the number of its frames and the bytes of their payloads.
type Verified = (Name, Result<(usize, u64), SnapshotError>);

/// Reads every snapshot, oldest first.
fn verify_snapshots(
    storage: &Arc<dyn Storage>,
    files: &BTreeMap<u64, VerifiedFile>,
) -> Result<Vec<Verified>, ToolError> {
    let names = Snapshots::new(storage.clone()).names()?;
    let verify = |name| {
        let snapshot = Snapshot::open(&**storage, name)?;
        snapshot.verify()?;
        for file in snapshot.block_files()? {
            match files.get(&file.number) {
                Some(Err(error)) => return Err(error.clone()),
                Some(Ok(_)) => snapshot.find_blocks(&**storage)?,
                // A newer snapshot has come since the files were read.
                None => drop(BlockFile::find(&**storage, file)?.verify()?),
            }
        }
        Ok((snapshot.frames().len(), snapshot.payload_bytes()))
    };
    Ok(names.into_iter().map(|name| (name, verify(name))).collect())
}

/// Number of a block file's blocks and its bytes.
type VerifiedFile = Result<(u64, u64), SnapshotError>;

/// Reads every block file.
fn verify_block_files(storage: &Arc<dyn Storage>) -> Result<BTreeMap<u64, VerifiedFile>, ToolError> {
    let files = BlockFiles::new(Arc::clone(storage));
    let verify = |number| {
        let file = files.open(number)?;
        Ok((file.verify()?, file.bytes()))
    };
    Ok(files.list()?.into_iter().map(|number| (number, verify(number))).collect())
}

fn report_block_files(
    storage: &Arc<dyn Storage>,
    files: BTreeMap<u64, VerifiedFile>,
) -> Vec<BlockFileReport> {
    let snapshots = Snapshots::new(Arc::clone(storage));
    let names = snapshots.names().unwrap_or_default();
    let listed = |name: &Name| Some((name.lsn, snapshots.open_named(*name).ok()?.block_files().ok()?));
    let lists: Vec<_> = names.iter().filter_map(listed).collect();
    let report = |(number, content): (u64, VerifiedFile)| BlockFileReport {
        name: block_file_name(number),
        snapshots: lists
            .iter()
            .filter(|(_, files)| files.iter().any(|file| file.number == number))
            .map(|(lsn, _)| *lsn)
            .collect(),
        content: content.map_err(|error| error.to_string()),
    };
    files.into_iter().map(report).collect()
}

fn report_snapshot((name, content): &Verified) -> SnapshotReport {
    let content = content.as_ref().copied().map_err(ToString::to_string);
    SnapshotReport { name: name.to_string(), lsn: name.lsn, base: name.base, content }
}

/// First LSN in a segment's name, with the segment or the damage of its header.
type Opened = (Lsn, Result<Arc<Segment>, Damage>);

/// Reads the headers. Skips segments without records that a newer one replaces; the next start
/// removes them.
fn open_segments(storage: &dyn Storage, firsts: &[Lsn], headers: &Headers) -> Result<Vec<Opened>, ToolError> {
    let mut opened: Vec<Opened> = Vec::new();
    for first in firsts {
        let segment = match load_segment(storage, segment_name(*first), *first) {
            Ok(segment) => Ok(Arc::new(segment)),
            Err(OpenError::Damaged(damage)) => match headers.get(first) {
                Some(header) => Ok(Arc::new(header.segment(storage)?)),
                None => Err(damage),
            },
            Err(error) => return Err(error.into()),
        };
        if let Ok(segment) = &segment {
            let follows = segment.header.follows;
            opened.pop_if(|(_, before)| before.as_ref().is_ok_and(|before| before.header.follows == follows));
        }
        opened.push((*first, segment));
    }
    Ok(opened)
}

/// Reports a segment without a readable header.
fn headless(first_lsn: Lsn, before: Lsn, damage: Damage) -> SegmentReport {
    SegmentReport {
        name: segment_name(first_lsn),
        first_lsn,
        follows: before,
        last_lsn: before,
        format: None,
        created_us: 0,
        used_bytes: 0,
        file_bytes: 0,
        state: SegmentState::Damaged(damage),
    }
}

/// Inspects a segment; `follower` is the record before the next segment.
fn inspect_segment(
    storage: &dyn Storage,
    segment: Arc<Segment>,
    follower: Option<Lsn>,
    snapshot: Lsn,
    progress: &mut dyn FnMut(u64),
) -> Result<SegmentReport, ToolError> {
    let failed = |error| Failure::new(format!("reading {}", storage.path(&segment.name)), error);
    let mut reader = SegmentReader::new(segment.clone());
    let mut batch = RecordBatch::default();
    let limit = follower.unwrap_or(Lsn(u64::MAX));
    let stop = loop {
        let before = reader.offset();
        let stop = reader.read(&mut batch, limit).map_err(failed)?;
        progress(reader.offset() - before);
        if stop != Stop::More {
            break stop;
        }
    };
    let file_bytes = segment.file.len().map_err(failed)?;
    let state = state_of(storage, &segment, &reader, stop, follower, snapshot)?;
    Ok(SegmentReport {
        name: segment.name.clone(),
        first_lsn: segment.header.first_lsn,
        follows: segment.header.follows,
        last_lsn: reader.last(),
        format: Some(segment.format),
        created_us: segment.header.created_us,
        used_bytes: reader.offset(),
        file_bytes,
        state,
    })
}

fn state_of(
    storage: &dyn Storage,
    segment: &Arc<Segment>,
    reader: &SegmentReader,
    stop: Stop,
    follower: Option<Lsn>,
    snapshot: Lsn,
) -> Result<SegmentState, ToolError> {
    let damaged = || damage(storage, &segment.name, reader.offset(), reader.expected(), describe(stop));
    if stop == Stop::Limit && follower.is_none_or(|follower| follower >= segment.header.first_lsn) {
        return Ok(SegmentState::Whole);
    }
    if follower.is_some() || snapshot > reader.last() {
        return Ok(SegmentState::Damaged(damaged()));
    }
    let remainder = inspect_remainder(&SegmentEnd::of(reader, stop))
        .map_err(|error| Failure::new(format!("reading {}", storage.path(&segment.name)), error))?;
    Ok(if remainder.proof {
        SegmentState::Damaged(damaged())
    } else if remainder.torn {
        SegmentState::Torn(remainder.dirty_end - reader.offset())
    } else {
        SegmentState::Whole
    })
}
