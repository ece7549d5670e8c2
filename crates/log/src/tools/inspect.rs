//! What is in a log's directory, and in which state. Changes nothing and takes no lock.

use std::sync::Arc;

use super::ToolError;
use super::salvage::Headers;
use crate::end_file;
use crate::error::{Damage, Failure, MissingTail, OpenError};
use crate::reader::{SegmentReader, Stop};
use crate::recovery::{SegmentEnd, damage, describe, inspect_remainder, load_segment};
use crate::segment::{Segment, parse_segment_name, parse_spare_name, segment_name};
use crate::snapshot::{Name, Snapshot, SnapshotError, Snapshots, newest_usable};
use crate::storage::Storage;
use crate::{Format, Gap, Lsn, RecordBatch};

/// Everything in a log's directory.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The segments, oldest first.
    pub segments: Vec<SegmentReport>,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotReport>,
    /// Files kept for use as segments.
    pub spares: usize,
    /// The records behind the last one that are missing although the log was closed after them. Told only of a log without damage.
    pub missing: Option<MissingTail>,
    /// Why nothing can start from what is there: the log does not reach back to its beginning, and no snapshot that it goes on
    /// from can be read. Whoever opens the log for its state is told the same by [`Snapshots::latest`].
    pub no_base: Option<SnapshotError>,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// File name.
    pub name: String,
    /// LSN of its first record.
    pub first_lsn: Lsn,
    /// LSN of the record before it. What lies between is a gap: lost in a crash, or never used.
    pub follows: Lsn,
    /// LSN of its last valid record; less than `first_lsn` when it has none.
    pub last_lsn: Lsn,
    /// Spelling of its records; `None` when the header is unreadable.
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
    /// Number of its valid records.
    pub fn records(&self) -> u64 {
        self.last_lsn.next().0.saturating_sub(self.first_lsn.0)
    }

    /// What is wrong with it.
    pub(super) fn damage(&self) -> Option<&Damage> {
        match &self.state {
            SegmentState::Damaged(damage) => Some(damage),
            SegmentState::Whole | SegmentState::Torn(_) => None,
        }
    }

    /// The gap before it, if there is one.
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
    /// With this many bytes of unfinished writes, which the next start cuts. A running server's last segment may
    /// look like this at any moment.
    Torn(u64),
    /// Durable records are unreadable.
    Damaged(Damage),
}

/// One snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotReport {
    /// File name.
    pub name: String,
    /// The last record that it covers.
    pub lsn: Lsn,
    /// Of an incremental one: the last record that the whole one covers that it is on.
    pub base: Option<Lsn>,
    /// Number of frames and bytes of their payloads, with those in its base, or what is wrong with the file or its base.
    pub content: Result<(usize, u64), String>,
}

impl Inspection {
    /// The first damage in the segments.
    pub fn damage(&self) -> Option<&Damage> {
        self.segments.iter().find_map(SegmentReport::damage)
    }

    /// The newest record before any damage.
    pub fn last_lsn(&self) -> Lsn {
        let damaged = |segment: &&SegmentReport| matches!(segment.state, SegmentState::Damaged(_));
        let last = self.segments.iter().find(damaged).or(self.segments.last());
        last.map_or(Lsn::ZERO, |segment| segment.last_lsn)
    }

    /// The oldest record.
    pub fn first_lsn(&self) -> Lsn {
        self.segments.first().map_or(Lsn::FIRST, |segment| segment.first_lsn)
    }

    /// Where the log begins: nothing from here on is missing that is not lost.
    pub(super) fn floor(&self) -> Lsn {
        self.segments.first().map_or(self.newest_snapshot(), |segment| segment.follows).next()
    }

    fn newest_snapshot(&self) -> Lsn {
        self.snapshots.last().map_or(Lsn::ZERO, |snapshot| snapshot.lsn)
    }

    /// The last record: of the segments, or that the newest snapshot covers where a repair has left no log.
    pub(super) fn end(&self) -> Lsn {
        self.segments.last().map_or(self.newest_snapshot(), |segment| segment.last_lsn)
    }

