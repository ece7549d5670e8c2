//! What a log needs to be opened, besides its verified content: the lock, the spare files, `END`,
//! and the state that its threads share.

use fastrand::Rng;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use crate::append::RESERVE_BYTES;
use crate::buffer::Buffer;
use crate::end_file::{self, EndFile, LogEnd};
use crate::error::OpenError;
use crate::housekeeper::Housekeeper;
use crate::ready::{Chores, Ready};
use crate::recovery::Recovered;
use crate::relief_state::Relief;
use crate::segment::{Segment, parse_spare_name};
use crate::shared::{Parked, Position, Shared, Sizes, State, Stopwatches, Wakers};
use crate::snapshot::{BlockFiles, Name, covered};
use crate::stopwatch::Stopwatch;
use crate::storage::{Storage, StorageLock};
use crate::{Lsn, Options};

/// Whose log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// That of a single node.
    Alone,
    /// That of a group's member.
    Member,
    /// The same, for simulations.
    MemberWithoutThreads,
}

pub(crate) fn take_lock(storage: &dyn Storage) -> Result<StorageLock, OpenError> {
    storage.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::Locked { path: storage.path("") },
        _ => OpenError::storage(format!("locking {}", storage.path("")), error),
    })
}

/// Opens the spare files of an earlier process, up to the configured number, and removes the rest.
/// Their content is not trusted.
pub(crate) fn find_spares(
    storage: &dyn Storage,
    names: &[String],
    options: &Options,
) -> Result<(VecDeque<Ready>, u64), OpenError> {
    let mut ready = VecDeque::new();
    let mut next_spare = 0;
    for name in names {
        let Some(number) = parse_spare_name(name) else {
            continue;
        };
        next_spare = next_spare.max(number + 1);
        let failed = |error| OpenError::storage(format!("opening {}", storage.path(name)), error);
        let file = storage.open(name).map_err(failed)?;
        let bytes = file.len().map_err(failed)?;
        let usable = options.format.codec().preallocates() && bytes >= options.segment_bytes;
        if usable && ready.len() < options.recycle.max(1) {
            ready.push_back(Ready { name: name.clone(), file, bytes, recycled: true });
        } else {
            storage.remove(name).map_err(failed)?;
        }
    }
    Ok((ready, next_spare))
}

/// Records durably, before the first record is appended, that the recovered records up to `last`
/// are durable and that those of this process start at `next`.
pub(crate) fn begin(
    storage: &dyn Storage,
    file: Option<EndFile>,
    last: Lsn,
    next: Lsn,
) -> Result<EndFile, OpenError> {
    let end = LogEnd { closed: false, durable: last, next };
    // Sync file names first: an earlier process may have created files without syncing their names.
    let begun = storage.sync_dir().and_then(|()| match file {
        Some(file) => file.write(end).map(|()| file),
        None => EndFile::create(storage, end),
    });
    begun.map_err(|error| OpenError::storage(format!("writing {}", end_file::path(storage)), error))
}

impl Recovered {
    /// Returns the segment to append to, or `None` if new records use another format.
    pub(crate) fn continued(&self, options: &Options) -> Option<Arc<Segment>> {
        self.segment.clone().filter(|segment| segment.format == options.format)
    }
}

pub(crate) fn share(
    storage: Arc<dyn Storage>,
    options: Options,
    recovered: &Recovered,
    (ready, next_spare): (VecDeque<Ready>, u64),
    kind: LogKind,
) -> Result<Shared, OpenError> {
    let has_entries = kind != LogKind::Alone;
    let last = recovered.recovery.last_lsn;
    let snapshots = recovered.names.iter().filter_map(|name| Name::parse(name));
    let covered = covered(snapshots, options.retention.keep_snapshots).min(last);
    // Of a group's log, the group releases records: see `Member::release`.
    let released = if has_entries { Lsn::ZERO } else { covered.next() };
    let mut position = None;
    let mut time_us = 0;
    if let Some(segment) = recovered.continued(&options) {
        let bytes = if options.format.codec().preallocates() {
            let failed = |error| OpenError::storage(format!("measuring {}", segment.name), error);
            segment.file.len().map_err(failed)?
        } else {
            options.segment_bytes
        };
        time_us = segment.header.created_us;
        position = Some(Position {
            offset: recovered.end_offset,
            capacity: bytes.saturating_sub(RESERVE_BYTES),
            salt: segment.header.salt,
            created_us: segment.header.created_us,
        });
    }
    let state = State {
        next: recovered.next,
        time_us,
        buffer: Buffer::default(),
        position,
        // A new log's first segment is made immediately.
        wanted_bytes: (position.is_none() && ready.is_empty()).then_some(0),
        ready,
        surplus: Vec::new(),
        calm_at: None,
        reserve: None,
        promised_bytes: 0,
        waiting_for_space: 0,
        is_room_awaited: false,
        parked: Parked::Working,
        is_syncing: false,
        sync_wanted: Lsn::ZERO,
        write_wanted: Lsn::ZERO,
        durability: options.durability,
        released,
        sealed: Lsn::ZERO,
        // Not before the next segment: a caller that recovers from this log may still need all of
        // it.
        retention_due: false,
        retention_failure: None,
        closing: false,
        closed: false,
        follows: has_entries,
        failure: None,
        full: None,
        relief: Relief::None,
        stall: None,
        random: options.seed.map_or_else(Rng::new, |seed| Rng::with_seed(seed ^ recovered.next.0)),
    };
    let stopwatch = || Stopwatch::new(&options.clock);
    let stopwatches = Stopwatches {
        crowded: stopwatch(),
        writing: stopwatch(),
        syncing: stopwatch(),
        housekeeping: stopwatch(),
    };
    let shared = Shared {
        block_files: Arc::new(BlockFiles::new(Arc::clone(&storage))),
        storage,
        codec: options.format.codec(),
        options,
        state: Mutex::new(state),
        wakers: Wakers::default(),
        appended: AtomicU64::new(last.0),
        written: AtomicU64::new(last.0),
        durable: AtomicU64::new(last.0),
        // A group says again what is committed, and may cut the rest.
        committed: AtomicU64::new(if has_entries { recovered.committed.0 } else { last.0 }),
        has_entries,
        cuts: AtomicU64::new(0),
        // Not before a snapshot was loaded.
        covered: AtomicU64::new(0),
        found_covered: covered,
        snapshots_taken: AtomicU64::new(0),
        refusing: AtomicBool::new(has_entries),
        stalled: AtomicBool::new(false),
        sizes: Sizes::default(),
        stopwatches,
        syncing: Mutex::default(),
        chores: Mutex::new(Chores::new(next_spare)),
        do_chores: (kind == LogKind::MemberWithoutThreads).then_some(Housekeeper::run_due),
        retaining: AtomicBool::new(false),
        segments: Mutex::default(),
        recovered: last,
        gaps: RwLock::new(recovered.gaps.clone()),
        listener: RwLock::new(None),
        waker: OnceLock::new(),
    };
    // No thread waits yet.
    let _ = shared.update_crowded(&shared.lock());
    Ok(shared)
}