    /// The newest position that a file speaks of, readable or not.
    pub(super) fn newest(&self) -> Lsn {
        let segments = self.segments.iter().flat_map(|segment| [segment.first_lsn, segment.last_lsn]);
        segments.chain(self.snapshots.iter().map(|snapshot| snapshot.lsn)).max().unwrap_or_default()
    }
}

/// Reads every segment and snapshot to its end. `progress` is told the bytes verified since it was last called.
pub fn inspect(storage: &Arc<dyn Storage>, progress: &mut dyn FnMut(u64)) -> Result<Inspection, ToolError> {
    inspect_with(storage, &Headers::new(), progress)
}

/// As [`inspect`], as if segments whose header cannot be read had those in `headers`.
pub(super) fn inspect_with(
    storage: &Arc<dyn Storage>,
    headers: &Headers,
    progress: &mut dyn FnMut(u64),
) -> Result<Inspection, ToolError> {
    let names = storage.list().map_err(|error| Failure::new("listing the directory", error))?;
    // First, because a server may be at work: whatever it does from now on is behind the end that this says.
    let (_, left) = end_file::find(&**storage, &names)?;
    let names = storage.list().map_err(|error| Failure::new("listing the directory", error))?;
    let mut firsts: Vec<Lsn> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    firsts.sort_unstable();
    let verified = verify_snapshots(storage)?;
    let newest = verified.last().map_or(Lsn::ZERO, |(name, _)| name.lsn);
    let mut segments: Vec<SegmentReport> = Vec::new();
    let mut opened = open_segments(&**storage, &firsts, headers)?.into_iter().peekable();
    while let Some((first, segment)) = opened.next() {
        // A header that cannot be read does not say whether a gap is before it.
        let follower = opened.peek().and_then(|(_, next)| Some(next.as_ref().ok()?.header.follows));
        let report = match segment {
            Ok(segment) => inspect_segment(&**storage, segment, follower, newest, progress)?,
            Err(damage) => {
                let before = segments.last().map_or(first.previous(), |segment| segment.last_lsn);
                headless(first, before, damage)
            }
        };
        segments.push(report);
    }
    let spares = names.iter().filter(|name| parse_spare_name(name).is_some()).count();
    let snapshots = verified.iter().map(report_snapshot).collect();
    let mut inspection = Inspection { segments, snapshots, spares, missing: None, no_base: None };
    let end = left.filter(|_| inspection.damage().is_none());
    inspection.missing = end.and_then(|left| left.missing(&**storage, inspection.end()));
    let contents = verified.into_iter().rev().map(|(name, content)| (name.lsn, || content));
    inspection.no_base = newest_usable(inspection.floor(), contents).err();
    Ok(inspection)
}

/// A snapshot with the number of its frames and the bytes of their payloads.
type Verified = (Name, Result<(usize, u64), SnapshotError>);

/// Reads every snapshot, oldest first.
fn verify_snapshots(storage: &Arc<dyn Storage>) -> Result<Vec<Verified>, ToolError> {
    let names = Snapshots::new(storage.clone()).names()?;
    let verify = |name| {
        let snapshot = Snapshot::open(&**storage, name)?;
        snapshot.verify()?;
        Ok((snapshot.frames().len(), snapshot.payload_bytes()))
    };
    Ok(names.into_iter().map(|name| (name, verify(name))).collect())
}

fn report_snapshot((name, content): &Verified) -> SnapshotReport {
    let content = content.as_ref().copied().map_err(ToString::to_string);
    SnapshotReport { name: name.to_string(), lsn: name.lsn, base: name.base, content }
}

/// A segment by the first LSN in its name, or what is wrong with its header.
type Opened = (Lsn, Result<Arc<Segment>, Damage>);

/// Reads the headers. Leaves out segments without records whose place another has taken, which the next start removes.
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

/// What can be said of a segment without a readable header.
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

/// `follower` is the record that the next segment follows.
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
